"""The sending half: class, entropy, DSCP and coding of every packet, and what peers' feedback teaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import capstan_native
import numpy as np

from host_agent import tunnel
from host_agent.coded_sending import CodedSending
from host_agent.coding.blocking import BlockingEstimator, estimator
from host_agent.finished import FinishedLog
from host_agent.flows import FlowTable, SendFlow
from host_agent.inner_packet import FIN, RST, TCP, InnerPacket
from host_agent.paths.own import OwnPathPolicy
from host_agent.paths.steering import Departures, Steering
from host_agent.peers import PeerState
from host_agent.priority import Priorities
from host_agent.segments import header_bytes, tcp_segments
from host_agent.wire import Burst, Outgoing
from host_agent.wrapping import FRONT_BYTES, Wrapping
from protocol.control import FlowTypes
from protocol.datagram import (
    FLAG_CODED,
    NUMBER_MODULUS,
    DatagramError,
    Kind,
    serial_difference,
)
from protocol.policy import DEFAULT_POLICY, ClassPolicy, CodingPolicy, Policy
from protocol.underlay import TrafficClass

_SHORT, _LONG, _CONTROL = int(TrafficClass.SHORT), int(TrafficClass.LONG), int(TrafficClass.CONTROL)
_SOURCE, _FEEDBACK = int(Kind.SOURCE), int(Kind.FEEDBACK)
MAX_ANNOUNCED: Final = 65536
"""Flows that were announced and have not begun."""


class Sender:
    """Wraps packets into datagrams for *outgoing*. One for all peers."""

    def __init__(
        self,
        session: int,
        rng: np.random.Generator,
        outgoing: list[Outgoing | Burst],
        counts: Counter[str],
        own_path: OwnPathPolicy | None = None,
    ) -> None:
        self._counts = counts
        self.flows: FlowTable[bytes, SendFlow] = FlowTable()
        self._estimators: dict[str, BlockingEstimator] = {}
        self._announced: dict[bytes, float] = {}
        """Payload of flows that have not begun, bytes."""
        self._next_flow = 1
        self._policy = DEFAULT_POLICY
        self._coding: CodingPolicy | None = None
        # by traffic class
        self._classes: tuple[ClassPolicy, ...] = ()
        self.steering = Steering(rng, own_path)
        self._priorities = Priorities(counts)
        self._wrapping = Wrapping(session, self.steering, self._priorities, outgoing)
        self.coded = CodedSending(rng, self._wrapping, counts)
        self.finished = FinishedLog()
        self.set_policy(DEFAULT_POLICY, (), 0.0)

    def set_policy(self, policy: Policy, peers: Iterable[PeerState], now: float) -> None:
        """Use *policy* from the next packet on; units that are open are closed by their old policy."""
        classes = (ClassPolicy(), policy.short, policy.long, policy.control)
        self.coded.set_policy(policy, classes, now)
        self._priorities.set_policy(policy)
        if not self._priorities.predicted:
            self.finished.clear()
        for flow in self.flows:
            flow.encoder = flow.window = flow.unit = None
            flow.short_bytes = _short_bytes(flow, policy)
            self._priorities.assign(flow)
        self._policy = policy
        self._classes = classes
        self.steering.set_policy(policy)
        self._coding = policy.short.coding or policy.long.coding
        self._estimators.clear()
        for peer in peers:
            peer.estimator = None
            self.adopt(peer)

    def set_types(self, types: FlowTypes) -> None:
        """Types of flows with thresholds of their own: in force for each flow's next packet."""
        self._priorities.set_types(types, self.flows)

    def adopt(self, peer: PeerState) -> None:
        """Give a peer what belongs to its leaf: the ways there, and the estimator that the policy's coding wants.

        Hosts of one leaf are reached over the same paths, so what one of them reports holds for all; a pair of hosts
        alone sends too little to know.
        """
        peer.routes = self.steering.routes(peer.peer.leaf)
        peer.departures = (peer.departures or Departures()) if self.steering.learning else None
        if self._coding is not None and peer.estimator is None:
            leaf = peer.peer.leaf
            if leaf not in self._estimators:
                self._estimators[leaf] = estimator(
                    self._coding.estimator, self._policy.packet_time_s, self._coding.sampling_s
                )
            peer.estimator = self._estimators[leaf]
            peer.outcomes.in_time_s = peer.estimator.overdue_s

    def send(self, peer: PeerState, packet: bytes, seen: InnerPacket, now: float) -> None:
        """Wrap one packet of the host for *peer*, and add the repairs that it completes."""
        flow = self._flow(seen, now)
        flow.packets += 1
        flow.bytes += len(packet)
        self._counts["packets_sent"] += 1
        ecn = tunnel.ecn_of(packet)
        if seen.control:
            self._wrapping.wrap(peer, flow, _SOURCE, _CONTROL, packet, flow.position, 0, ecn, now)
            self._look_for_end(flow, packet, seen, now)
            return
        kind = _SHORT if flow.payload < flow.short_bytes else _LONG
        if flow.payload >= flow.demote_at:
            self._priorities.demote(flow)
        flow.payload += seen.payload
        flow.traffic_class = kind
        position = flow.position
        flow.position = (position + 1) % NUMBER_MODULUS
        coding = self._classes[kind].coding
        if flow.encoder is not None and flow.encoder_class != kind:
            self.coded.close(flow, now)
            flow.encoder = None
        self._wrapping.wrap(
            peer, flow, _SOURCE, kind, packet, position, FLAG_CODED if coding else 0, ecn, now
        )
        if coding is not None:
            self.coded.sent(peer, flow, kind, coding, position, packet, seen, now)
        if seen.push:
            self._look_for_end(flow, packet, seen, now)

    def announce(self, key: bytes, size: float) -> None:
        """A flow of ours (`InnerPacket.flow`) will send *size* bytes of payload, `math.inf` if it has no end."""
        flow = self.flows.get(key)
        if flow is not None:
            flow.announced = size
            flow.short_bytes = _short_bytes(flow, self._policy)
            self._priorities.assign(flow)
            if not flow.payload:
                return
        self._announced.pop(key, None)  # of the next connection on these ports
        if len(self._announced) >= MAX_ANNOUNCED:
            del self._announced[next(iter(self._announced))]
        self._announced[key] = size

    def send_super(self, peer: PeerState, packet: bytes, seen: InnerPacket, size: int, now: float) -> None:
        """Cut a TCP super-packet into segments of *size* bytes of payload, and wrap them all for *peer*."""
        flow = self._flow(seen, now)
        rows, last = tcp_segments(packet, seen, size, FRONT_BYTES)
        count = len(rows)
        flow.packets += count
        flow.bytes += len(packet) + (count - 1) * header_bytes(packet, seen)
        self._counts["packets_sent"] += count
        ecn = tunnel.ecn_of(packet)
        whole = rows.shape[1] - FRONT_BYTES
        start = int.from_bytes(packet[seen.transport + 4 : seen.transport + 8], "big")
        begin = 0
        while begin < count:
            # as many segments as have one class and one priority
            kind, until = _LONG, flow.demote_at
            if flow.payload >= until:
                self._priorities.demote(flow)
                until = flow.demote_at
            if flow.payload < flow.short_bytes:
                kind, until = _SHORT, min(until, flow.short_bytes)
            end = min(count, begin - (flow.payload - until) // size)
            coding, part = self._classes[kind].coding, rows[begin:end]
            last_bytes = last if end == count else whole
            if flow.encoder is not None and flow.encoder_class != kind:
                self.coded.close(flow, now)
                flow.encoder = None
            if coding is None:
                self._wrapping.wrap_rows(peer, flow, kind, part, last_bytes, 0, ecn, now)
            else:
                at, push = start + begin * size, seen.push and end == count
                self.coded.send_rows(peer, flow, kind, coding, part, last_bytes, at, size, push, ecn, now)
            flow.payload += min(end * size, seen.payload) - begin * size
            begin = end
        if seen.push:
            self._look_for_end(flow, packet, seen, now)

    def feedback(self, peer: PeerState, body: bytes, now: float) -> None:
        """What *peer* says of our datagrams. Raises DatagramError."""
        try:
            told = capstan_native.Feedback(body)
        except ValueError as error:
            raise DatagramError("body", str(error)) from None
        known, lost = peer.estimator, told.lost
        if peer.departures is not None:
            self.steering.learn(peer.peer.leaf, peer.sent, peer.departures, told, peer.least_delay.above, now)
        paths = peer.sent.told(told)
        if known is not None:
            for stamp, delay_us in paths:
                peer.stamps.add(stamp)
                known.path_delay(stamp, peer.least_delay.above(delay_us), now)
            arrived, newest = peer.outstanding.told(told)
            if newest is not None:
                overdue = peer.outstanding.overdue(newest - known.overdue_s)
                for _ in range(overdue):
                    known.path_loss(None, now)
                known.told(arrived, overdue, now)
            if peer.outcomes:
                for number, delay_us in zip(told.numbers, told.delays_us, strict=True):
                    peer.outcomes.arrived(number, delay_us)
                for first, count in lost:
                    peer.outcomes.lost(first, count)
        self._counts["recovered_at_peers"] += told.recovered
        self._counts["lost_at_peers"] += sum(min(count, 65536) for _, count in lost)

    def acknowledged(self, peer: PeerState, key: bytes, packet: bytes, transport: int, now: float) -> None:
        """A TCP packet came from *peer*: its ACK may time a segment of our flow *key* (Karn: not a repeated one).

        *transport*: offset of its TCP header.
        """
        flow = self.flows.get(key)
        if peer.estimator is None or flow is None or (flow.unacked is None and flow.window is None):
            return
        ack = int.from_bytes(packet[transport + 8 : transport + 12], "big")
        if flow.window is not None:
            flow.window.acknowledged(ack)
        if flow.unacked is None:
            return
        end, left = flow.unacked
        if serial_difference(ack, end) >= 0:
            peer.estimator.ack_rtt(now - left, now)
            flow.unacked = None

    def send_feedback(self, peer: PeerState, now: float) -> None:
        """Tell *peer* what came of its datagrams."""
        for body in peer.feedback.take():
            self._counts["feedbacks_sent"] += 1
            self._wrapping.wrap(peer, None, _FEEDBACK, _CONTROL, body, 0, 0, 0, now)

    def sweep(self, now: float) -> None:
        """Forget idle flows."""
        for flow in self.flows.expire(now):
            self.coded.forget(flow)
            self._ended(flow, flow.last)
            self.steering.forget(flow.id)

    def _look_for_end(self, flow: SendFlow, packet: bytes, seen: InnerPacket, now: float) -> None:
        """Whether TCP says that *flow* sends no more."""
        if seen.protocol == TCP and packet[seen.transport + 13] & (FIN | RST):
            self._ended(flow, now)

    def _ended(self, flow: SendFlow, now: float) -> None:
        if self._priorities.predicted:
            self.finished.add(flow, now)

    def _flow(self, seen: InnerPacket, now: float) -> SendFlow:
        flow = self.flows.get(seen.flow)
        if flow is None or (seen.opening and flow.payload):
            # unknown, or a new connection on the ports of an old one: short again, with positions of its own
            if flow is not None:
                self.coded.close(flow, now)
                self.flows.end(seen.flow)
                self._ended(flow, flow.last)
                self.steering.forget(flow.id)
            flow = SendFlow(seen.flow, self._next_flow, first=now)
            flow.announced = self._announced.pop(seen.flow, None)
            flow.short_bytes = _short_bytes(flow, self._policy)
            self._priorities.assign(flow)
            self._next_flow = self._next_flow % (NUMBER_MODULUS - 1) + 1
            gone = self.flows.put(seen.flow, flow)
            if gone is not None:
                self._ended(gone, gone.last)
                self.steering.forget(gone.id)
        flow.last = now
        return flow


def _short_bytes(flow: SendFlow, policy: Policy) -> int:
    """Payload that a flow sends as a short one.

    Of an announced flow, all or nothing: one that was announced as short has twice the limit for what TCP sends again,
    and beyond that the announcement was wrong.
    """
    limit = policy.short_limit_bytes
    if not policy.prior_knowledge or flow.announced is None:
        return limit
    return 2 * limit if flow.announced < limit else 0
