"""Figures of another simulator on the same trace, to stand beside ours, and how far ours may be from them.

A reference file is CSV: the columns of a run (`RUN`), then figure, value, tolerance. Figures are named as
`simulation.summary` names them, in its units. Tolerances: `0.1 %` of the value, `0 to 100`, or nothing: it is not held.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulation.fabrics import SettingsError
from simulation.settings import Settings
from simulation.trace import Trace

RUN: Final = (
    "leaves",
    "hosts_per_leaf",
    "spines",
    "host_gbps",
    "fabric_gbps",
    "delay_us",
    "ports",
    "transport",
    "paths",
    "flows",
    "trace",
)
"""What decides a run but for its seed, which decides no more than ties and starts of turns. trace: first digits of the
flows' SHA-256."""
COLUMNS: Final = (*RUN, "figure", "value", "tolerance")
DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Expected:
    """A figure of another simulator, and the range that ours is to be in; no range: it is not held."""

    value: float
    tolerance: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if the tolerance is none."""
        self._range()

    def holds(self, ours: float) -> bool | None:
        """Return whether *ours* is near enough; None: that is not said."""
        bounds = self._range()
        return None if bounds is None else bounds[0] <= ours <= bounds[1]

    def _range(self) -> tuple[float, float] | None:
        if not self.tolerance:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?) %|(\d+) to (\d+)", self.tolerance)
        if match is None:
            raise ValueError(self.tolerance)
        percent, least, most = match.groups()
        if percent is None:
            return float(least), float(most)
        share = float(percent) / 100
        return self.value * (1 - share), self.value * (1 + share)


def read_reference(path: Path, settings: Settings, trace: Trace) -> dict[str, Expected]:
    """Return the figures for a run of *settings* with these flows, by name.

    Raises:
        OSError: the file cannot be read.
        SettingsError: the file is no reference file, or has no such run.
    """
    wanted = run_of(settings, trace)
    figures: dict[str, Expected] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != COLUMNS:
            raise SettingsError(f"{path}: a reference file's columns are {','.join(COLUMNS)}")
        for row in rows:
            try:
                *run, figure, value, tolerance = row
                expected = Expected(float(value), tolerance)
            except ValueError:
                raise SettingsError(f"{path}, line {rows.line_num}: {','.join(row)!r} is no figure") from None
            if tuple(run) == wanted:
                figures[figure] = expected
    if not figures:
        raise SettingsError(
            f"{path} has no run with these settings and these {len(trace)} flows: those that it has are in its columns "
            f"{RUN[0]} to {RUN[-1]}"
        )
    return figures


def run_of(settings: Settings, trace: Trace) -> tuple[str, ...] | None:
    """Return a run as a reference file's columns have it; None: none has settings of that kind."""
    fabric, buffer = settings.fabric, settings.buffer
    if fabric.shape != "leaf-spine" or fabric.changes or buffer.shared or buffer.mark_from_packets:
        return None
    native = settings.transport.to_native()
    return (
        *map(str, (fabric.leaves, fabric.hosts_per_leaf, fabric.spines)),
        *(f"{number:g}" for number in (fabric.host_gbps, fabric.fabric_gbps, fabric.delay_us)),
        f"{buffer.queue} {buffer.limit}",
        " ".join([native.pop("kind"), *(f"{name}={value}" for name, value in native.items())]),
        settings.paths,
        str(len(trace)),
        trace.sha256()[:DIGITS],
    )
