"""The receiving half: recovery, order, and feedback to the sender."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from capstan_native import Release, UnitDecoder, stamps_of

from host_agent import tunnel
from host_agent.flows import ReceiveFlow, way
from host_agent.inner_packet import FIN, TCP, InnerPacket, PacketError, addresses, look
from host_agent.peers import EarlyRepair, PeerState
from host_agent.sending import Sender
from protocol.datagram import (
    CLASS_MASK,
    FLAG_CODED,
    NUMBER_MODULUS,
    DatagramError,
    Kind,
    RepairHead,
    serial_difference,
)
from protocol.policy import DEFAULT_POLICY, Policy
from protocol.underlay import STAMP_FIRST, STAMP_LAST, TrafficClass

_CONTROL = int(TrafficClass.CONTROL)
_REPAIR, _FEEDBACK = int(Kind.REPAIR), int(Kind.FEEDBACK)
_PLAIN_TRANSPORT: Final = 20
"""Offset of the transport header where the flow of a packet was told with it: IPv4 without options and fragments."""


class Receiver:
    """Unwraps datagrams that are proved to be a known peer's, for *deliver*. One for all peers."""

    def __init__(self, sender: Sender, deliver: list[bytes], counts: Counter[str]) -> None:
        self._sender = sender
        self._deliver = deliver
        self._counts = counts
        self._holding: dict[int, ReceiveFlow] = {}
        """Flows that hold packets back, by identity."""
        self._feedback_after_s = 0.005
        self._loss_after_s = 0.5
        self._timeouts: tuple[float, ...] = ()
        """By traffic class; 0: packets are not held back."""
        self.own: frozenset[bytes] = frozenset()
        """Our overlay addresses; empty while unknown."""
        self._next_feedback: float | None = None
        self.set_policy(DEFAULT_POLICY)

    def set_policy(self, policy: Policy) -> None:
        """Times for feedback, losses and release from now on.

        Feedback goes out after two packet times (at least 5 ms); a number is lost when it was missing for 300 packet
        times: longer than a full buffer of 256 packets delays it (at least 0.25 s).
        """
        self._feedback_after_s = max(0.005, 2 * policy.packet_time_s)
        self._loss_after_s = max(0.25, 300 * policy.packet_time_s)
        classes = (None, policy.short.release, policy.long.release, None)
        self._timeouts = tuple(0.0 if one is None else one.timeout_s for one in classes)

    def receive(
        self,
        peer: PeerState,
        kind: int,
        flags: int,
        sent: tuple[int, int],
        flow: int,
        position: int,
        body: bytes,
        key: bytes | None,
        source_port: int,
        tos: int,
        now: float,
    ) -> None:
        """One datagram, new and undamaged; *sent*: its number, and when it left (both as in its header).

        *key*: the inner packet's flow, where it was looked at already.

        Raises:
            DatagramError, PacketError: what it carries is malformed.
        """
        if kind == _FEEDBACK:
            self._sender.feedback(peer, body, now)
            return
        stamp = _stamp(source_port)
        self._told(peer, sent, [source_port], now)
        if kind == _REPAIR:
            self._repair(peer, flags & CLASS_MASK, flow, position, body, stamp, now)
        else:
            self._source(peer, flags, flow, position, body, key, stamp, tos & 0b11, now)

    def flow_of_run(
        self, peer: PeerState, flags: int, name: int, position: int, count: int, key: bytes | None, now: float
    ) -> ReceiveFlow | None:
        """The flow of *count* sources that follow each other, if `receive_run` may take them in; None: each by itself.

        It may where the flow is known, and no repair waits for them.
        """
        flow = peer.flows.get(name)
        if flow is None or flow.key != key or name in peer.early:
            return None
        if flags & FLAG_CODED and (flow.decoder is None or not flow.decoder.takes_run(position, count, now)):
            return None
        return flow

    def receive_run(
        self,
        peer: PeerState,
        flow: ReceiveFlow,
        flags: int,
        sent: tuple[int, int],
        position: int,
        source_ports: list[int],
        packets: list[bytes],
        now: float,
        surplus: int = 0,
    ) -> None:
        """Sources without congestion marks, new and undamaged, of a flow that `flow_of_run` gave.

        What `receive` does for each, for all of them: numbers and positions are consecutive. *surplus*: repairs among
        them that the decoder has no need of (`UnitDecoder.needs_none_of`).
        """
        count, traffic_class = len(packets), flags & CLASS_MASK
        self._told(peer, sent, source_ports, now)
        _took(flow, traffic_class, source_ports, now)
        self._counts["packets_received"] += count
        flow.packets += count
        flow.bytes += sum(map(len, packets))
        flow.traffic_class = traffic_class
        if peer.estimator is not None and flow.key[0] == TCP:
            self._sender.acknowledged(peer, flow.reverse, packets[-1], _PLAIN_TRANSPORT, now)
        if flags & FLAG_CODED and flow.decoder is not None:
            flow.decoder.source_run(position, packets, now)
            if surplus:
                flow.decoder.surplus(surplus)
                flow.repairs += surplus
                self._counts["repairs_received"] += surplus
        ahead = 1 if flow.newest < 0 else serial_difference(position, flow.newest)
        flow.reordered += min(count, max(0, 1 - ahead))
        if ahead + count > 1:
            flow.newest = (position + count - 1) % NUMBER_MODULUS
        release = flow.release
        self._deliver += release.arrive_run(position, packets, self._timeouts[traffic_class], now)
        if release.deadline is not None:
            self._holding[id(flow)] = flow
        elif self._holding:
            self._holding.pop(id(flow), None)

    def _told(self, peer: PeerState, sent: tuple[int, int], source_ports: list[int], now: float) -> None:
        """Datagrams with consecutive numbers came: the peer is to know."""
        if peer.feedback.receipts(sent[0], source_ports, (int(now * 1e6) - sent[1]) % NUMBER_MODULUS):
            self._sender.send_feedback(peer, now)
        elif self._next_feedback is None:
            self._next_feedback = now + self._feedback_after_s

    def receive_repairs(
        self,
        peer: PeerState,
        flags: int,
        sent: tuple[int, int],
        name: int,
        position: int,
        source_ports: list[int],
        bodies: list[bytes],
        now: float,
    ) -> None:
        """Repairs of one unit, new and undamaged, with consecutive numbers: what `receive` does for each."""
        self._told(peer, sent, source_ports, now)
        flow, traffic_class = peer.flows.get(name), flags & CLASS_MASK
        if flow is not None and flow.decoder is not None and flow.decoder.surplus_run(position, bodies, now):
            self._counts["repairs_received"] += len(bodies)
            flow.repairs += len(bodies)
            _took(flow, traffic_class, source_ports, now)
            return
        for port, body in zip(source_ports, bodies, strict=True):
            try:
                self._repair(peer, traffic_class, name, position, body, _stamp(port), now)
            except DatagramError as error:
                self._counts[f"dropped_{error.reason}"] += 1

    def _source(
        self,
        peer: PeerState,
        flags: int,
        name: int,
        position: int,
        packet: bytes,
        key: bytes | None,
        stamp: int,
        outer_ecn: int,
        now: float,
    ) -> None:
        traffic_class = flags & CLASS_MASK
        flow = peer.flows.get(name)
        seen: InnerPacket | None = None
        if flow is None or key is None or flow.key != key:
            # all but the further packets over IPv4 without options of a flow, which is known by now
            seen = look(packet)
            if not self._is_ours(peer, seen):
                raise PacketError("inner_not_for_us", "addresses that are not this peer's and ours")
            flow = self._flow(peer, name, position, seen, now)
        counts = self._counts
        counts["packets_received"] += 1
        flow.last = now
        flow.packets += 1
        flow.bytes += len(packet)
        taken = way(traffic_class, stamp)
        flow.datagrams[taken] = flow.datagrams.get(taken, 0) + 1
        marked: bytes | None = packet
        if outer_ecn != tunnel.NOT_ECT:
            marked = tunnel.decapsulate_ecn(packet, outer_ecn)
        if marked is None:
            counts["dropped_ecn"] += 1
            return
        if peer.estimator is not None and flow.key[0] == TCP:
            transport = _PLAIN_TRANSPORT if seen is None else seen.transport
            self._sender.acknowledged(peer, flow.reverse, packet, transport, now)
        if traffic_class == _CONTROL:
            self._control(flow, position, marked, seen, now)
            return
        flow.traffic_class = traffic_class
        if position == flow.newest + 1 or flow.newest < 0 or serial_difference(position, flow.newest) > 0:
            flow.newest = position
        else:
            flow.reordered += 1
        release = flow.release
        if not flags & FLAG_CODED and flow.decoder is None:
            self._deliver += release.arrive(position, marked, self._timeouts[traffic_class], now, stamp)
            if release.deadline is not None:
                self._holding[id(flow)] = flow
            elif self._holding:
                self._holding.pop(id(flow), None)
            return
        if flow.decoder is None:
            flow.decoder = UnitDecoder()
        recovered = flow.decoder.source(position, packet, now) if flags & FLAG_CODED else []
        self._release(flow, position, marked, now)
        self._recovered(peer, flow, recovered, now)
        if peer.early:
            for early in peer.early.take(name):
                self._repair(peer, early.traffic_class, name, early.position, early.body, early.stamp, now)

    def _control(
        self, flow: ReceiveFlow, position: int, packet: bytes, seen: InnerPacket | None, now: float
    ) -> None:
        """A packet without position: at once, but a FIN not before the data that it ends."""
        if flow.release.next != position and flow.key[0] == TCP and flow.key[-4:] != bytes(4):
            at = 20 if seen is None else seen.transport
            if packet[at + 13] & FIN:
                timeout = self._timeouts[flow.traffic_class]
                self._deliver += flow.release.follow(position, packet, timeout, now)
                if flow.release.deadline is not None:
                    self._holding[id(flow)] = flow
                return
        self._deliver.append(packet)

    def _repair(
        self,
        peer: PeerState,
        traffic_class: int,
        name: int,
        position: int,
        body: bytes,
        stamp: int,
        now: float,
    ) -> None:
        head, symbol = RepairHead.decode(memoryview(body))
        flow = peer.flows.get(name)
        if flow is None:
            early = EarlyRepair(traffic_class, position, body, stamp)
            self._counts["repairs_without_flow"] += peer.early.keep(name, early)
            return
        self._counts["repairs_received"] += 1
        flow.last = now
        flow.repairs += 1
        taken = way(traffic_class, stamp)
        flow.datagrams[taken] = flow.datagrams.get(taken, 0) + 1
        if flow.decoder is None:
            flow.decoder = UnitDecoder()
        self._recovered(peer, flow, flow.decoder.repair(position, head, bytes(symbol), now), now)

    def _recovered(
        self, peer: PeerState, flow: ReceiveFlow, recovered: list[tuple[int, bytes]], now: float
    ) -> None:
        for position, packet in recovered:
            try:
                sound = look(packet).flow == flow.key
            except PacketError:
                sound = False
            if not sound:  # whoever sent the repair may have put anything into it
                self._counts["dropped_recovered_malformed"] += 1
                continue
            flow.recovered += 1
            peer.feedback.recovered(1)
            self._counts["packets_recovered"] += 1
            self._release(flow, position, packet, now)

    def _is_ours(self, peer: PeerState, seen: InnerPacket) -> bool:
        """Whether an inner packet comes from an address of its peer and goes to one of ours."""
        source, destination = addresses(seen.flow)
        return source in peer.addresses and (not self.own or destination in self.own)

    def _flow(self, peer: PeerState, name: int, position: int, seen: InnerPacket, now: float) -> ReceiveFlow:
        flow = peer.flows.get(name)
        if flow is None or flow.key != seen.flow:
            first = 0 if position < 4096 else position
            flow = ReceiveFlow(seen.flow, now, Release(first))
            gone = peer.flows.put(name, flow)
            if gone is not None and self._holding.pop(id(gone), None) is not None:
                self._deliver += gone.release.drain()
        return flow

    def _release(self, flow: ReceiveFlow, position: int, packet: bytes, now: float) -> None:
        timeout = self._timeouts[flow.traffic_class]
        self._deliver += flow.release.arrive(position, packet, timeout, now)
        if flow.release.deadline is not None:
            self._holding[id(flow)] = flow
        else:
            self._holding.pop(id(flow), None)

    def deadline(self) -> float | None:
        """When feedback or a release is due."""
        if not self._holding:
            return self._next_feedback
        timers = [flow.release.deadline for flow in self._holding.values()]
        timers.append(self._next_feedback)
        return min((timer for timer in timers if timer is not None), default=None)

    def handle_timer(self, peers: Iterable[PeerState], now: float) -> None:
        """Give up gaps whose time is over, losses that are certain, and send the feedback that is due."""
        for key, flow in list(self._holding.items()):
            self._deliver += flow.release.expire(now)
            if flow.release.deadline is None:
                del self._holding[key]
        if self._next_feedback is None or now < self._next_feedback:
            return
        self._next_feedback = None
        for peer in peers:
            peer.feedback.lost(peer.arrivals.give_up(now - self._loss_after_s))
            if not peer.feedback.is_empty:
                self._sender.send_feedback(peer, now)
            oldest = peer.arrivals.oldest_missing()
            if oldest is not None:
                due = max(oldest + self._loss_after_s, now + self._feedback_after_s)
                self._next_feedback = min(due, self._next_feedback or due)

    def drop(self, peer: PeerState) -> None:
        """Forget what is held for a peer that is gone or began anew; what is held is released first."""
        for flow in peer.flows:
            if self._holding.pop(id(flow), None) is not None:
                self._deliver += flow.release.drain()

    def forgotten(self, flows: list[ReceiveFlow]) -> None:
        """Flows that were idle for so long that nothing can be held for them any more."""
        for flow in flows:
            self._holding.pop(id(flow), None)


def _stamp(source_port: int) -> int:
    """The path that a datagram took, 0 if none is told."""
    return source_port if STAMP_FIRST <= source_port <= STAMP_LAST else 0


def _took(flow: ReceiveFlow, traffic_class: int, source_ports: list[int], now: float) -> None:
    """Count a flow's datagrams by the paths that they took."""
    flow.last = now
    for stamp, count in stamps_of(source_ports, STAMP_FIRST, STAMP_LAST):
        taken = way(traffic_class, stamp)
        flow.datagrams[taken] = flow.datagrams.get(taken, 0) + count
