"""The agent's decisions, on plain data: packets and datagrams in, datagrams and packets out, time passed in.

The shape is that of aioquic's connection: `packet_from_host`, `receive_datagram` and `handle_timer` take what
happened; `datagrams_to_send`, `packets_to_deliver` and `get_timer` give what follows. Times are seconds of one
monotonic clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from host_agent import tunnel
from host_agent.addresses import packed
from host_agent.flows import FlowTable, SendFlow
from host_agent.impairment import Impairment
from host_agent.inner_packet import PacketError, is_group_address, look
from host_agent.peers import PeerState
from host_agent.receiving import Receiver
from host_agent.sending import Sender
from host_agent.wire import Arrived, Outgoing
from protocol.control import FlowEntry, Impair, Peer
from protocol.datagram import DatagramError, decode
from protocol.policy import DEFAULT_POLICY, Policy

SWEEP_S: Final = 1.0
"""How often idle flows are looked for."""


class AgentCore:
    """One host's agent.

    Args:
        host: our name in the directory.
        session: the random number of this start, as told to the controller.
        mtu: bytes of the largest inner packet.
        rng: all randomness there is.
    """

    def __init__(self, host: str, session: int, mtu: int, rng: np.random.Generator, now: float = 0.0) -> None:
        self.host = host
        self.mtu = mtu
        self.policy: Policy = DEFAULT_POLICY
        self._rng = rng
        self._counts: Counter[str] = Counter()
        self._peers: dict[str, PeerState] = {}
        self._routes: dict[bytes, PeerState] = {}
        self._outgoing: list[Outgoing] = []
        self._deliver: list[bytes] = []
        self._impairment: Impairment[Arrived] | None = None
        self._sender = Sender(session, rng, self._outgoing, self._counts)
        self._receiver = Receiver(self._sender, self._deliver, self._counts)
        self._next_sweep = now + SWEEP_S

    # -- what the controller says --------------------------------------------------------------------

    def set_policy(self, policy: Policy, now: float) -> None:
        """Act on this policy from the next packet on; flows, positions and numbers go on."""
        self.policy = policy
        self._sender.set_policy(policy, self._peers.values(), now)
        self._receiver.set_policy(policy)

    def set_directory(self, peers: Sequence[Peer], now: float) -> None:
        """The agents that there are, by overlay address; those that are gone get nothing and are not heard."""
        known, self._peers, self._routes = self._peers, {}, {}
        for peer in peers:
            if peer.host == self.host:
                continue
            state = known.get(peer.underlay_ip)
            if state is None:
                state = PeerState(peer)
            elif state.peer.session != peer.session:
                self._receiver.drop(state)
                state.restarted(peer)
            else:
                if state.peer.leaf != peer.leaf:
                    state.estimator = None
                state.peer = peer
            self._sender.adopt(state)
            self._peers[peer.underlay_ip] = state
            for address in peer.overlay:
                self._routes[packed(address)] = state
        for underlay_ip, state in known.items():
            if underlay_ip not in self._peers:
                self._receiver.drop(state)

    def set_impairment(self, setting: Impair) -> None:
        """Harm what arrives from now on, on purpose; all zero: stop."""
        harmless = setting == Impair(reorder_delay_s=setting.reorder_delay_s)
        self._impairment = None if harmless else Impairment(setting, self._rng)

    # -- what happens --------------------------------------------------------------------------------

    def packet_from_host(self, packet: bytes, now: float) -> None:
        """An inner IP packet that the host sends into the overlay."""
        try:
            seen = look(packet)
        except PacketError as error:
            self._counts[error.reason] += 1
            return
        peer = self._routes.get(seen.destination)
        if peer is None:
            if is_group_address(seen.destination):
                self._counts["dropped_group_address"] += 1
                return
            self._counts["dropped_no_such_host"] += 1
            self._answer(tunnel.unreachable(packet))
            return
        if len(packet) <= self.mtu:
            self._sender.send(peer, packet, seen, now)
        elif tunnel.dont_fragment(packet):
            self._counts["dropped_too_big"] += 1
            self._answer(tunnel.too_big(packet, self.mtu))
        else:
            self._counts["fragmented"] += 1
            for piece in tunnel.fragment(packet, self.mtu):
                self._sender.send(peer, piece, look(piece), now)

    def receive_datagram(self, data: bytes, underlay_ip: str, source_port: int, tos: int, now: float) -> None:
        """A datagram that came from the underlay, whoever sent it."""
        if self._impairment is None:
            self._receive(data, underlay_ip, source_port, tos, now)
            return
        for item in self._impairment.arrive(Arrived(data, underlay_ip, source_port, tos), now):
            self._receive(self._impairment.damage(item.data), *item[1:], now)

    def _receive(self, data: bytes, underlay_ip: str, source_port: int, tos: int, now: float) -> None:
        peer = self._peers.get(underlay_ip)
        if peer is None:
            self._counts["dropped_unknown_peer"] += 1
            return
        try:
            header, body = decode(data)
            if header.session != peer.peer.session:
                self._counts["dropped_other_session"] += 1
                return
            if not peer.arrivals.accept(header.number, now):
                self._counts["dropped_replayed"] += 1
                return
            self._receiver.receive(peer, header, body, source_port, tos, now)
        except (DatagramError, PacketError) as error:
            self._counts[f"dropped_{error.reason}"] += 1

    def handle_timer(self, now: float) -> None:
        """Do what is due: to be called when `get_timer`'s time has come, harmless at any other."""
        if self._impairment is not None:
            for item in self._impairment.due(now):
                self._receive(self._impairment.damage(item.data), *item[1:], now)
        self._sender.handle_timer(now)
        self._receiver.handle_timer(self._peers.values(), now)
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP_S
            self._sender.sweep(now)
            for peer in self._peers.values():
                self._receiver.forgotten(peer.flows.expire(now))

    # -- what follows --------------------------------------------------------------------------------

    def get_timer(self) -> float:
        """When `handle_timer` wants to be called."""
        timers = [self._next_sweep, self._sender.deadline(), self._receiver.deadline()]
        if self._impairment is not None:
            timers.append(self._impairment.deadline())
        return min(timer for timer in timers if timer is not None)

    def datagrams_to_send(self) -> list[Outgoing]:
        """Datagrams for the underlay, in order; each is given once."""
        outgoing = self._outgoing[:]
        self._outgoing.clear()
        return outgoing

    def packets_to_deliver(self) -> list[bytes]:
        """Inner packets for the host, in order; each is given once."""
        packets = self._deliver[:]
        self._deliver.clear()
        return packets

    def counters(self) -> dict[str, float]:
        """Totals since the start, by name."""
        totals = Counter(self._counts)
        for peer in self._peers.values():
            totals["datagrams_lost"] += peer.arrivals.lost
            totals["datagrams_late"] += peer.arrivals.late
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
        flows = [*self.send_flows, *(flow for peer in self._peers.values() for flow in peer.flows)]
        entries = [flow.entry() for flow in flows if flow.packets or flow.repairs]
        if forget:
            for flow in flows:
                flow.forget()
        return entries

    def _answer(self, packet: bytes | None) -> None:
        if packet is not None:
            self._deliver.append(packet)
