"""The sending half: class, entropy, DSCP and coding of every packet, and what peers' feedback teaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from host_agent import tunnel
from host_agent.coding.blocking import BlockingEstimator, estimator
from host_agent.coding.unit import Repair, UnitEncoder
from host_agent.coding.unit_size import optimal_k
from host_agent.flows import FlowTable, SendFlow
from host_agent.inner_packet import TCP, InnerPacket
from host_agent.paths import PathPolicy, path_policy
from host_agent.peers import PeerState
from host_agent.wire import Outgoing
from protocol.datagram import NUMBER_MODULUS, Feedback, Header, Kind, encode, serial_difference
from protocol.policy import DEFAULT_POLICY, ClassPolicy, CodingPolicy, Policy
from protocol.underlay import BASE_PORT, TrafficClass, dscp


class Sender:
    """Wraps packets into datagrams for *outgoing*. One for all peers."""

    def __init__(
        self, session: int, rng: np.random.Generator, outgoing: list[Outgoing], counts: Counter[str]
    ) -> None:
        self._session = session
        self._rng = rng
        self._outgoing = outgoing
        self._counts = counts
        self.flows: FlowTable[bytes, SendFlow] = FlowTable()
        self._estimators: dict[str, BlockingEstimator] = {}
        self._open: dict[bytes, SendFlow] = {}
        """Flows whose coding unit is open."""
        self._next_flow = 1
        self._policy = DEFAULT_POLICY
        self._coding: CodingPolicy | None = None
        self._classes: dict[TrafficClass, ClassPolicy] = {}
        self._paths: dict[TrafficClass, PathPolicy] = {}
        self._tos = {kind: dscp(kind) << 2 for kind in TrafficClass}
        self.set_policy(DEFAULT_POLICY, (), 0.0)

    def set_policy(self, policy: Policy, peers: Iterable[PeerState], now: float) -> None:
        """Use *policy* from the next packet on; units that are open are closed by their old policy."""
        for flow in list(self._open.values()):
            self._close(flow, now)
        for flow in self.flows:
            flow.encoder = None
        self._policy = policy
        self._classes = {
            TrafficClass.SHORT: policy.short,
            TrafficClass.LONG: policy.long,
            TrafficClass.CONTROL: policy.control,
        }
        self._paths = {kind: path_policy(one.path.kind, self._rng) for kind, one in self._classes.items()}
        self._coding = policy.short.coding or policy.long.coding
        self._estimators.clear()
        for peer in peers:
            peer.estimator = None
            self.adopt(peer)

    def adopt(self, peer: PeerState) -> None:
        """Give a peer the estimator that the policy's coding wants: the one of its leaf.

        Hosts of one leaf are reached over the same paths, so what one of them reports holds for all; a pair of hosts
        alone sends too little to know.
        """
        if self._coding is not None and peer.estimator is None:
            leaf = peer.peer.leaf
            if leaf not in self._estimators:
                self._estimators[leaf] = estimator(self._coding.estimator, self._policy.packet_time_s)
            peer.estimator = self._estimators[leaf]

    def send(self, peer: PeerState, packet: bytes, seen: InnerPacket, now: float) -> None:
        """Wrap one packet of the host for *peer*, and add the repairs that it completes."""
        flow = self.flows.get(seen.flow)
        if flow is None:
            flow = SendFlow(seen.flow, self._next_flow, first=now)
            self._next_flow = self._next_flow % (NUMBER_MODULUS - 1) + 1
            self.flows.put(seen.flow, flow)
        if seen.opening:
            flow.payload = 0  # ports are used again: this connection has sent nothing yet
        flow.last = now
        flow.packets += 1
        flow.bytes += len(packet)
        self._counts["packets_sent"] += 1
        if seen.control:
            self._wrap(
                peer, flow, Kind.SOURCE, TrafficClass.CONTROL, packet, 0, False, tunnel.ecn_of(packet), now
            )
            return
        kind = TrafficClass.SHORT if flow.payload < self._policy.short_limit_bytes else TrafficClass.LONG
        flow.payload += seen.payload
        flow.traffic_class = kind
        position = flow.position
        flow.position = (position + 1) % NUMBER_MODULUS
        coding = self._classes[kind].coding
        self._wrap(
            peer, flow, Kind.SOURCE, kind, packet, position, coding is not None, tunnel.ecn_of(packet), now
        )
        if flow.encoder is not None and flow.encoder_class is not kind:
            self._close(flow, now)
            flow.encoder = None
        if coding is not None:
            self._code(peer, flow, kind, coding, position, packet, seen, now)

    def feedback(self, peer: PeerState, feedback: Feedback, now: float) -> None:
        """What *peer* says of our datagrams."""
        known = peer.estimator
        newest: float | None = None
        for one in feedback.receipts:
            remembered = peer.sent.arrived(one.number, one.stamp)
            if known is None:
                continue
            left = peer.outstanding.arrived(one.number)
            if left is not None and (newest is None or left > newest):
                newest = left
            if remembered and one.stamp:
                peer.stamps.add(one.stamp)
                known.path_delay(one.stamp, peer.above_least(one.delay_us), now)
        if known is not None and newest is not None:
            for _ in range(peer.outstanding.overdue(newest - known.overdue_s)):
                known.path_loss(None, now)
        self._counts["lost_at_peers"] += sum(min(count, 65536) for _, count in feedback.lost)

    def acknowledged(self, peer: PeerState, packet: bytes, seen: InnerPacket, now: float) -> None:
        """An inner TCP packet came from *peer*: its ACK may time a segment of ours (Karn: not a repeated one)."""
        if peer.estimator is None or seen.protocol != TCP:
            return
        flow = self.flows.get(seen.reverse)
        if flow is None or flow.unacked is None:
            return
        ack = int.from_bytes(packet[seen.transport + 8 : seen.transport + 12], "big")
        end, left = flow.unacked
        if serial_difference(ack, end) >= 0:
            peer.estimator.ack_rtt(now - left, now)
            flow.unacked = None

    def send_feedback(self, peer: PeerState, now: float) -> None:
        """Tell *peer* what came of its datagrams."""
        for feedback in peer.feedbacks():
            self._counts["feedbacks_sent"] += 1
            self._wrap(peer, None, Kind.FEEDBACK, TrafficClass.CONTROL, feedback.encode(), 0, False, 0, now)

    def deadline(self) -> float | None:
        """When a unit has to be closed; None while none is open."""
        deadlines = [flow.encoder.deadline() for flow in self._open.values() if flow.encoder is not None]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Close the units that got no packet for too long."""
        for flow in list(self._open.values()):
            assert flow.encoder is not None
            deadline = flow.encoder.deadline()
            if deadline is not None and now >= deadline:
                self._close(flow, now)

    def sweep(self, now: float) -> None:
        """Forget idle flows."""
        for flow in self.flows.expire(now):
            self._open.pop(flow.key, None)

    def _code(
        self,
        peer: PeerState,
        flow: SendFlow,
        kind: TrafficClass,
        coding: CodingPolicy,
        position: int,
        packet: bytes,
        seen: InnerPacket,
        now: float,
    ) -> None:
        if flow.encoder is None:
            flow.encoder, flow.encoder_class = UnitEncoder(coding, self._rng), kind
        encoder, known = flow.encoder, peer.estimator
        if known is not None and not encoder.open_packets:
            blocked = known.blocking_probability(now)
            k = optimal_k(
                coding,
                blocked,
                known.rtt_s(),
                known.blocked_rtt_s(),
                packet_time_s=self._spray_time_s(peer),
            )
            encoder.set_redundancy(blocked, k)
        if seen.protocol == TCP:
            start = int.from_bytes(packet[seen.transport + 4 : seen.transport + 8], "big")
            end = (start + seen.payload) % NUMBER_MODULUS
            if flow.unacked is None:
                flow.unacked = (end, now)
            elif serial_difference(end, flow.unacked[0]) <= 0:
                flow.unacked = None  # sent again: its ACK would not tell which one it is for
        repairs = encoder.add(position, packet, now, seen.push)
        if encoder.open_packets:
            self._open[flow.key] = flow
        else:
            self._open.pop(flow.key, None)
        flow.peer = peer
        self._send_repairs(flow, repairs, now)

    def _spray_time_s(self, peer: PeerState) -> float:
        """Seconds a packet takes when all paths that were heard of carry one at a time."""
        return self._policy.packet_time_s / max(1, len(peer.stamps))

    def _close(self, flow: SendFlow, now: float) -> None:
        self._open.pop(flow.key, None)
        if flow.encoder is not None:
            self._send_repairs(flow, flow.encoder.close(), now)

    def _send_repairs(self, flow: SendFlow, repairs: list[Repair], now: float) -> None:
        if not repairs or flow.peer is None:
            return
        assert flow.encoder_class is not None
        flow.repairs += len(repairs)
        self._counts["repairs_sent"] += len(repairs)
        for position, head, symbol in repairs:
            body = head.encode() + symbol
            self._wrap(flow.peer, flow, Kind.REPAIR, flow.encoder_class, body, position, True, 0, now)

    def _wrap(
        self,
        peer: PeerState,
        flow: SendFlow | None,
        kind: Kind,
        traffic_class: TrafficClass,
        body: bytes,
        position: int,
        coded: bool,
        ecn: int,
        now: float,
    ) -> None:
        number = peer.number
        peer.number = (number + 1) % NUMBER_MODULUS
        entropy = self._paths[traffic_class].entropy(flow.hash if flow else 0, len(body), now)
        peer.sent.sent(number, entropy)
        if coded and peer.estimator is not None:
            # only what is sprayed and coded: a long flow's own queue would speak for all paths
            peer.outstanding.sent(number, now)
        header = Header(
            kind,
            traffic_class,
            self._session,
            number,
            int(now * 1e6),
            flow.id if flow else 0,
            position,
            coded,
        )
        self._outgoing.append(
            Outgoing(
                peer.peer.underlay_ip,
                entropy,
                BASE_PORT + (flow.flow_key if flow else 0),
                self._tos[traffic_class] | ecn,
                encode(header, body),
            )
        )
