"""Records of finished flows: what may be kept of them, and for how long.

Agents are not trusted: a record that cannot be true is refused and counted (by host and reason), an agent may speak
only of flows that its own host has sent, and a host that floods the window displaces its own records.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError
from protocol.control import FinishedFlows

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


class RecordsError(CapstanError, ValueError):
    """Columns that are no records at all; the text says why."""


def checked(
    report: FinishedFlows,
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
    if any(len(column) != len(report.bytes) for column in (*columns, report.start_s, report.end_s)):
        raise RecordsError("columns of flow records differ in length")
    if not math.isfinite(report.now_s):
        raise RecordsError(f"flow records were sent at {report.now_s}")
    numbers = _Columns.of(report)
    good = np.ones(len(report.bytes), dtype=bool)
    refused: Counter[str] = Counter()
    for reason, mask in _reasons(report, numbers, host, owners):  # the first that applies counts
        count = int(np.count_nonzero(mask & good))
        if count:
            refused[reason] = count
        good &= ~mask
    indices = np.flatnonzero(good)
    records = np.zeros(len(indices), dtype=RECORD)
    records["host"] = hosts.number(host)
    records["source"] = _numbers([report.source[index] for index in indices.tolist()], addresses)
    records["destination"] = _numbers([report.destination[index] for index in indices.tolist()], addresses)
    records["source_port"] = numbers.source_port[indices]
    records["destination_port"] = numbers.destination_port[indices]
    records["protocol"], records["bytes"] = numbers.protocol[indices], numbers.bytes[indices]
    ahead = now - report.now_s
    records["start"] = numbers.start[indices] + ahead
    records["end"] = np.minimum(numbers.end[indices] + ahead, now)
    return records, refused


def memory_of(report: FinishedFlows) -> int:
    """Return about how many bytes a message takes here: its columns may differ in length."""
    texts = (report.source, report.destination)
    numbers = (
        report.protocol,
        report.source_port,
        report.destination_port,
        report.bytes,
        report.start_s,
        report.end_s,
    )
    of_texts = sum(64 * len(column) + sum(map(len, column)) for column in texts)
    return 1024 + of_texts + 40 * sum(len(column) for column in numbers)


class _Columns(NamedTuple):
    """A report's numbers as arrays."""

    bytes: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    source_port: NDArray[np.int64]
    destination_port: NDArray[np.int64]
    protocol: NDArray[np.int64]

    @classmethod
    def of(cls, report: FinishedFlows) -> _Columns:
        """Return them; times stay in the agent's clock."""
        return cls(
            _integers(report.bytes),
            _floats(report.start_s),
            _floats(report.end_s),
            _integers(report.source_port),
            _integers(report.destination_port),
            _integers(report.protocol),
        )


