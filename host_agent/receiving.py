"""The receiving half: recovery, order, and feedback to the sender."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from host_agent import tunnel
from host_agent.coding.decoder import UnitDecoder
from host_agent.flows import ReceiveFlow
from host_agent.inner_packet import InnerPacket, look
from host_agent.peers import RECEIPTS_PER_FEEDBACK, EarlyRepair, PeerState
from host_agent.release import Release
from host_agent.sending import Sender
from protocol.datagram import Feedback, Header, Kind, RepairHead, serial_difference
from protocol.policy import DEFAULT_POLICY, Policy
from protocol.underlay import TrafficClass, is_stamp


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
        self._timeouts: dict[TrafficClass, float] = {}
        self._next_feedback: float | None = None
        self.set_policy(DEFAULT_POLICY)

    def set_policy(self, policy: Policy) -> None:
        """Times for feedback, losses and release from now on.

        Feedback goes out after two packet times (at least 5 ms); a number is lost when it was missing for 300 packet
        times: longer than a full buffer of 256 packets delays it (at least 0.25 s).
        """
        self._feedback_after_s = max(0.005, 2 * policy.packet_time_s)
        self._loss_after_s = max(0.25, 300 * policy.packet_time_s)
        self._timeouts = {
            TrafficClass.SHORT: policy.short.release.timeout_s if policy.short.release else 0.0,
            TrafficClass.LONG: policy.long.release.timeout_s if policy.long.release else 0.0,
        }

    def receive(
        self, peer: PeerState, header: Header, body: memoryview, source_port: int, tos: int, now: float
    ) -> None:
        """One datagram, new and undamaged.

        Raises:
            DatagramError, PacketError: what it carries is malformed.
        """
        if header.kind is Kind.FEEDBACK:
            self._sender.feedback(peer, Feedback.decode(body), now)
            return
        stamp = source_port if is_stamp(source_port) else 0
        peer.receipt(header.number, stamp, int(now * 1e6) - header.sent_us, now)
        if len(peer.receipts) >= RECEIPTS_PER_FEEDBACK:
            self._sender.send_feedback(peer, now)
        elif self._next_feedback is None:
            self._next_feedback = now + self._feedback_after_s
        if header.kind is Kind.REPAIR:
            self._repair(peer, header, body, stamp, now)
        else:
            self._source(peer, header, bytes(body), stamp, tos & 0b11, now)

    def _source(
        self, peer: PeerState, header: Header, packet: bytes, stamp: int, outer_ecn: int, now: float
    ) -> None:
        seen = look(packet)
        self._counts["packets_received"] += 1
        flow = self._flow(peer, header, seen, now)
        flow.last = now
        flow.packets += 1
        flow.bytes += len(packet)
        flow.paths[stamp] = flow.paths.get(stamp, 0) + 1
        marked: bytes | None = packet
        if outer_ecn != tunnel.NOT_ECT:
            marked = tunnel.decapsulate_ecn(packet, outer_ecn)
        if header.traffic_class is TrafficClass.CONTROL:
            if marked is None:
                self._counts["dropped_ecn"] += 1
            else:
                self._sender.acknowledged(peer, marked, seen, now)
                self._deliver.append(marked)
            return
        if marked is None:
            self._counts["dropped_ecn"] += 1
            return
        flow.traffic_class = header.traffic_class
        ahead = serial_difference(header.position, flow.newest) if flow.newest >= 0 else 1
        if ahead > 0:
            flow.newest = header.position
        else:
            flow.reordered += 1
        self._sender.acknowledged(peer, marked, seen, now)
        recovered: list[tuple[int, bytes]] = []
        if header.coded:
            if flow.decoder is None:
                flow.decoder = UnitDecoder()
            recovered = flow.decoder.source(header.position, packet, now)
        self._release(flow, header.position, marked, now)
        self._recovered(peer, flow, recovered, now)
        for early in peer.early.pop(header.flow, ()):
            self._repair(peer, early.header, memoryview(early.body), early.stamp, now)

    def _repair(self, peer: PeerState, header: Header, body: memoryview, stamp: int, now: float) -> None:
        head, symbol = RepairHead.decode(body)
        flow = peer.flows.get(header.flow)
        if flow is None:
            if not peer.keep_early(EarlyRepair(header, bytes(body), stamp)):
                self._counts["repairs_without_flow"] += 1
            return
        self._counts["repairs_received"] += 1
        flow.repairs += 1
        flow.paths[stamp] = flow.paths.get(stamp, 0) + 1
        if flow.decoder is None:
            flow.decoder = UnitDecoder()
        self._recovered(peer, flow, flow.decoder.repair(header.position, head, bytes(symbol), now), now)

    def _recovered(
        self, peer: PeerState, flow: ReceiveFlow, recovered: list[tuple[int, bytes]], now: float
    ) -> None:
        for position, packet in recovered:
            flow.recovered += 1
            peer.recovered += 1
            self._counts["packets_recovered"] += 1
            self._release(flow, position, packet, now)

    def _flow(self, peer: PeerState, header: Header, seen: InnerPacket, now: float) -> ReceiveFlow:
        flow = peer.flows.get(header.flow)
        if flow is None or flow.key != seen.flow:
            first = 0 if header.position < 4096 else header.position
            flow = ReceiveFlow(seen.flow, now, Release(first))
            peer.flows.put(header.flow, flow)
        return flow

    def _release(self, flow: ReceiveFlow, position: int, packet: bytes, now: float) -> None:
        timeout = self._timeouts.get(flow.traffic_class, 0.0)
        self._deliver += flow.release.arrive(position, packet, timeout, now)
        if flow.release.deadline is not None:
            self._holding[id(flow)] = flow
        else:
            self._holding.pop(id(flow), None)

    def deadline(self) -> float | None:
        """When feedback or a release is due."""
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
            peer.lost += peer.arrivals.give_up(now - self._loss_after_s)
            if peer.receipts or peer.lost or peer.recovered:
                self._sender.send_feedback(peer, now)
            oldest = peer.arrivals.oldest_missing()
            if oldest is not None:
                due = max(oldest + self._loss_after_s, now + self._feedback_after_s)
                self._next_feedback = min(due, self._next_feedback or due)

    def drop(self, peer: PeerState) -> None:
        """Forget what is held for a peer that is gone or began anew; what is held is released first."""
        for flow in peer.flows:
            if self._holding.pop(id(flow), None) is not None:
                while flow.release.deadline is not None:
                    self._deliver += flow.release.expire(flow.release.deadline)

    def forgotten(self, flows: list[ReceiveFlow]) -> None:
        """Flows that were idle for so long that nothing can be held for them any more."""
        for flow in flows:
            self._holding.pop(id(flow), None)
