"""What links carry, from two readings of their ports' counters: plain data in, plain data out."""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.fabric.graph import PortRef
from controller.plane.naming import FabricNames, NamedLink
from ovsdb.port_queues import QueueCounters

_PORT_STATS: Final = struct.Struct("!H2xIII6Q")
"""Length, port, duration (s, ns), packets received and sent, bytes received and sent, drops received and sent."""
_UNKNOWN_DURATION: Final = 0xFFFFFFFF
LONGEST_S: Final = 10.0
"""Readings further apart than this say nothing of now, unless they are taken that seldom."""
QUEUES_S: Final = 2.0
"""Queues without a counter for this long are left out, unless samples are taken that seldom."""
Counted = tuple[float, tuple[QueueCounters, ...]]
"""When (monotonic seconds), and a port's queues."""


@dataclass(frozen=True, slots=True)
class PortCount:
    """Totals of a port. ``at``: seconds of the switch's own clock if it sends them, else of ours."""

    at: float
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One queue of a port; 0 is served first."""

    queue: int
    waiting_packets: int
    bits_per_s: float
    dropped_per_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """One direction of a link. ``share``: of the link's rate, 0..1; None where no rate is known.


    ``queued_packets``, ``dropped_per_s``: sums over the sending port's queues; None where it does not report them.
    """

    bits_per_s: float
    packets_per_s: float
    share: float | None
    queued_packets: int | None = None
    dropped_per_s: float | None = None
    queues: tuple[QueueLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """Both directions of a link, from ``a`` to ``b`` and back; None: not measured."""

    name: str
    kind: str
    up: bool
    rate_kbps: float | None
    ab: Load | None
    ba: Load | None


def port_counts(body: bytes, now: float) -> dict[int, PortCount]:
    """Return by port, from the body of an OFPMP_PORT_STATS reply (OpenFlow 1.5.1, section 7.3.5.6).

    Raises ValueError or struct.error on what is malformed.
    """
    counts = {}
    offset = 0
    while offset < len(body):
        fields = _PORT_STATS.unpack_from(body, offset)
        length, port, seconds, nanoseconds, rx_packets, tx_packets, rx_bytes, tx_bytes = fields[:8]
        if length < _PORT_STATS.size:
            raise ValueError(f"port statistics of {length} B at {offset} are too short")
        counted_s = now if seconds == _UNKNOWN_DURATION else seconds + nanoseconds / 1e9
        counts[port] = PortCount(counted_s, rx_packets, tx_packets, rx_bytes, tx_bytes)
        offset += length
    return counts


class LinkLoads:
    """Keeps each switch's last two readings. every_s: how often readings are taken, seconds."""

    def __init__(self, every_s: float = 0.0) -> None:
        self._longest_s = max(LONGEST_S, 3 * every_s)
        self._queues_s = max(QUEUES_S, 3 * every_s)  # a sample has the queues of the sample before it
        self._old: dict[int, Mapping[int, PortCount]] = {}
        self._new: dict[int, Mapping[int, PortCount]] = {}
        """By dpid and port."""
        self._queued: dict[PortRef, Counted] = {}
        self._queues: dict[PortRef, tuple[QueueLoad, ...]] = {}

    def put_queues(self, counted: Mapping[PortRef, Counted], now: float) -> None:
        """Take counters of ports' queues, and when they came; the same ones again change nothing."""
        for ref, (counted_s, counters) in counted.items():
            had = self._queued.get(ref)
            if had is not None and counted_s > had[0]:
                loads = _queue_loads(had[1], counters, counted_s - had[0])
                self._queues.pop(ref, None)
                if loads and counted_s - had[0] < self._longest_s:
                    self._queues[ref] = loads
            if had is None or counted_s > had[0]:
                self._queued[ref] = counted_s, counters
        for ref in [ref for ref, (counted_s, _) in self._queued.items() if now - counted_s > self._queues_s]:
            del self._queued[ref]
            self._queues.pop(ref, None)

    def put(self, dpid: int, counts: Mapping[int, PortCount]) -> None:
        """Take a new reading of a switch's ports."""
        last = self._new.get(dpid, {})
        # What was read at the same moment, or before the switch began anew, is left out.
        self._old[dpid] = {
            port: last[port] for port, count in counts.items() if port in last and last[port].at < count.at
        }
        self._new[dpid] = counts

    def keep_only(self, answering: Container[int], known: Container[int]) -> None:
        """Leave out the loads of switches that are not *answering*, until they have sent another reading: theirs are
        not of now. Forget those that are not *known*: whatever can connect may call itself ever new switches.
        """
        self._new = {dpid: counts for dpid, counts in self._new.items() if dpid in known}
        self._old = {
            dpid: counts for dpid, counts in self._old.items() if dpid in answering and dpid in known
        }

    def loads(self, names: FabricNames, rates: Mapping[str, float]) -> list[LinkLoad]:
        """Return the loads of all links.

        *rates*: kbit/s by name of the link; the port's own word for those that are missing.
        """
        return [self._load(link, rates.get(link.name) or link.speed_kbps or None) for link in names.links]

    def counters(self, links: Iterable[NamedLink]) -> list[tuple[str, str, int, int]]:
        """Return (link, direction, bytes, packets) in all, of directions that were read."""
        counters = []
        for link in links:
            for direction, sender, receiver in (("ab", link.a, link.b), ("ba", link.b, link.a)):
                sent, received = _at(self._new, sender), _at(self._new, receiver)
                if sent is not None:
                    counters.append((link.name, direction, sent.tx_bytes, sent.tx_packets))
                elif received is not None:
                    counters.append((link.name, direction, received.rx_bytes, received.rx_packets))
        return counters

    def _load(self, link: NamedLink, rate_kbps: float | None) -> LinkLoad:
        kind = "access" if link.access else "fabric"
        there = self._direction(link.a, link.b, rate_kbps)
        back = self._direction(link.b, link.a, rate_kbps)
        return LinkLoad(link.name, kind, link.up, rate_kbps, there, back)

    def _direction(
        self, sender: PortRef | None, receiver: PortRef | None, rate_kbps: float | None
    ) -> Load | None:
        """Return by what the sender's port has sent; where that is no port of a switch, by what the other has
        received."""
        for end, received in ((sender, False), (receiver, True)):
            old, new = _at(self._old, end), _at(self._new, end)
            if old is None or new is None or not 0 < new.at - old.at < self._longest_s:
                continue
            octets = new.rx_bytes - old.rx_bytes if received else new.tx_bytes - old.tx_bytes
            packets = new.rx_packets - old.rx_packets if received else new.tx_packets - old.tx_packets
            if octets < 0 or packets < 0:
                continue
            seconds = new.at - old.at
            bits = octets * 8 / seconds
            share = None if rate_kbps is None else round(bits / (rate_kbps * 1000), 4)
            queues = () if sender is None else self._queues.get(sender, ())
            waiting = sum(queue.waiting_packets for queue in queues) if queues else None
            dropped = round(sum(queue.dropped_per_s for queue in queues), 2) if queues else None
            return Load(round(bits, 1), round(packets / seconds, 2), share, waiting, dropped, queues)
        return None


def _at(readings: Mapping[int, Mapping[int, PortCount]], end: PortRef | None) -> PortCount | None:
    """Return what was read at one end of a link; None: nothing, or it is no port of a switch."""
    return None if end is None else readings.get(end.dpid, {}).get(end.port)


def _queue_loads(
    old: Sequence[QueueCounters], new: Sequence[QueueCounters], seconds: float
) -> tuple[QueueLoad, ...]:
    """Return the loads of queues; nothing where the queues were made anew in between."""
    if len(old) != len(new) or any(b.sent_bytes < a.sent_bytes for a, b in zip(old, new, strict=True)):
        return ()
    return tuple(
        QueueLoad(
            queue,
            after.waiting_packets,
            round((after.sent_bytes - before.sent_bytes) * 8 / seconds, 1),
            round(max(0, after.dropped_packets - before.dropped_packets) / seconds, 2),
        )
        for queue, (before, after) in enumerate(zip(old, new, strict=True))
    )