def _reasons(
    report: FinishedFlows, numbers: _Columns, host: str, owners: Mapping[str, str]
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return all reasons to refuse records, each with the records that it applies to."""
    start, end = numbers.start, numbers.end
    with np.errstate(invalid="ignore"):
        fastest = (end - start + SLACK_S) * FASTEST_BYTES_PER_S
        return [
            (
                "foreign_source",
                np.array([owners.get(address) != host for address in report.source], dtype=bool),
            ),
            (
                "unknown_destination",
                np.array([address not in owners for address in report.destination], dtype=bool),
            ),
            (
                "bad_port",
                _outside(numbers.source_port, 0, 65535) | _outside(numbers.destination_port, 0, 65535),
            ),
            ("bad_protocol", _outside(numbers.protocol, 0, 255)),
            ("bad_bytes", _outside(numbers.bytes, 1, MOST_BYTES)),
            ("bad_time", ~(np.isfinite(start) & np.isfinite(end)) | (end < start)),
            ("in_future", end > report.now_s + SLACK_S),
            ("too_old", start < report.now_s - OLDEST_S),
            ("too_fast", numbers.bytes > fastest),
        ]


class _Chunk(NamedTuple):
    """Records of a host that go together when they are too old: when the newest of them ended, and the records."""

    newest: float
    records: Records


class RecordWindow:
    """The records of the last hours, bounded: *most_records* in all, none that ended more than *most_age_s* ago.

    When it is full, the host that has most records loses its oldest ones: a host displaces others only while it has
    fewer than they have. What comes of a host is added in a time that does not depend on the number of the others.
    """

    def __init__(self, most_records: int = 1_000_000, most_age_s: float = 7200.0) -> None:
        self.most_records = most_records
        self.most_age_s = most_age_s
        self.displaced = 0
        self._hosts: dict[int, deque[_Chunk]] = {}
        self._counts: dict[int, int] = {}
        self._total = 0
        self._first_end = math.inf
        """No host's first chunk is older than that."""
        self._largest: list[tuple[int, int]] = []
        """A heap of (less the count, host), with what hosts had before among it."""

    def __len__(self) -> int:
        return self._total

    def by_host(self) -> dict[int, int]:
        """Return how many records each host has, by its number."""
        return dict(self._counts)

    def add(self, records: Records, now: float) -> None:
        """Keep *records* (of any hosts), and delete what is too old or too much."""
        for number in np.unique(records["host"]):
            own = records[records["host"] == number]
            host, newest = int(number), float(own["end"].max())
            self._first_end = min(self._first_end, newest)
            self._count(host, len(own))
            chunks = self._hosts.setdefault(host, deque())
            if chunks and len(chunks[-1].records) < _CHUNK:
                before = chunks.pop()
                own, newest = np.concatenate((before.records, own)), max(newest, before.newest)
            chunks.append(_Chunk(newest, own))
        self.expire(now)
        if self._total > self.most_records:
            self._displace(self._total - self.most_records)

    def expire(self, now: float) -> None:
        """Delete what ended too long ago."""
        oldest = now - self.most_age_s
        if self._first_end >= oldest:
            return
        for host, chunks in list(self._hosts.items()):
            while chunks and chunks[0].newest < oldest:
                self._count(host, -len(chunks.popleft().records))
        self._first_end = min((chunks[0].newest for chunks in self._hosts.values()), default=math.inf)

    def chunks(self) -> list[Records]:
        """Return all records in parts, oldest first within each host, without a copy of them."""
        return [chunk.records for own in self._hosts.values() for chunk in own]

    def _displace(self, excess: int) -> None:
        """Delete so many records: those hosts that have most come down to the next ones' number, together."""
        self.displaced += excess
        while excess:
            level, group = self._most(), set[int]()
            while len(group) < excess and self._most() == level:
                group.add(
                    heapq.heappop(self._largest)[1]
                )  # one that has come back to a number is there twice
            each = max(1, min(level - self._most(), excess // len(group)))
            for host in group:
                self._drop(host, each)
            excess -= each * len(group)

    def _most(self) -> int:
        """Return the most records that a host in the heap has, 0 if there is none; it is the heap's first then."""
        while self._largest:
            less, host = self._largest[0]
            if self._counts.get(host) == -less:
                return -less
            heapq.heappop(self._largest)
        return 0

    def _drop(self, host: int, count: int) -> None:
        """Delete the oldest records of a host. A chunk that has lost more than half of them gives back its memory."""
        chunks, remaining = self._hosts[host], count
        while remaining:
            newest, first = chunks.popleft()
            if len(first) > remaining:
                left = first[remaining:]
                whole = left if left.base is None else left.base
                chunks.appendleft(_Chunk(newest, left.copy() if 2 * len(left) < len(whole) else left))
                remaining = 0
            else:
                remaining -= len(first)
        self._count(host, -count)

    def _count(self, host: int, more: int) -> None:
        """Note that a host has so many records more; forget it where it has none."""
        count = self._counts.get(host, 0) + more
        self._total += more
        if count:
            self._counts[host] = count
            heapq.heappush(self._largest, (-count, host))
        else:
            del self._counts[host], self._hosts[host]
        if len(self._largest) > 2 * len(self._counts) + _CHUNK:
            self._largest = [(-count, host) for host, count in self._counts.items()]
            heapq.heapify(self._largest)


def _numbers(texts: Sequence[str], names: Names) -> list[int]:
    """Return the numbers of texts, few of which differ."""
    numbers = {text: names.number(text) for text in dict.fromkeys(texts)}
    return [numbers[text] for text in texts]


def _integers(column: Sequence[Any]) -> NDArray[np.int64]:
    """Return the whole numbers; what does not fit 62 bits becomes -1, which no field may be."""
    try:
        values = np.array(column, dtype=np.int64)
    except OverflowError:
        pass
    else:
        values[_outside(values, 1 - (1 << 62), (1 << 62) - 1)] = -1
        return values
    return np.array([value if abs(value) < 1 << 62 else -1 for value in column], dtype=np.int64)


def _floats(column: Sequence[Any]) -> NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)


def _outside(values: NDArray[np.int64], least: int, most: int) -> NDArray[np.bool_]:
    return (values < least) | (values > most)
