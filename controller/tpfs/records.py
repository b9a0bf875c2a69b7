"""Records of finished flows: what may be kept of them, and for how long.

Agents are not trusted: a record that cannot be true is refused and counted (by host and reason), an agent may speak
only of flows that its own host has sent, and a host that floods the window displaces its own records.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError

RECORD: Final = np.dtype(
    [
        ("host", "<i4"),
        ("source", "<i4"),
        ("destination", "<i4"),
        ("source_port", "<u2"),
        ("destination_port", "<u2"),
        ("protocol", "u1"),
        ("bytes", "<i8"),
        ("start", "<f8"),
        ("end", "<f8"),
    ]
)
"""One flow: numbers of names (`Names`), ports, payload in bytes, seconds of the controller's clock. 45 B."""

Records = NDArray[np.void]
"""Shape (n,), dtype `RECORD`."""

MOST_BYTES: Final = 1 << 50
"""No flow is larger."""
FASTEST_BYTES_PER_S: Final = 50e9
"""No host sends faster: 400 Gbit/s."""
SLACK_S: Final = 1.0
"""By which a flow's clock may be wrong, where bytes are compared with time."""
_CHUNK: Final = 1024
"""Records that go together when they are too old, at least."""
OLDEST_S: Final = 30 * 86400.0
"""No flow is older."""


class Names:
    """Numbers for texts (hosts, addresses), in the order in which they came."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts: list[str] = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, text: str) -> int:
        """Return the text's number, a new one if it has none."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


@dataclass(frozen=True, slots=True)
class FinishedFlowColumns:
    """What an agent says of flows that have ended: columns of equal length, times on its host's clock.

    now_s: that clock when it said so. bytes: payload.
    """

    now_s: float
    protocol: Sequence[int]
    source: Sequence[str]
    source_port: Sequence[int]
    destination: Sequence[str]
    destination_port: Sequence[int]
    bytes: Sequence[int]
    start_s: Sequence[float]
    end_s: Sequence[float]

    def __len__(self) -> int:
        return len(self.bytes)


class RecordsError(CapstanError, ValueError):
    """Columns that are no records at all; the text says why."""


def checked(
    report: FinishedFlowColumns,
    host: str,
    *,
    owners: Mapping[str, str],
    hosts: Names,
    addresses: Names,
    now: float,
) -> tuple[Records, Counter[str]]:
    """Return what of *report* can be true, in the controller's clock, and how many records were refused, by reason.

    owners: the host of each overlay address. now: seconds, when *report* came in.

    Raises:
        RecordsError: columns of different lengths, or a clock that is no number.
    """
    columns = (
        report.protocol,
        report.source,
        report.source_port,
        report.destination,
        report.destination_port,
    )
    if any(len(column) != len(report) for column in (*columns, report.start_s, report.end_s)):
        raise RecordsError("columns of flow records differ in length")
    if not math.isfinite(report.now_s):
        raise RecordsError(f"flow records were sent at {report.now_s}")
    size, start, end = _integers(report.bytes), _floats(report.start_s), _floats(report.end_s)
    ports = [_integers(report.source_port), _integers(report.destination_port)]
    protocol = _integers(report.protocol)
    with np.errstate(invalid="ignore"):
        fastest = (end - start + SLACK_S) * FASTEST_BYTES_PER_S
        # the first that applies is the reason
        wrong: list[tuple[str, NDArray[np.bool_]]] = [
            (
                "foreign_source",
                np.array([owners.get(address) != host for address in report.source], dtype=bool),
            ),
            (
                "unknown_destination",
                np.array([address not in owners for address in report.destination], dtype=bool),
            ),
            ("bad_port", _outside(ports[0], 0, 65535) | _outside(ports[1], 0, 65535)),
            ("bad_protocol", _outside(protocol, 0, 255)),
            ("bad_bytes", _outside(size, 1, MOST_BYTES)),
            ("bad_time", ~(np.isfinite(start) & np.isfinite(end)) | (end < start)),
            ("in_future", end > report.now_s + SLACK_S),
            ("too_old", start < report.now_s - OLDEST_S),
            ("too_fast", size > fastest),
        ]
    good = np.ones(len(report), dtype=bool)
    refused: Counter[str] = Counter()
    for reason, mask in wrong:
        count = int(np.count_nonzero(mask & good))
        if count:
            refused[reason] = count
        good &= ~mask
    indices = np.flatnonzero(good)
    records = np.zeros(len(indices), dtype=RECORD)
    records["host"] = hosts.number(host)
    records["source"] = [addresses.number(report.source[index]) for index in indices.tolist()]
    records["destination"] = [addresses.number(report.destination[index]) for index in indices.tolist()]
    records["source_port"], records["destination_port"] = ports[0][indices], ports[1][indices]
    records["protocol"], records["bytes"] = protocol[indices], size[indices]
    ahead = now - report.now_s
    records["start"], records["end"] = start[indices] + ahead, np.minimum(end[indices] + ahead, now)
    return records, refused


