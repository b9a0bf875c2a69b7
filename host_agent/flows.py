"""Flow tables: what the agent keeps of each inner flow and direction, as sender and as receiver."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from capstan_native import FlowPriority, Release, UnitDecoder
from crc32c import crc32c

from host_agent.addresses import text
from host_agent.coding.outcomes import SentUnit
from host_agent.coding.unit import UnitEncoder
from host_agent.coding.window import WindowEstimate
from host_agent.inner_packet import addresses, ports, reverse_flow
from protocol.control import FlowEntry
from protocol.underlay import BASE_PORT, FLOW_KEYS, PRIORITIES, TrafficClass

if TYPE_CHECKING:
    from host_agent.peers import PeerState

IDLE_S: Final = 60.0
MAX_FLOWS: Final = 65536
MAX_FINISHED: Final = 65536
"""Records of flows that are gone and wait for a report."""

NEVER: Final = 1 << 62
"""More bytes than any flow sends."""


@dataclass(slots=True)
class SendFlow:
    """A flow that this host sends. ``payload`` decides its class; the rest is counted since the last report."""

    key: bytes
    id: int
    first: float
    last: float = 0.0
    payload: int = 0
    position: int = 0
    traffic_class: int = TrafficClass.SHORT
    encoder: UnitEncoder | None = None
    encoder_class: int = TrafficClass.NONE
    short_bytes: int = 0
    """It is short while it has sent less payload than this."""
    announced: float | None = None
    """Payload that it was announced with, bytes (inf: it has no end); None: it was not."""
    unit: SentUnit | None = None
    """Its open unit, where outcomes are learned from."""
    window: WindowEstimate | None = None
    """Where units are windows."""
    unacked: tuple[int, float] | None = None
    """TCP: sequence number behind the segment that is being timed, and when it left."""
    peer: PeerState | None = None
    """Where it goes to; known once it is coded."""
    needs: FlowPriority = field(default_factory=FlowPriority)
    """What decides ``demote_at`` and ``tos`` (`host_agent.priority`)."""
    demote_at: int = NEVER
    """Payload at which its priority falls next, in bytes."""
    tos: tuple[int, ...] = ()
    """Type-of-service byte of its packets without ECN, by traffic class."""
    told: bool = False
    """Whether the controller has been or will be told that it has ended."""
    hash: int = 0
    port: int = BASE_PORT
    """UDP destination port: the flow key, what ECMP hashes of the flow beside the hosts."""
    packets: int = 0
    bytes: int = 0
    repairs: int = 0

    def __post_init__(self) -> None:
        self.hash = _mixed(crc32c(self.key))
        self.port = BASE_PORT + self.hash % FLOW_KEYS

    def entry(self) -> FlowEntry:
        return FlowEntry(
            **_identity("sender", self.key),
            traffic_class=TrafficClass(self.traffic_class).name.lower(),
            packets=self.packets,
            bytes=self.bytes,
            first_s=self.first,
            last_s=self.last,
            repairs=self.repairs,
            priority=self.priority,
        )

    @property
    def priority(self) -> int:
        """Of its next packet."""
        return (self.tos[self.traffic_class] >> 2) % PRIORITIES if self.tos else 0

    def forget(self) -> None:
        """Begin to count anew."""
        self.packets = self.bytes = self.repairs = 0


@dataclass(slots=True)
class ReceiveFlow:
    """A flow that this host receives from one peer."""

    key: bytes
    first: float
    release: Release
    reverse: bytes = field(init=False)
    """Of the flow in the other direction, its key."""
    decoder: UnitDecoder | None = None
    last: float = 0.0
    newest: int = -1
    traffic_class: int = TrafficClass.SHORT
    packets: int = 0
    bytes: int = 0
    repairs: int = 0
    recovered: int = 0
    reordered: int = 0
    datagrams: dict[int, int] = field(default_factory=dict)
    """By ``way(traffic_class, stamp)``."""
    released_before: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        self.reverse = reverse_flow(self.key)

    def entry(self) -> FlowEntry:
        held, timeouts, abandoned = self.released_before
        paths: Counter[str] = Counter()
        by_class: dict[str, dict[str, int]] = {}
        for one, count in sorted(self.datagrams.items()):
            traffic_class, stamp = TrafficClass(one >> 16).name.lower(), str(one & 0xFFFF)
            paths[stamp] += count
            by_class.setdefault(traffic_class, {})[stamp] = count
        return FlowEntry(
            **_identity("receiver", self.key),
            traffic_class=TrafficClass(self.traffic_class).name.lower(),
            packets=self.packets,
            bytes=self.bytes,
            first_s=self.first,
            last_s=self.last,
            paths={stamp: paths[stamp] for stamp in sorted(paths, key=int)},
            paths_by_class=by_class,
            repairs=self.repairs,
            recovered=self.recovered,
            lost=self.release.abandoned - abandoned,
            reordered=self.reordered,
            held=self.release.held_total - held,
            release_timeouts=self.release.timeouts - timeouts,
        )

    def forget(self) -> None:
        """Begin to count anew."""
        self.packets = self.bytes = self.repairs = self.recovered = self.reordered = 0
        self.datagrams = {}
        self.released_before = (self.release.held_total, self.release.timeouts, self.release.abandoned)


def way(traffic_class: int, stamp: int) -> int:
    """A traffic class and the stamp of the path that it took, 16 bits, as one number."""
    return traffic_class << 16 | stamp


def _mixed(value: int) -> int:
    """CRC is linear: flows whose ports differ in one bit would differ in the same hash bits (MurmurHash3's finish)."""
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16


def _identity(side: str, key: bytes) -> dict[str, Any]:
    source, destination = addresses(key)
    source_port, destination_port = ports(key)
    return {
        "side": side,
        "protocol": key[0],
        "source": text(source),
        "source_port": source_port,
        "destination": text(destination),
        "destination_port": destination_port,
    }


STALE_RUN: Final = 64
"""So many flows in a row without a packet, and all before them have none: to be asked for moves a flow, too."""
K = TypeVar("K")
F = TypeVar("F", SendFlow, ReceiveFlow)


class FlowTable(Generic[K, F]):
    """Flows by key, bounded: idle ones go after IDLE_S, the longest unseen one when the table is full.

    What was counted of a flow that goes is kept for the next report.
    """

    def __init__(self, limit: int = MAX_FLOWS) -> None:
        self._flows: OrderedDict[K, F] = OrderedDict()
        self._limit = limit
        self._finished: deque[FlowEntry] = deque(maxlen=MAX_FINISHED)
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._flows)

    def __iter__(self) -> Iterator[F]:
        return iter(self._flows.values())

    def get(self, key: K) -> F | None:
        """A flow; asking for it counts as seeing it."""
        flow = self._flows.get(key)
        if flow is not None:
            self._flows.move_to_end(key)
        return flow

    def peek(self, key: K) -> F | None:
        """A flow, without counting as seeing it."""
        return self._flows.get(key)

    def put(self, key: K, flow: F) -> F | None:
        """Take in a new flow. Returns the one that had to go for it, if any."""
        gone = None
        if key in self._flows:
            gone = self.end(key)
        elif len(self._flows) >= self._limit:
            gone = self.end(next(iter(self._flows)))
            self.evicted += 1
        self._flows[key] = flow
        return gone

    def end(self, key: K) -> F:
        """Drop and return a flow."""
        flow = self._flows.pop(key)
        if flow.packets or flow.repairs:
            self._finished.append(flow.entry())
        return flow

    def expire(self, now: float) -> list[F]:
        """Drop and return the flows that were idle for IDLE_S."""
        gone = []
        while self._flows:
            key, flow = next(iter(self._flows.items()))
            if now - flow.last <= IDLE_S:
                break
            gone.append(self.end(key))
        return gone

    def recent(self, since: float) -> Iterator[F]:
        """Flows with a packet since then, the last seen first; costs nothing for those that were not seen for long."""
        stale = 0
        for flow in reversed(self._flows.values()):
            if flow.last > since:
                stale = 0
                yield flow
            elif (stale := stale + 1) > STALE_RUN:
                return

    def report(self, forget: bool) -> list[FlowEntry]:
        """What was counted of all flows since the last report that forgot."""
        entries = [*self._finished, *(flow.entry() for flow in self if flow.packets or flow.repairs)]
        if forget:
            self._finished.clear()
            for flow in self:
                flow.forget()
        return entries
