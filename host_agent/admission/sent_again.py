"""What TCP on this host sends again, and why, as its agent sees it. Pure.

A payload that leaves a second time is a *story*: it begins with the first such byte and ends when all is acknowledged
that had left until then (the recovery point of RFC 6675). The trigger is what the agent has seen by its first byte:
selective acknowledgements above it, or three duplicate ones (RFC 5681), also if they were a moment ago, for the host
hears of what fills the gap later than its agent; else a time-out where it is the oldest byte in flight and nothing was
acknowledged for that long; else a tail loss probe (RFC 8985, 7); unless it and its acknowledgement have crossed in the
host. Whether the receiver had those bytes already it says by D-SACK (RFC 2883), up to `SETTLE_S` after they left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from host_agent.addresses import text
from host_agent.inner_packet import ACK, FIN, RST, SYN, InnerPacket, addresses, ports
from protocol.datagram import NUMBER_MODULUS, serial_difference
from protocol.sent_again import FlowState, Resent, Trigger

SETTLE_S: Final = 1.0
"""How long after its last byte a story may be judged."""
IDLE_S: Final = 60.0
MAX_CONNECTIONS: Final = 65536
LEAST_TIMEOUT_S: Final = 0.2
"""Linux's least retransmission time-out."""
_LATENESS_S: Final = 1.0
_MOST_RANGES: Final = 256
_DUPLICATES: Final = 3
_SACK: Final = 5
_ONLY_TIMESTAMPS: Final = b"\x01\x01\x08\x0a"


@dataclass(slots=True)
class _Story:
    state: FlowState
    trigger: Trigger
    begun: float
    quiet_s: float
    late_s: float
    in_flight: int
    recover: int
    """Sequence number behind all that had left."""
    last: float = 0.0
    bytes: int = 0
    queue_bytes: int = 0
    needless_bytes: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Connection:
    highest: int
    acked: int
    since: float
    """When something new was acknowledged last, or the oldest byte in flight left."""
    last: float
    joined: bool = False
    """It was open before we saw it: what it skips may have left by then."""
    sacked: int | None = None
    """Right end of the highest bytes that were acknowledged out of order; None: there are none."""
    duplicates: int = 0
    gap_at: float = -math.inf
    """When the receiver told of a gap last."""
    window: int = -1
    unseen: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that were skipped: they have not reached the agent."""
    story: _Story | None = None
    """The one that goes on."""
    unjudged: list[_Story] = field(default_factory=list)


class _Lateness:
    """The most of the last second or two."""

    def __init__(self) -> None:
        self._since = 0.0
        self._now = self._before = 0.0

    def add(self, late_s: float, now: float) -> None:
        self._turn(now)
        self._now = max(self._now, late_s)

    def most(self, now: float) -> float:
        self._turn(now)
        return max(self._now, self._before)

    def _turn(self, now: float) -> None:
        if now - self._since >= _LATENESS_S:
            self._before = self._now if now - self._since < 2 * _LATENESS_S else 0.0
            self._now, self._since = 0.0, now


class ResentBytes:
    """All TCP connections of a host. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._connections: Final[dict[bytes, _Connection]] = {}
        self._open: Final[set[bytes]] = set()
        """Of those with a story that is not told yet."""
        self._told: list[Resent] = []
        self._late = _Lateness()

    def late(self, late_s: float, now: float) -> None:
        """The agent's loop woke so much later than it wanted."""
        self._late.add(late_s, now)

    def __contains__(self, key: bytes) -> bool:
        return key in self._connections

    def left(self, packet: bytes, seen: InnerPacket, state: FlowState, now: float) -> int:
        """The host has sent a TCP packet, or a super-packet, of a flow in that state. Returns the bytes sent again."""
        at = seen.transport
        start = int.from_bytes(packet[at + 4 : at + 8], "big")
        if packet[at + 13] & SYN:
            self._end(seen.flow)
            behind = (start + 1) % NUMBER_MODULUS
            self._begin(seen.flow, _Connection(behind, behind, now, now))
            return 0
        connection = self._connections.get(seen.flow)
        if not seen.payload:
            if packet[at + 13] & RST:
                self._end(seen.flow)
            return 0
        if connection is None:
            connection = _Connection(start, start, now, now, joined=True)
            self._begin(seen.flow, connection)
        connection.last = now
        if connection.highest == connection.acked:
            connection.since = now
        end = (start + seen.payload) % NUMBER_MODULUS
        if serial_difference(start, connection.highest) > 0 and not connection.joined:
            connection.unseen.append((connection.highest, start))
            del connection.unseen[:-_MOST_RANGES]
        again = connection.highest if serial_difference(end, connection.highest) > 0 else end
        repeated = max(0, serial_difference(again, start))
        if repeated:
            self._again(seen.flow, connection, start, again, state, now)
        if serial_difference(end, connection.highest) > 0:
            connection.highest = end
        return repeated

    def arrived(self, packet: bytes, seen: InnerPacket, now: float) -> None:
        """A TCP packet of a peer."""
        connection = self._connections.get(seen.reverse)
        at = seen.transport
        flags = packet[at + 13]
        if connection is None or not flags & ACK:
            return
        if flags & RST:
            self._end(seen.reverse)
            return
        ack = int.from_bytes(packet[at + 8 : at + 12], "big")
        window = packet[at + 14] << 8 | packet[at + 15]
        ahead = serial_difference(ack, connection.acked)
        if ahead > 0:
            connection.acked, connection.since, connection.duplicates = ack, now, 0
            if serial_difference(ack, connection.highest) > 0:
                connection.highest = ack
            if connection.sacked is not None and serial_difference(ack, connection.sacked) >= 0:
                connection.sacked = None
            if connection.unseen:
                connection.unseen = [one for one in connection.unseen if serial_difference(one[1], ack) > 0]
            if connection.story is not None and serial_difference(ack, connection.story.recover) >= 0:
                connection.story = None
        elif ahead == 0 and not seen.payload and not flags & (SYN | FIN) and window == connection.window:
            connection.duplicates += connection.highest != ack
            if connection.duplicates >= _DUPLICATES:
                connection.gap_at = now
        connection.window = window
        blocks = list(_sack_blocks(packet, at))
        if blocks:
            self._selective(connection, ack, blocks, now)

    def settle(self, now: float) -> None:
        """End what has been settled by now, and forget connections that have been idle for long."""
        for key in list(self._open):
            connection = self._connections[key]
            while connection.unjudged and now - connection.unjudged[0].last >= SETTLE_S:
                story = connection.unjudged.pop(0)
                if story is connection.story:
                    connection.story = None
                self._told.append(_resent(key, story))
            if not connection.unjudged:
                self._open.discard(key)
        for key in [key for key, one in self._connections.items() if now - one.last > IDLE_S]:
            self._end(key)

    def stories(self) -> list[Resent]:
        """What is over; each is given once."""
        told, self._told = self._told, []
        return told

    def _begin(self, key: bytes, connection: _Connection) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            self._end(next(iter(self._connections)))
        self._connections[key] = connection

    def _end(self, key: bytes) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            self._told += [_resent(key, story) for story in connection.unjudged]
        self._open.discard(key)

    def _again(
        self, key: bytes, connection: _Connection, start: int, end: int, state: FlowState, now: float
    ) -> None:
        trigger = _trigger(connection, start, end, now)
        story = connection.story
        timed_out = (
            story is not None
            and trigger == "time-out" != story.trigger
            and now - max(story.last, connection.since) >= LEAST_TIMEOUT_S
        )
        if story is None or timed_out:
            quiet = max(0.0, now - connection.since)
            in_flight = serial_difference(connection.highest, connection.acked)
            late = self._late.most(now)
            story = _Story(state, trigger, now, quiet, late, in_flight, connection.highest)
            connection.story = story
            connection.unjudged.append(story)
            self._open.add(key)
        story.last, story.recover = now, connection.highest
        story.bytes += serial_difference(end, start)
        unseen = []
        for low, high in connection.unseen:
            common = _common(low, high, start, end)
            story.queue_bytes += common
            if not common:
                unseen.append((low, high))
                continue
            if serial_difference(start, low) > 0:
                unseen.append((low, start))
            if serial_difference(high, end) > 0:
                unseen.append((end, high))
        connection.unseen = unseen
        if len(story.ranges) < _MOST_RANGES:
            story.ranges.append((start, end))

    def _selective(
        self, connection: _Connection, ack: int, blocks: list[tuple[int, int]], now: float
    ) -> None:
        low, high = blocks[0]
        inside = len(blocks) > 1 and _common(*blocks[0], *blocks[1]) == serial_difference(high, low)
        if serial_difference(high, ack) <= 0 or inside:
            for story in connection.unjudged:
                had = sum(_common(low, high, *one) for one in story.ranges)
                room = story.bytes - story.queue_bytes - story.needless_bytes
                story.needless_bytes += min(had, max(0, room))
            blocks = blocks[1:]
        if blocks:
            connection.gap_at = now
        for _, right in blocks:
            if serial_difference(right, ack) > 0 and (
                connection.sacked is None or serial_difference(right, connection.sacked) > 0
            ):
                connection.sacked = right


