"""Lone packets: what the core would do with the next ones, told beforehand, so that they need not wait for Python.

A packet that comes alone finds caches cold, and interpreted code then takes two to five times as long. So the loop's
wait (`capstan_native.LonePassage`) carries packets of a few flows by *plans*, which hold while nothing else happens.
The core hears of each packet afterwards, with the time at which it passed, and decides by the same code as ever; what
it decides is what was done, so it is not done again. A difference would be a fault of a plan: it is counted, and what
the core decided is done as well (peers take no datagram twice).

Only ordinary packets fit a plan: see native/datapath/src/lone.rs.
"""

from __future__ import annotations

import socket
from typing import Final, NamedTuple, TypeVar

from capstan_native import PendingFeedback

from host_agent.core import AgentCore
from host_agent.flows import SendFlow
from host_agent.inner_packet import InnerPacket
from host_agent.paths.base import Turn
from host_agent.peers import PeerState
from host_agent.wire import Burst, Outgoing, Run
from protocol.datagram import FLAG_CODED, Kind
from protocol.underlay import TrafficClass

GRACE_S: Final = 0.001
"""How long the core may hear nothing of a packet: the answer to it must not wait for the core."""
MOST_FLOWS: Final = 2
"""Flows in each direction that have plans: those whose packets came alone most recently."""
REST: Final = 32
"""After so many wake-ups without use, plans are made at every `EVERY`-th only: they cost some microseconds."""
EVERY: Final = 8
WINDOW_S: Final = 0.05
MOST_WAKEUPS: Final = 40
"""In a window; after more, the next window has no plans. A host that wakes up so often is hardly ever asleep: plans
save little then, and each packet costs one wake-up more. A ping every 10 ms makes 20."""
AFTER_BURST: Final = 8
"""Lone packets after a burst that get no plan."""
_UNBOUNDED: Final = (1 << 64) - 1
_SHORT, _LONG, _CONTROL = int(TrafficClass.SHORT), int(TrafficClass.LONG), int(TrafficClass.CONTROL)
_SOURCE: Final = int(Kind.SOURCE)

K = TypeVar("K")
Way = tuple[int, int, int | None, int]
"""Flags of the header, type of service, and either the source port or which of the turns gives it."""


class Plans(NamedTuple):
    """What `capstan_native.LonePassage.plan` takes."""

    peers: list[tuple[bytes, int, int, int, int]]
    """Address, next number, session, newest number that came, and how many may come before the peer is told."""
    turns: list[list[int]]
    sends: list[tuple[bytes, int, int, int, int, int, Way | None, Way | None]]
    """Flow, index of its peer, its number, destination port, position, payload until its class or priority changes; the
    ways of control packets and of data."""
    receives: list[tuple[int, int, bytes, int]]
    """Index of the peer, number of the flow, flow, the position that goes out at once."""


NO_PLANS: Final = Plans([], [], [], [])


