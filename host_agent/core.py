"""The agent's decisions, on plain data: packets and datagrams in, datagrams and packets out, time passed in.

The shape is that of aioquic's connection: `packet_from_host`, `receive_datagram` and `handle_timer` take what
happened; `datagrams_to_send`, `packets_to_deliver` and `get_timer` give what follows. Times are seconds of one
monotonic clock.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from host_agent import tunnel
from host_agent.addresses import packed
from host_agent.admission.gate import Gate
from host_agent.checksum import complete
from host_agent.flows import MAX_FINISHED, FlowTable, ReceiveFlow, SendFlow
from host_agent.impairment import Impairment
from host_agent.inner_packet import TCP, InnerPacket, PacketError, is_group_address, look
from host_agent.paths.own import OwnPathPolicy
from host_agent.peers import PeerState
from host_agent.receiving import Receiver
from host_agent.run_intake import take_coded_run, take_run
from host_agent.segments import header_bytes, tcp_segments
from host_agent.sending import Sender
from host_agent.wire import Arrived, Burst, CodedRun, Outgoing, Run, parts
from protocol.control import FinishedFlows, FlowEntry, FlowTypes, Impair, PathLoad, Peer
from protocol.datagram import (
    HEADER_BYTES,
    DatagramError,
    Kind,
    decode_fields,
    encode_fields,
)
from protocol.policy import DEFAULT_POLICY, Policy

ICMP_PER_S: Final = 100.0
"""Errors sent per second at most (RFC 1812, 4.3.2.8)."""
BURST_SEGMENTS: Final = 4
"""Super-packets of fewer segments are cheaper one by one."""
_ECN: Final = 0b11
_REPAIR: Final = int(Kind.REPAIR)
SWEEP_S: Final = 1.0
"""How often idle flows are looked for."""


class AgentCore:
    """One host's agent.

    Args:
        host: our name in the directory.
        session: the random number of this start, as told to the controller.
        mtu: bytes of the largest inner packet.
        rng: all randomness there is.
        broadcasts: broadcast addresses of the overlay, 4 bytes each.
        own_path: what ``entropy: file`` means here.
    """

    def __init__(
        self,
        host: str,
        session: int,
        mtu: int,
        rng: np.random.Generator,
        now: float = 0.0,
        broadcasts: frozenset[bytes] = frozenset(),
        own_path: OwnPathPolicy | None = None,
    ) -> None:
        self.host = host
        self.mtu = mtu
        self._broadcasts = broadcasts
        self._icmp_tokens = ICMP_PER_S
        self._icmp_at = now
        self.policy: Policy = DEFAULT_POLICY
        self._rng = rng
        self._counts: Counter[str] = Counter()
        self._peers: dict[str, PeerState] = {}
        self._routes: dict[bytes, PeerState] = {}
        self._directory_known = False
        self._outgoing: list[Outgoing | Burst] = []
        self._deliver: list[bytes] = []
        self._impairment: Impairment[Arrived] | None = None
        self._sender = Sender(session, rng, self._outgoing, self._counts, own_path)
        self.steering = self._sender.steering
        self._receiver = Receiver(self._sender, self._deliver, self._counts)
        self.gate = Gate(self._sender)
        """Of flows that ask the controller before they send."""
        self._now = now
        self._next_sweep = now + SWEEP_S
        self._gone: list[FlowEntry] = []
        """Records of flows of peers that are gone, until the next report."""

    # -- what the controller says --------------------------------------------------------------------

    def set_policy(self, policy: Policy, now: float) -> None:
        """Act on this policy from the next packet on; flows, positions and numbers go on. Raises PolicyError."""
        self._sender.steering.check(policy)
        self.policy = policy
        self._sender.set_policy(policy, self._peers.values(), now)
        self._receiver.set_policy(policy)
        self.gate.set_policy(policy.admission, now)

    def set_directory(self, peers: Sequence[Peer], now: float) -> None:
        """The agents that there are, by overlay address; those that are gone get nothing and are not heard."""
        known, self._peers, self._routes = self._peers, {}, {}
        self._directory_known = True
        for peer in peers:
            if peer.host == self.host:
                self._receiver.own = frozenset(map(packed, peer.overlay))
                continue
            state = known.get(peer.underlay_ip)
            if state is None:
                state = PeerState(peer)
            elif state.peer.session != peer.session:
                self._drop(state)
                state.restarted(peer)
            else:
                if state.peer.leaf != peer.leaf:
                    state.estimator = None
                state.peer = peer
            self._sender.adopt(state)
            self._peers[peer.underlay_ip] = state
            state.addresses = frozenset(map(packed, peer.overlay))
            self._routes.update(dict.fromkeys(state.addresses, state))
        for underlay_ip, state in known.items():
            if underlay_ip not in self._peers:
                self._drop(state)

    def set_paths(
        self, paths: Mapping[str, tuple[int, ...]], by_class: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Which paths are alive from our leaf (`protocol.control.Paths`); path policies keep to them."""
        self._sender.steering.set_paths(paths, by_class)

    def path_load(self, now: float) -> PathLoad | None:
        """What the other agents of our leaf are to know of us; None: no path policy shares anything."""
        return self._sender.steering.path_load(now)

    def set_path_load(self, load: PathLoad, now: float) -> None:
        """What the other agents of our leaf have together on its paths, from now on."""
        self._sender.steering.set_path_load(load, now)

    def set_flow_types(self, types: FlowTypes) -> None:
        """Types of flows with thresholds of their own; in force from each flow's next packet on."""
        self._sender.set_types(types)

    def finished_flows(self, now: float) -> FinishedFlows | None:
        """Flows of our host that ended since the last time, where the policy predicts; None: none did."""
        return self._sender.finished.take(now)

    def set_impairment(self, setting: Impair) -> None:
        """Harm what arrives from now on, on purpose; all zero: stop. What is delayed already comes in its time."""
        if self._impairment is None:
            self._impairment = Impairment(setting, self._rng)
        else:
            self._impairment.set(setting)

    def announce(self, key: bytes, size: float) -> None:
        """The host will send *size* bytes of payload on this flow (`InnerPacket.flow`); `math.inf`: without end."""
        self._counts["flows_announced"] += 1
        self._sender.announce(key, size)

    def route(self, destination: bytes) -> PeerState | None:
        """The peer that has this overlay address."""
        return self._routes.get(destination)

    def peer(self, underlay_ip: str) -> PeerState | None:
        """The peer at this address of the underlay."""
        return self._peers.get(underlay_ip)

    @property
    def impaired(self) -> bool:
        """Whether what arrives is harmed on purpose."""
        return self._impairment is not None and self._impairment.harmful

    # -- what happens --------------------------------------------------------------------------------

    def packet_from_host(self, packet: bytes, now: float, seen: InnerPacket | None = None) -> None:
        """An inner IP packet that the host sends into the overlay; *seen*: what `look` says of it, if it was asked."""
        try:
            seen = seen or look(packet)
        except PacketError as error:
            self._counts[error.reason] += 1
            return
        peer = self._routes.get(seen.destination)
        if peer is None:
            if is_group_address(seen.destination) or seen.destination in self._broadcasts:
                self._counts["dropped_group_address"] += 1
                return
            if not self._directory_known:
                # an error would end connections that only wait for an agent that was started again
                self._counts["dropped_no_directory"] += 1
                return
            self._counts["dropped_no_such_host"] += 1
            self._answer(tunnel.unreachable(packet), now)
            return
        if len(packet) <= self.mtu:
            self._sender.send(peer, packet, seen, now)
            if self.gate.shut:
                self.gate.sent(peer, packet, seen, now)
        elif tunnel.dont_fragment(packet):
            self._counts["dropped_too_big"] += 1
            self._answer(tunnel.too_big(packet, self.mtu), now)
        else:
            self._counts["fragmented"] += 1
            for piece in tunnel.fragment(complete(packet, seen), self.mtu):
                self._sender.send(peer, piece, look(piece), now)

    def super_packet_from_host(
        self, packet: bytes, size: int, now: float, seen: InnerPacket | None = None
    ) -> None:
        """A TCP packet that the host left us to cut into segments of *size* bytes of payload."""
        try:
            seen = seen or look(packet)
        except PacketError as error:
            self._counts[error.reason] += 1
            return
        if seen.protocol != TCP or seen.flow[-4:] == bytes(4) or seen.payload <= size or size <= 0:
            self.packet_from_host(packet, now, seen)
            return
        peer = self._routes.get(seen.destination)
        fits = header_bytes(packet, seen) + size <= self.mtu
        few = seen.payload <= (BURST_SEGMENTS - 1) * size
        if peer is None or not fits or few:
            rows, last = tcp_segments(packet, seen, size)
            for row in rows[:-1]:
                self.packet_from_host(row.tobytes(), now)
            self.packet_from_host(rows[-1, :last].tobytes(), now)
            return
        self._sender.send_super(peer, packet, seen, size, now)
        if self.gate.shut:
            self.gate.sent(peer, packet, seen, now)

    def receive_datagram(self, data: bytes, underlay_ip: str, source_port: int, tos: int, now: float) -> None:
        """A datagram that came from the underlay, whoever sent it."""
        self._now = now
        if self._impairment is None or not self._impairment.harmful:
            self._receive(data, underlay_ip, source_port, tos, now)
            return
        for item in self._impairment.arrive(Arrived(data, underlay_ip, source_port, tos), now):
            self._receive(self._impairment.damage(item.data), *item[1:], now)

    def receive_run(self, run: Run | CodedRun, now: float) -> None:
        """Datagrams that came from the underlay one after the other, sound but from whomever."""
        self._now = now
        if len(run) == 2:
            peer = self._peers.get(run[0][0])
            known = peer is not None and run[0][4] == peer.peer.session and not self._harmed
            if peer is None or not known or not take_coded_run(self._receiver, peer, run, now):
                for part in parts(run):
                    self.receive_run(part, now)
            return
        if self._harmed:
            underlay_ip, tos, kind, flags, session, number, sent_us, name, position, _, ports, bodies = run
            step = 0 if kind == _REPAIR else 1
            for offset, body in enumerate(bodies):
                place = position + offset * step
                data = encode_fields(kind, flags, session, number + offset, sent_us, name, place, body)
                self.receive_datagram(data, underlay_ip, ports[offset], tos, now)
            return
        peer = self._peers.get(run[0])
        if peer is None or run[4] != peer.peer.session:
            reason = "unknown_peer" if peer is None else "other_session"
            self._counts[f"dropped_{reason}"] += len(run[11])
            return
        take_run(self._receiver, peer, run, self._counts, now)

    @property
    def _harmed(self) -> bool:
        return self._impairment is not None and self._impairment.harmful

    def _drop(self, peer: PeerState) -> None:
        """Forget what a peer has sent: it is gone, or began anew."""
        self._receiver.drop(peer)
        self._gone = (self._gone + peer.flows.report(forget=True))[-MAX_FINISHED:]

    def _receive(self, data: bytes, underlay_ip: str, source_port: int, tos: int, now: float) -> None:
        peer = self._peers.get(underlay_ip)
        if peer is None:
            self._counts["dropped_unknown_peer"] += 1
            return
        try:
            kind, flags, session, number, sent_us, flow, position = decode_fields(data)
            if session != peer.peer.session:
                self._counts["dropped_other_session"] += 1
                return
            if not peer.arrivals.accept(number, now):
                self._counts["dropped_replayed"] += 1
                return
            sent = (number, sent_us)
            self._receiver.receive(
                peer, kind, flags, sent, flow, position, data[HEADER_BYTES:], None, source_port, tos, now
            )
        except (DatagramError, PacketError) as error:
            self._counts[f"dropped_{error.reason}"] += 1

    def handle_timer(self, now: float) -> None:
        """Do what is due: to be called when `get_timer`'s time has come, harmless at any other."""
        if self._impairment is not None:
            for item in self._impairment.due(now):
                self._receive(self._impairment.damage(item.data), *item[1:], now)
        self._now = now
        self.gate.handle_timer(now)
        self._sender.coded.handle_timer(now)
        self._receiver.handle_timer(self._peers.values(), now)
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP_S
            self._sender.sweep(now)
            self.gate.sweep(now)
            for peer in self._peers.values():
                self._receiver.forgotten(peer.flows.expire(now))

    # -- what follows --------------------------------------------------------------------------------

    def get_timer(self) -> float:
        """When `handle_timer` wants to be called."""
        timer = self._next_sweep
        for other in (self._sender.coded.deadline(), self._receiver.deadline(), self.gate.get_timer()):
            if other is not None and other < timer:
                timer = other
        if self._impairment is not None:
            other = self._impairment.deadline()
            if other is not None and other < timer:
                timer = other
        return timer

    def datagrams_to_send(self) -> list[Outgoing | Burst]:
        """Datagrams for the underlay, in order; each is given once."""
        if not self._outgoing:
            return []
        outgoing = self._outgoing[:]
        self._outgoing.clear()
        return outgoing

    def packets_to_deliver(self) -> list[bytes]:
        """Inner packets for the host, in order; each is given once."""
        if not self._deliver and not self.gate.shut:
            return []
        packets = self._deliver[:]
        self._deliver.clear()
        return self.gate.delivered(packets, self._now) if self.gate.shut else packets

    def counters(self) -> dict[str, float]:
        """Totals since the start, by name."""
        totals = Counter(self._counts)
        totals.update(self._sender.coded.unit_outcomes())
        totals.update(self.gate.counters())
        for peer in self._peers.values():
            totals["datagrams_lost"] += peer.arrivals.lost
            totals["datagrams_late"] += peer.arrivals.late
        totals["finished_flows_dropped"] += self._sender.finished.dropped
        totals["send_flows"] = len(self.send_flows)
        totals["receive_flows"] = sum(len(peer.flows) for peer in self._peers.values())
        return dict(totals)

    @property
    def send_flows(self) -> FlowTable[bytes, SendFlow]:
        """The flows that this host sends."""
        return self._sender.flows

    def blocking_probability(self, now: float) -> dict[str, float]:
        """Estimated blocking probability towards each peer (by host name), where coding needs one."""
        return {
            peer.peer.host: peer.estimator.blocking_probability(now)
            for peer in self._peers.values()
            if peer.estimator is not None
        }

    def flow_report(self, forget: bool) -> list[FlowEntry]:
        """What was counted of each flow since the last report that forgot."""
        entries = self.send_flows.report(forget) + self._gone
        for peer in self._peers.values():
            entries += peer.flows.report(forget)
        if forget:
            self._gone = []
        return entries

    def active_flows(self, since: float, most: int) -> tuple[list[FlowEntry], int]:
        """Flows with a packet since then, at most *most*, those that have carried the most first; and how many more."""
        flows: list[SendFlow | ReceiveFlow] = [*self.send_flows.recent(since)]
        for peer in self._peers.values():
            flows += peer.flows.recent(since)
        chosen = flows if len(flows) <= most else heapq.nlargest(most, flows, key=lambda flow: flow.bytes)
        return [flow.entry() for flow in chosen], len(flows) - len(chosen)

    def _answer(self, packet: bytes | None, now: float) -> None:
        self._icmp_tokens = min(ICMP_PER_S, self._icmp_tokens + (now - self._icmp_at) * ICMP_PER_S)
        self._icmp_at = now
        if packet is None or self._icmp_tokens < 1.0:
            return
        self._icmp_tokens -= 1.0
        self._counts["icmp_errors_sent"] += 1
        self._deliver.append(packet)
