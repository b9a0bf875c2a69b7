"""The other agents: where they are, and what went to and came from each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from capstan_native import Outstanding, Receipts, SentLog
from crc32c import crc32c

from host_agent.addresses import packed
from host_agent.arrivals import Arrivals
from host_agent.coding.blocking import BlockingEstimator
from host_agent.coding.outcomes import Outcomes
from host_agent.flows import FlowTable, ReceiveFlow
from host_agent.paths.base import Route
from host_agent.paths.steering import Departures, OwnFlow
from protocol.control import Peer
from protocol.datagram import MAX_LOST, NUMBER_MODULUS, serial_difference
from protocol.underlay import STAMP_FIRST, STAMP_LAST

RECEIPTS_PER_FEEDBACK: Final = 64
MAX_EARLY_REPAIRS: Final = 64


def _receipts() -> Receipts:
    return Receipts(STAMP_FIRST, STAMP_LAST)


class EarlyRepair(NamedTuple):
    """A repair of a flow that is not known yet."""

    traffic_class: int
    position: int
    body: bytes
    stamp: int


@dataclass(slots=True)
class PeerState:
    """One peer. ``peer`` is what the controller says of it; everything else is ours."""

    peer: Peer
    number: int = 0
    """Number of the next datagram to this peer."""
    sent: SentLog = field(default_factory=SentLog)
    outstanding: Outstanding = field(default_factory=Outstanding)
    outcomes: Outcomes = field(default_factory=Outcomes)
    routes: tuple[Route, ...] = ()
    """The ways to its leaf, by traffic class."""
    departures: Departures | None = None
    """Kept while a path policy learns."""
    own: OwnFlow = field(init=False)
    """Our feedback to it, as a flow."""
    estimator: BlockingEstimator | None = None
    least_delay_us: int | None = None
    stamps: set[int] = field(default_factory=set)
    """Paths that reports spoke of."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    flows: FlowTable[int, ReceiveFlow] = field(default_factory=FlowTable)
    addresses: frozenset[bytes] = frozenset()
    """Its overlay addresses: what its inner packets may come from."""
    receipts: Receipts = field(default_factory=_receipts)
    """What the next feedback tells of."""
    full: list[bytes] = field(default_factory=list)
    """Feedback that is complete and waits to be sent."""
    recovered: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    early: dict[int, list[EarlyRepair]] = field(default_factory=dict)
    """Repairs that overtook every source of their flow, by flow number."""

    def __post_init__(self) -> None:
        address = packed(self.peer.underlay_ip)
        self.own = OwnFlow(-1 - int.from_bytes(address, "big"), crc32c(address))

    def restarted(self, peer: Peer) -> None:
        """The peer came back as a new session: what it had sent before means nothing any more."""
        self.peer = peer
        self.least_delay_us = None
        self.arrivals = Arrivals()
        self.flows = FlowTable()
        self.receipts = _receipts()
        self.full, self.lost, self.recovered, self.early = [], [], 0, {}

    def receipt(self, number: int, stamp: int, delay_us: int) -> bool:
        """A datagram came: to be told in the next feedback. Whether that is full."""
        if not self.receipts.add(number, stamp, delay_us):
            self._close()
            self.receipts.add(number, stamp, delay_us)
        return len(self.receipts) >= RECEIPTS_PER_FEEDBACK

    def receipt_run(self, first: int, source_ports: list[int], delay_us: int) -> bool:
        """As `receipt`, of datagrams with consecutive numbers from *first* on and one delay, by what they came from."""
        for at in range(0, len(source_ports), RECEIPTS_PER_FEEDBACK):
            some, number = source_ports[at : at + RECEIPTS_PER_FEEDBACK], (first + at) % NUMBER_MODULUS
            if not self.receipts.add_run(number, some, delay_us):
                self._close()
                self.receipts.add_run(number, some, delay_us)
        return len(self.receipts) >= RECEIPTS_PER_FEEDBACK

    @property
    def has_news(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.receipts or self.full or self.lost or self.recovered)

    def feedbacks(self) -> list[bytes]:
        """All that is to be told now, as bodies of FEEDBACK datagrams."""
        while self.receipts or self.lost or self.recovered:
            self._close()
        told, self.full = self.full, []
        return told

    def above_least(self, delay_us: int) -> int:
        """A delay as microseconds above the least from us to this peer: its clock may be another machine's."""
        if self.least_delay_us is None or serial_difference(delay_us, self.least_delay_us) < 0:
            self.least_delay_us = delay_us
        return serial_difference(delay_us, self.least_delay_us)

    def keep_early(self, flow: int, repair: EarlyRepair) -> int:
        """Keep a repair until its flow is known. Returns how many had to go: those of the flow that waits longest."""
        self.early.setdefault(flow, []).append(repair)
        if sum(map(len, self.early.values())) <= MAX_EARLY_REPAIRS:
            return 0
        return len(self.early.pop(next(iter(self.early))))

    def _close(self) -> None:
        self.full.append(self.receipts.take(self.lost[:MAX_LOST], min(self.recovered, 0xFFFF)))
        self.lost = self.lost[MAX_LOST:]
        self.recovered = max(0, self.recovered - 0xFFFF)
