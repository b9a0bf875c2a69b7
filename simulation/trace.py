"""Traces of flows: CSV with the columns start_ns, src, dst, bytes, and optionally level."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError
from plain.text_file import read_text

COLUMNS: Final = ("start_ns", "src", "dst", "bytes")
_LEVEL: Final = "level"
LATEST_START_NS: Final = 9_000_000_000_000_000
"""104 days: times are picoseconds in 63 bits, and flows end after they start."""
_MOST: Final = {
    "start_ns": LATEST_START_NS,
    "src": 2**32 - 1,
    "dst": 2**32 - 1,
    "bytes": 2**63 - 1,
    _LEVEL: 2**32 - 1,
}
"""The simulator counts hosts and levels in 32 bits."""


class TraceError(CapstanError, ValueError):
    """A trace that cannot be read; the text names the file and line."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Flows, one an entry of each array. Starts in ns; ends by number from 0; level 0 is served first."""

    starts_ns: NDArray[np.int64]
    sources: NDArray[np.int64]
    destinations: NDArray[np.int64]
    sizes: NDArray[np.int64]
    levels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts_ns)

    def first(self, count: int) -> Trace:
        """Return the first *count* flows of the file."""
        return Trace(
            self.starts_ns[:count],
            self.sources[:count],
            self.destinations[:count],
            self.sizes[:count],
            self.levels[:count],
        )

    def sha256(self) -> str:
        """Return the checksum of the flows as a CSV file has them, in hexadecimal digits."""
        return hashlib.sha256(as_csv(self).encode()).hexdigest()


def as_csv(trace: Trace) -> str:
    """Return the trace as a file of it is: with levels if any is not 0."""
    columns = [trace.starts_ns, trace.sources, trace.destinations, trace.sizes]
    names: tuple[str, ...] = COLUMNS
    if trace.levels.any():
        columns.append(trace.levels)
        names = (*COLUMNS, _LEVEL)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


def read_trace(path: Path) -> Trace:
    """Return the flows of a CSV file.

    Raises:
        OSError: the file cannot be read.
        TraceError: a header or line that is no flow.
    """
    lines = read_text(path).splitlines()
    header = tuple(name.strip() for name in lines[0].split(",")) if lines else ()
    if header not in (COLUMNS, (*COLUMNS, _LEVEL)):
        raise TraceError(
            f"{path}, line 1: the columns are {','.join(COLUMNS)}, and {_LEVEL} where queues are strict"
        )
    rows = np.zeros((len(lines) - 1, len(header)), dtype=np.int64)
    for number, line in enumerate(lines[1:], start=2):
        try:
            # strict: numpy gives every column the number of a line that has only one
            rows[number - 2] = [int(cell) for _, cell in zip(header, line.split(","), strict=True)]
        except (ValueError, OverflowError):
            raise TraceError(
                f"{path}, line {number}: {line!r} is not {len(header)} whole numbers with commas between"
            ) from None
        if rows[number - 2].min() < 0:
            raise TraceError(f"{path}, line {number}: {line!r} has a number below 0")
        for name, cell in zip(header, rows[number - 2].tolist(), strict=True):
            if cell > _MOST[name]:
                raise TraceError(f"{path}, line {number}: {name} is {cell}: give at most {_MOST[name]}")
    if not len(rows):
        raise TraceError(f"{path}: there are no flows below the header")
    levels = rows[:, 4] if len(header) > len(COLUMNS) else np.zeros(len(rows), dtype=np.int64)
    return Trace(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], levels)