def _trigger(connection: _Connection, start: int, end: int, now: float) -> Trigger:
    if serial_difference(end, connection.acked) <= 0:
        return "crossed"
    if connection.sacked is not None and serial_difference(connection.sacked, start) > 0:
        return "gap"
    quiet = now - connection.since
    if connection.duplicates >= _DUPLICATES or max(quiet, now - connection.gap_at) < LEAST_TIMEOUT_S:
        return "gap"
    return "time-out" if start == connection.acked and quiet >= 0.9 * LEAST_TIMEOUT_S else "probe"


def _common(low: int, high: int, start: int, end: int) -> int:
    """Numbers that two ranges share."""
    first = low if serial_difference(low, start) > 0 else start
    last = high if serial_difference(end, high) > 0 else end
    return max(0, serial_difference(last, first))


def _sack_blocks(packet: bytes, at: int) -> Iterator[tuple[int, int]]:
    here, end = at + 20, at + (packet[at + 12] >> 4) * 4
    if end - here == 12 and packet[here : here + 4] == _ONLY_TIMESTAMPS:
        return
    while here < end and packet[here]:
        if packet[here] == 1:
            here += 1
            continue
        size = packet[here + 1] if here + 1 < end else 0
        if size < 2 or here + size > end:
            return
        if packet[here] == _SACK:
            for block in range(here + 2, here + size - 7, 8):
                yield (
                    int.from_bytes(packet[block : block + 4], "big"),
                    int.from_bytes(packet[block + 4 : block + 8], "big"),
                )
        here += size


def _resent(key: bytes, story: _Story) -> Resent:
    (source, destination), (source_port, destination_port) = addresses(key), ports(key)
    return Resent(
        text(source),
        source_port,
        text(destination),
        destination_port,
        story.state,
        story.trigger,
        round(story.begun, 6),
        round(story.last - story.begun, 6),
        round(story.quiet_s, 6),
        round(story.late_s, 6),
        story.in_flight,
        story.bytes,
        story.needless_bytes,
        story.queue_bytes,
    )