class LonePackets:
    """Chooses the flows that have plans, makes the plans, and tells the core of what has passed.

    ``outgoing`` and ``deliver``: what the core decided beyond what had been done, in order.
    """

    def __init__(self, core: AgentCore) -> None:
        self._core = core
        self._sends: dict[bytes, None] = {}
        self._receives: dict[tuple[str, int], None] = {}
        """The last ones last."""
        self._idle = 0
        """Wake-ups since a plan was of use."""
        self._wakeups, self._window_end, self._busy = 0, 0.0, False
        self._bursts = 0
        """How many lone packets must still come before there are plans again."""
        self.outgoing: list[Outgoing | Burst] = []
        self.deliver: list[bytes] = []
        self.sent = 0
        self.received = 0
        self.differing = 0
        self.unsent = 0
        self.refused = 0

    def from_host(self, seen: InnerPacket) -> None:
        """A packet of the host came alone."""
        if self._bursts:
            self._bursts -= 1  # an ACK of a transfer, mostly
        else:
            _latest(self._sends, seen.flow)

    def from_peer(self, item: Run) -> None:
        """A run came, which may be a datagram alone."""
        if len(item[11]) > 1:
            self.many()
        elif self._bursts:
            self._bursts -= 1
        elif item[2] == _SOURCE:
            _latest(self._receives, (item[0], item[7]))

    def many(self) -> None:
        """Packets come in bursts: plans would only cost time."""
        self._sends.clear()
        self._receives.clear()
        self._bursts = AFTER_BURST

    # -- what passed ---------------------------------------------------------------------------------

    def left(
        self,
        packet: bytes,
        seen: InnerPacket,
        datagram: tuple[str, int, int, int, bytes],
        done: bool,
        now: float,
    ) -> None:
        """A packet of the host left as this datagram (`Outgoing`), if there was room (*done*)."""
        self._idle = 0
        self.sent += 1
        self.unsent += not done
        self._core.packet_from_host(packet, now, seen)
        decided = self._core.datagrams_to_send()
        if decided and decided[0] == datagram:
            del decided[0]
        else:
            self.differing += 1
        self.outgoing += decided
        self.deliver += self._core.packets_to_deliver()

    def came(self, item: Run, packet: bytes, done: bool, now: float) -> None:
        """A datagram came and its packet was delivered, if the host took it (*done*)."""
        self._idle = 0
        self.received += 1
        self.refused += not done
        self._core.receive_run(item, now)
        decided = self._core.packets_to_deliver()
        if decided and decided[0] == packet:
            del decided[0]
        else:
            self.differing += 1
        self.deliver += decided
        self.outgoing += self._core.datagrams_to_send()

    # -- what is to pass -----------------------------------------------------------------------------

    def plans(self, now: float) -> Plans | None:
        """For the next wait, and for that one only; None: there are none. *now*: when we woke up, in seconds."""
        if now >= self._window_end:
            just_ended = now < self._window_end + WINDOW_S
            self._busy = just_ended and self._wakeups > MOST_WAKEUPS
            self._wakeups, self._window_end = 0, now + WINDOW_S
        self._wakeups += 1
        if self._busy:
            return None
        if self._core.gate.shut or not (self._sends or self._receives):
            return None  # a gate rewrites what is delivered, and has to hear of what leaves at once
        self._idle += 1
        if self._idle > REST and self._idle % EVERY:
            return None
        plans = Plans([], [], [], [])
        known: dict[str, int] = {}
        owners: list[object] = []
        for key in list(self._sends):
            peer, flow = self._core.route(key[5:9]), self._core.send_flows.peek(key)
            if peer is None or flow is None:
                del self._sends[key]
            else:
                self._plan_send(plans, known, owners, peer, flow)
        for underlay_ip, name in list(self._receives):
            peer = self._core.peer(underlay_ip)
            incoming = None if peer is None else peer.flows.peek(name)
            if peer is None or incoming is None:
                del self._receives[underlay_ip, name]
            elif not self._core.impaired and incoming.release.deadline is None and len(incoming.key) == 13:
                at = _peer(plans, known, peer)
                plans.receives.append((at, name, incoming.key, incoming.release.next))
        return plans

    def _plan_send(
        self, plans: Plans, known: dict[str, int], owners: list[object], peer: PeerState, flow: SendFlow
    ) -> None:
        kind = _SHORT if flow.payload < flow.short_bytes else _LONG
        control = self._way(plans, owners, peer, flow, _CONTROL, 0)
        data, budget = None, 0
        policy = self._core.policy.short if kind == _SHORT else self._core.policy.long
        if flow.payload < flow.demote_at and (flow.encoder is None or flow.encoder_class == kind):
            until = min(flow.demote_at, flow.short_bytes) if kind == _SHORT else flow.demote_at
            budget = min(until - flow.payload, _UNBOUNDED)
            data = self._way(plans, owners, peer, flow, kind, FLAG_CODED if policy.coding else 0)
        if control is None and data is None:
            return
        at = _peer(plans, known, peer)
        plans.sends.append((flow.key, at, flow.id, flow.port, flow.position, budget, control, data))

    def _way(
        self, plans: Plans, owners: list[object], peer: PeerState, flow: SendFlow, kind: int, flags: int
    ) -> Way | None:
        port = self._core.steering.policies[kind].ahead(flow, peer.routes[kind])
        if not isinstance(port, Turn):
            return None if port is None else (kind | flags, flow.tos[kind], port, 0)
        for turn, owner in enumerate(owners):
            if owner is port.owner:
                return kind | flags, flow.tos[kind], None, turn
        owners.append(port.owner)
        plans.turns.append(port.ports)
        return kind | flags, flow.tos[kind], None, len(owners) - 1


def _peer(plans: Plans, known: dict[str, int], peer: PeerState) -> int:
    """Which of the plans' peers this is."""
    underlay_ip = peer.peer.underlay_ip
    at = known.get(underlay_ip)
    if at is None:
        at = known[underlay_ip] = len(plans.peers)
        newest = peer.arrivals.newest
        room = 0 if newest is None else max(0, PendingFeedback.DUE - 1 - peer.feedback.waiting)
        address = socket.inet_aton(underlay_ip)
        plans.peers.append((address, peer.number, peer.peer.session, newest or 0, room))
    return at


def _latest(kept: dict[K, None], one: K) -> None:
    kept.pop(one, None)
    kept[one] = None
    if len(kept) > MOST_FLOWS:
        del kept[next(iter(kept))]
