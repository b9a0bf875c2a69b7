"""The other agents: where they are, and what went to and came from each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from capstan_native import Arrivals, EarlyRepairs, LeastDelay, Outstanding, PendingFeedback, SentLog
from crc32c import crc32c

from host_agent.addresses import packed
from host_agent.coding.blocking import BlockingEstimator
from host_agent.coding.outcomes import Outcomes
from host_agent.flows import FlowTable, ReceiveFlow
from host_agent.paths.base import Route
from host_agent.paths.steering import Departures, OwnFlow
from protocol.control import Peer


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
    least_delay: LeastDelay = field(default_factory=LeastDelay)
    """From us to this peer."""
    stamps: set[int] = field(default_factory=set)
    """Paths that reports spoke of."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    flows: FlowTable[int, ReceiveFlow] = field(default_factory=FlowTable)
    addresses: frozenset[bytes] = frozenset()
    """Its overlay addresses: what its inner packets may come from."""
    feedback: PendingFeedback = field(default_factory=PendingFeedback)
    """What the peer has to know."""
    early: EarlyRepairs[EarlyRepair] = field(default_factory=EarlyRepairs)
    """Repairs that overtook every source of their flow, by flow number."""

    def __post_init__(self) -> None:
        address = packed(self.peer.underlay_ip)
        self.own = OwnFlow(-1 - int.from_bytes(address, "big"), crc32c(address))

    def restarted(self, peer: Peer) -> None:
        """The peer came back as a new session: what it had sent before means nothing any more."""
        self.peer = peer
        self.least_delay = LeastDelay()
        self.arrivals = Arrivals()
        self.flows = FlowTable()
        self.feedback = PendingFeedback()
        self.early = EarlyRepairs()
