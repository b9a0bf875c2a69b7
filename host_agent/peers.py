"""The other agents: where they are, and what went to and came from each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from host_agent.arrivals import Arrivals
from host_agent.coding.blocking import BlockingEstimator
from host_agent.flows import FlowTable, ReceiveFlow
from host_agent.sent import Outstanding, SentLog
from protocol.control import Peer
from protocol.datagram import Feedback, Header, Receipt, serial_difference

RECEIPTS_PER_FEEDBACK: Final = 64
MAX_EARLY_REPAIRS: Final = 64


class EarlyRepair(NamedTuple):
    """A repair of a flow that is not known yet."""

    header: Header
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
    estimator: BlockingEstimator | None = None
    least_delay_us: int | None = None
    stamps: set[int] = field(default_factory=set)
    """Paths that reports spoke of."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    flows: FlowTable[int, ReceiveFlow] = field(default_factory=FlowTable)
    receipts: list[Receipt] = field(default_factory=list)
    receipts_since: float = 0.0
    recovered: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    early: dict[int, list[EarlyRepair]] = field(default_factory=dict)
    """Repairs that overtook every source of their flow, by flow number."""

    def restarted(self, peer: Peer) -> None:
        """The peer came back as a new session: what it had sent before means nothing any more."""
        self.peer = peer
        self.least_delay_us = None
        self.arrivals = Arrivals()
        self.flows = FlowTable()
        self.receipts, self.lost, self.recovered, self.early = [], [], 0, {}

    def receipt(self, number: int, stamp: int, delay_us: int, now: float) -> None:
        """A datagram came: to be told in the next feedback."""
        if not self.receipts:
            self.receipts_since = now
        self.receipts.append(Receipt(number, stamp, delay_us))

    def above_least(self, delay_us: int) -> int:
        """A delay as microseconds above the least from us to this peer: its clock may be another machine's."""
        if self.least_delay_us is None or serial_difference(delay_us, self.least_delay_us) < 0:
            self.least_delay_us = delay_us
        return serial_difference(delay_us, self.least_delay_us)

    def keep_early(self, repair: EarlyRepair) -> bool:
        """Keep a repair until its flow is known; False: there are too many already."""
        if sum(map(len, self.early.values())) >= MAX_EARLY_REPAIRS:
            return False
        self.early.setdefault(repair.header.flow, []).append(repair)
        return True

    def feedbacks(self) -> list[Feedback]:
        """All that is to be told now, in as many feedbacks as it takes."""
        receipts, lost, recovered = self.receipts, self.lost, self.recovered
        self.receipts, self.lost, self.recovered = [], [], 0
        told = []
        while receipts or lost or recovered:
            told.append(
                Feedback(
                    tuple(receipts[: Feedback.MAX_RECEIPTS]), tuple(lost[: Feedback.MAX_LOST]), recovered
                )
            )
            receipts, lost, recovered = receipts[Feedback.MAX_RECEIPTS :], lost[Feedback.MAX_LOST :], 0
        return told