class RecordWindow:
    """The records of the last hours, bounded: *most_records* in all, none that ended more than *most_age_s* ago.

    When it is full, the host that has most records loses its oldest ones: a host displaces others only while it has
    fewer than they have.
    """

    def __init__(self, most_records: int = 1_000_000, most_age_s: float = 7200.0) -> None:
        self.most_records = most_records
        self.most_age_s = most_age_s
        self.displaced = 0
        self._hosts: dict[int, deque[Records]] = {}
        self._counts: Counter[int] = Counter()

    def __len__(self) -> int:
        return self._counts.total()

    def by_host(self) -> dict[int, int]:
        """Return how many records each host has, by its number."""
        return dict(self._counts)

    def add(self, records: Records, now: float) -> None:
        """Keep *records* (of any hosts), and delete what is too old or too much."""
        for host in np.unique(records["host"]):
            own = records[records["host"] == host]
            chunks = self._hosts.setdefault(int(host), deque())
            if chunks and len(chunks[-1]) < _CHUNK:
                own = np.concatenate((chunks.pop(), own))
            chunks.append(own)
            self._counts[int(host)] = sum(map(len, chunks))
        self.expire(now)
        while (excess := len(self) - self.most_records) > 0:
            (host, most), *others = self._counts.most_common(2)
            level = others[0][1] if others else 0
            self.displaced += self._drop(host, min(excess, max(1, most - level)))

    def expire(self, now: float) -> None:
        """Delete what ended too long ago."""
        oldest = now - self.most_age_s
        for host, chunks in list(self._hosts.items()):
            while chunks and chunks[0]["end"].max() < oldest:
                self._counts[host] -= len(chunks.popleft())
            self._forget_empty(host)

    def all(self) -> Records:
        """Return all records, oldest first within each host, shape (n,)."""
        chunks = self.chunks()
        return np.concatenate(chunks) if chunks else np.zeros(0, dtype=RECORD)

    def chunks(self) -> list[Records]:
        """Return all records in parts, oldest first within each host, without a copy of them."""
        return [chunk for own in self._hosts.values() for chunk in own]

    def _drop(self, host: int, count: int) -> int:
        chunks, remaining = self._hosts[host], count
        while remaining:
            first = chunks.popleft()
            if len(first) > remaining:
                chunks.appendleft(first[remaining:].copy())
                remaining = 0
            else:
                remaining -= len(first)
        self._counts[host] -= count
        self._forget_empty(host)
        return count

    def _forget_empty(self, host: int) -> None:
        if not self._counts[host]:
            del self._counts[host]
            self._hosts.pop(host, None)


def _integers(column: Sequence[Any]) -> NDArray[np.int64]:
    """Return the whole numbers; what does not fit 62 bits becomes -1, which no field may be."""
    return np.array([value if abs(value) < 1 << 62 else -1 for value in column], dtype=np.int64)


def _floats(column: Sequence[Any]) -> NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)


def _outside(values: NDArray[np.int64], least: int, most: int) -> NDArray[np.bool_]:
    return (values < least) | (values > most)
