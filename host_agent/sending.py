"""The sending half: class, entropy, DSCP and coding of every packet, and what peers' feedback teaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import capstan_native
import numpy as np

from host_agent import tunnel
from host_agent.coding.blocking import BlockingEstimator, estimator
from host_agent.coding.outcomes import Margin, SentUnit
from host_agent.coding.redundancy import repair_bound
from host_agent.coding.unit import Repair, UnitEncoder
from host_agent.coding.unit_size import optimal_k
from host_agent.coding.window import WindowEstimate
from host_agent.finished import FinishedLog
from host_agent.flows import FlowTable, SendFlow
from host_agent.inner_packet import FIN, RST, TCP, InnerPacket
from host_agent.paths import PathPolicy
from host_agent.paths.steering import Departures, Steering
from host_agent.peers import PeerState
from host_agent.priority import Priorities
from host_agent.segments import header_bytes, tcp_segments
from host_agent.wire import OUTER_HEADER_BYTES, Burst, Outgoing, Rows
from protocol.control import FlowTypes
from protocol.datagram import (
    FLAG_CODED,
    HEADER_BYTES,
    NUMBER_MODULUS,
    Kind,
    decode_feedback,
    serial_difference,
)
from protocol.policy import DEFAULT_POLICY, ClassPolicy, CodingPolicy, Policy
from protocol.underlay import BASE_PORT, TrafficClass

_SHORT, _LONG, _CONTROL = int(TrafficClass.SHORT), int(TrafficClass.LONG), int(TrafficClass.CONTROL)
_SOURCE, _REPAIR, _FEEDBACK = int(Kind.SOURCE), int(Kind.REPAIR), int(Kind.FEEDBACK)
MAX_ANNOUNCED: Final = 65536
"""Flows that were announced and have not begun."""
_FRONT: Final = OUTER_HEADER_BYTES + HEADER_BYTES


class Sender:
    """Wraps packets into datagrams for *outgoing*. One for all peers."""

    def __init__(
        self, session: int, rng: np.random.Generator, outgoing: list[Outgoing | Burst], counts: Counter[str]
    ) -> None:
        self._session = session
        self._rng = rng
        self._outgoing = outgoing
        self._counts = counts
        self.flows: FlowTable[bytes, SendFlow] = FlowTable()
        self._estimators: dict[str, BlockingEstimator] = {}
        self._margins: dict[tuple[str, int], Margin] = {}
        """Of redundancy ``adaptive``, by leaf and class."""
        self._announced: dict[bytes, float] = {}
        """Payload of flows that have not begun, bytes."""
        self._open: dict[bytes, SendFlow] = {}
        """Flows whose coding unit is open."""
        self._next_flow = 1
        self._policy = DEFAULT_POLICY
        self._coding: CodingPolicy | None = None
        # by traffic class
        self._classes: tuple[ClassPolicy, ...] = ()
        self._paths: tuple[PathPolicy, ...] = ()
        self.steering = Steering(rng)
        self._priorities = Priorities(counts)
        self.finished = FinishedLog()
        self.set_policy(DEFAULT_POLICY, (), 0.0)

    def set_policy(self, policy: Policy, peers: Iterable[PeerState], now: float) -> None:
        """Use *policy* from the next packet on; units that are open are closed by their old policy."""
        for flow in list(self._open.values()):
            self._close(flow, now)
        self._priorities.set_policy(policy)
        if not self._priorities.predicted:
            self.finished.clear()
        for flow in self.flows:
            flow.encoder = flow.window = flow.unit = None
            flow.short_bytes = _short_bytes(flow, policy)
            self._priorities.assign(flow)
        self._policy = policy
        self._classes = (ClassPolicy(), policy.short, policy.long, policy.control)
        self.steering.set_policy(policy)
        self._paths = self.steering.policies
        self._coding = policy.short.coding or policy.long.coding
        self._estimators.clear()
        self._counts.update(self.unit_outcomes())
        self._margins.clear()
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
            self._wrap(peer, flow, _SOURCE, _CONTROL, packet, flow.position, 0, ecn, now)
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
            self._close(flow, now)
            flow.encoder = None
        self._wrap(peer, flow, _SOURCE, kind, packet, position, FLAG_CODED if coding else 0, ecn, now)
        if coding is not None:
            self._code(peer, flow, kind, coding, position, packet, seen, now)
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

    def unit_outcomes(self) -> dict[str, int]:
        """Units that came to k symbols in time and those that did not, under this policy's adaptive redundancy."""
        margins = self._margins.values()
        return {
            "units_in_time": sum(margin.successes for margin in margins),
            "units_not_in_time": sum(margin.failures for margin in margins),
        }

    def send_super(self, peer: PeerState, packet: bytes, seen: InnerPacket, size: int, now: float) -> None:
        """Cut a TCP super-packet into segments of *size* bytes of payload, and wrap them all for *peer*."""
        flow = self._flow(seen, now)
        rows, last = tcp_segments(packet, seen, size, _FRONT)
        count = len(rows)
        flow.packets += count
        flow.bytes += len(packet) + (count - 1) * header_bytes(packet, seen)
        self._counts["packets_sent"] += count
        ecn = tunnel.ecn_of(packet)
        whole = rows.shape[1] - _FRONT
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
                self._close(flow, now)
                flow.encoder = None
            if coding is None:
                self._wrap_rows(peer, flow, kind, part, last_bytes, 0, ecn, now)
            else:
                at, push = start + begin * size, seen.push and end == count
                self._code_rows(peer, flow, kind, coding, part, last_bytes, at, size, push, ecn, now)
            flow.payload += min(end * size, seen.payload) - begin * size
            begin = end
        if seen.push:
            self._look_for_end(flow, packet, seen, now)

    def feedback(self, peer: PeerState, body: bytes, now: float) -> None:
        """What *peer* says of our datagrams. Raises DatagramError."""
        numbers, stamps, delays_us, lost, recovered = decode_feedback(body)
        known, sent = peer.estimator, peer.sent
        if peer.departures is not None:
            receipts = zip(numbers, stamps, delays_us, strict=True)
            leaf = peer.peer.leaf
            self.steering.learn(leaf, sent, peer.departures, receipts, lost, peer.above_least, now)
        newest: float | None = None
        arrived = 0
        if known is None:
            sent.arrived_many(numbers, stamps)
        else:
            for number, stamp, delay_us in zip(numbers, stamps, delays_us, strict=True):
                remembered = sent.arrived(number, stamp)
                left = peer.outstanding.arrived(number)
                if left is not None:
                    arrived += 1
                    if newest is None or left > newest:
                        newest = left
                if remembered and stamp:
                    peer.stamps.add(stamp)
                    known.path_delay(stamp, peer.above_least(delay_us), now)
        if known is not None and newest is not None:
            overdue = peer.outstanding.overdue(newest - known.overdue_s)
            for _ in range(overdue):
                known.path_loss(None, now)
            known.told(arrived, overdue, now)
        if known is not None and peer.outcomes:
            for number, delay_us in zip(numbers, delays_us, strict=True):
                peer.outcomes.arrived(number, delay_us)
            for first, count in lost:
                peer.outcomes.lost(first, count)
        self._counts["recovered_at_peers"] += recovered
        self._counts["lost_at_peers"] += sum(min(count, 65536) for _, count in lost)

    def acknowledged(self, peer: PeerState, packet: bytes, seen: InnerPacket, now: float) -> None:
        """An inner TCP packet came from *peer*: its ACK may time a segment of ours (Karn: not a repeated one)."""
        if peer.estimator is None or seen.protocol != TCP:
            return
        flow = self.flows.get(seen.reverse)
        if flow is None or (flow.unacked is None and flow.window is None):
            return
        ack = int.from_bytes(packet[seen.transport + 8 : seen.transport + 12], "big")
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
        for body in peer.feedbacks():
            self._counts["feedbacks_sent"] += 1
            self._wrap(peer, None, _FEEDBACK, _CONTROL, body, 0, 0, 0, now)

    def deadline(self) -> float | None:
        """When a unit has to be closed; None while none is open."""
        if not self._open:
            return None
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
            self._ended(flow, flow.last)
            self.steering.forget(flow.id)

    def _look_for_end(self, flow: SendFlow, packet: bytes, seen: InnerPacket, now: float) -> None:
        """Whether TCP says that *flow* sends no more."""
        if seen.protocol == TCP and packet[seen.transport + 13] & (FIN | RST):
            self._ended(flow, now)

    def _ended(self, flow: SendFlow, now: float) -> None:
        if self._priorities.predicted:
            self.finished.add(flow, now)

    def _code(
        self,
        peer: PeerState,
        flow: SendFlow,
        kind: int,
        coding: CodingPolicy,
        position: int,
        packet: bytes,
        seen: InnerPacket,
        now: float,
    ) -> None:
        if flow.encoder is None:
            flow.encoder, flow.encoder_class = UnitEncoder(coding, self._rng), kind
        encoder, known = flow.encoder, peer.estimator
        if seen.protocol == TCP:
            start = int.from_bytes(packet[seen.transport + 4 : seen.transport + 8], "big")
            self._tcp_left(flow, coding, start, seen.payload, seen.payload, now)
        if known is not None and not encoder.open_packets:
            self._plan_unit(peer, known, flow, encoder, kind, coding, flow.payload - seen.payload, now)
        if flow.unit is not None:
            peer.outcomes.sent((peer.number - 1) % NUMBER_MODULUS, flow.unit)
        self._added(peer, flow, encoder, encoder.add(position, packet, now, seen.push), now)

    def _code_rows(
        self,
        peer: PeerState,
        flow: SendFlow,
        kind: int,
        coding: CodingPolicy,
        rows: Rows,
        last_bytes: int,
        start: int,
        size: int,
        push: bool,
        ecn: int,
        now: float,
    ) -> None:
        """Wrap segments in rows, as `_wrap_rows` does, each unit's repairs behind it.

        *start*: sequence number of the first; *size*: bytes of payload of each but the last.
        """
        if flow.encoder is None:
            flow.encoder, flow.encoder_class = UnitEncoder(coding, self._rng), kind
        encoder, known = flow.encoder, peer.estimator
        count, whole, at = len(rows), rows.shape[1] - _FRONT, 0
        payload = count * size - (whole - last_bytes)
        while at < count:
            # what a unit is planned by has seen its first packet
            self._tcp_left(flow, coding, start + at * size, min(size, payload - at * size), size, now)
            if known is not None and not encoder.open_packets:
                self._plan_unit(peer, known, flow, encoder, kind, coding, flow.payload + at * size, now)
            some = rows[at : at + encoder.room]
            rest, at = at + 1, at + len(some)
            behind = min(at * size, payload) - rest * size
            self._tcp_left(flow, coding, start + rest * size, behind, size, now)
            number, position = peer.number, flow.position
            cut = last_bytes if at == count else whole
            self._wrap_rows(peer, flow, kind, some, cut, FLAG_CODED, ecn, now)
            if flow.unit is not None:
                for offset in range(len(some)):
                    peer.outcomes.sent((number + offset) % NUMBER_MODULUS, flow.unit)
            packets = [row[_FRONT:].tobytes() for row in some]
            packets[-1] = packets[-1][:cut]
            repairs = encoder.add_run(position, packets, now, push and at == count)
            self._added(peer, flow, encoder, repairs, now)

    def _added(
        self, peer: PeerState, flow: SendFlow, encoder: UnitEncoder, repairs: list[Repair], now: float
    ) -> None:
        """The flow's encoder has taken packets in: send the *repairs* that it gave."""
        if encoder.open_packets:
            self._open[flow.key] = flow
        else:
            self._open.pop(flow.key, None)
        flow.peer = peer
        self._send_repairs(flow, repairs, now)
        if not encoder.open_packets:
            self._end_unit(flow, len(repairs))

    def _tcp_left(
        self, flow: SendFlow, coding: CodingPolicy, start: int, payload: int, size: int, now: float
    ) -> None:
        """TCP segments of *size* bytes leave, from sequence number *start* on: *payload* bytes in all."""
        if payload <= 0:
            return
        for at in (0, size) if payload > size else (0,):
            end = (start + min(at + size, payload)) % NUMBER_MODULUS
            if flow.unacked is None:
                flow.unacked = (end, now)
            elif serial_difference(end, flow.unacked[0]) <= 0:
                flow.unacked = None  # sent again: its ACK would not tell which one it is for
            else:
                break  # and so do those behind it
        if coding.unit == "window":
            if flow.window is None:
                flow.window = WindowEstimate()
            flow.window.sent(start % NUMBER_MODULUS, payload, size)

    def _plan_unit(
        self,
        peer: PeerState,
        known: BlockingEstimator,
        flow: SendFlow,
        encoder: UnitEncoder,
        kind: int,
        coding: CodingPolicy,
        sent_bytes: int,
        now: float,
    ) -> None:
        """A unit begins: its size and redundancy. *sent_bytes*: payload of the flow before it."""
        blocked = known.blocking_probability(now)
        if coding.redundancy == "adaptive":
            margin = self._margins.setdefault(
                (peer.peer.leaf, kind), Margin(coding.target_decode_probability)
            )
            flow.unit = SentUnit(margin) if blocked > 0.0 else None
            blocked = margin.corrected(blocked)
        window = None if flow.window is None else flow.window.packets()
        if coding.unit == "window":
            k = window or coding.max_k
        else:
            k = optimal_k(
                coding,
                blocked,
                known.rtt_s(),
                known.blocked_rtt_s(),
                packet_time_s=self._spray_time_s(peer),
            )
        encoder.set_redundancy(blocked, k, sent_bytes, window)

    def _spray_time_s(self, peer: PeerState) -> float:
        """Seconds a packet takes when all paths that were heard of carry one at a time."""
        return self._policy.packet_time_s / max(1, len(peer.stamps))

    def _close(self, flow: SendFlow, now: float) -> None:
        self._open.pop(flow.key, None)
        if flow.encoder is not None and flow.encoder.open_packets:
            repairs = flow.encoder.close()
            self._send_repairs(flow, repairs, now)
            self._end_unit(flow, len(repairs))

    def _end_unit(self, flow: SendFlow, repairs: int) -> None:
        """The flow's unit is closed and its repairs have left."""
        self._counts["units_sent"] += 1
        if flow.unit is not None and flow.peer is not None:
            k, coding = flow.unit.symbols - repairs, self._classes[flow.encoder_class].coding
            most = coding is not None and repairs >= repair_bound(coding, k)
            flow.peer.outcomes.closed(flow.unit, k, most)
            flow.unit = None

    def _send_repairs(self, flow: SendFlow, repairs: list[Repair], now: float) -> None:
        if not repairs or flow.peer is None:
            return
        flow.repairs += len(repairs)
        self._counts["repairs_sent"] += len(repairs)
        for position, head, symbol in repairs:
            if flow.unit is not None:
                flow.peer.outcomes.sent(flow.peer.number, flow.unit)
            body = head.encode() + symbol
            self._wrap(flow.peer, flow, _REPAIR, flow.encoder_class, body, position, FLAG_CODED, 0, now)

    def _flow(self, seen: InnerPacket, now: float) -> SendFlow:
        flow = self.flows.get(seen.flow)
        if flow is None or (seen.opening and flow.payload):
            # unknown, or a new connection on the ports of an old one: short again, with positions of its own
            if flow is not None:
                self._close(flow, now)
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

    def _wrap(
        self,
        peer: PeerState,
        flow: SendFlow | None,
        kind: int,
        traffic_class: int,
        body: bytes,
        position: int,
        flags: int,
        ecn: int,
        now: float,
    ) -> None:
        number = peer.number
        peer.number = (number + 1) % NUMBER_MODULUS
        if flow is None:
            name, port, tos = 0, BASE_PORT, self._priorities.control_tos
        else:
            name, port, tos = flow.id, flow.port, flow.tos[traffic_class]
        route = peer.routes[traffic_class]
        entropy = self._paths[traffic_class].entropy(flow or peer.own, route, len(body), now)
        peer.sent.sent(number, entropy)
        if peer.departures is not None:
            peer.departures.sent(number, 1, name, traffic_class, now)
        if flags & FLAG_CODED and peer.estimator is not None:
            # only what is sprayed and coded: a long flow's own queue would speak for all paths
            peer.outstanding.sent(number, now)
        data = capstan_native.encode_datagram(
            kind,
            traffic_class | flags,
            self._session,
            number,
            int(now * 1e6) % NUMBER_MODULUS,
            name,
            position,
            body,
        )
        self._outgoing.append(Outgoing(peer.peer.underlay_ip, entropy, port, tos | ecn, data))

    def _wrap_rows(
        self,
        peer: PeerState,
        flow: SendFlow,
        traffic_class: int,
        rows: Rows,
        last_bytes: int,
        flags: int,
        ecn: int,
        now: float,
    ) -> None:
        """`_wrap` for packets in rows, with room for the headers before each; the last one has *last_bytes*."""
        count, width = rows.shape
        number, position = peer.number, flow.position
        peer.number = (number + count) % NUMBER_MODULUS
        flow.position = (position + count) % NUMBER_MODULUS
        flow.traffic_class = traffic_class
        capstan_native.seal_rows(
            rows,
            OUTER_HEADER_BYTES,
            last_bytes,
            _SOURCE,
            traffic_class | flags,
            self._session,
            number,
            int(now * 1e6) % NUMBER_MODULUS,
            flow.id,
            position,
        )
        route, whole = peer.routes[traffic_class], width - _FRONT
        entropies = self._paths[traffic_class].entropies(flow, route, whole, count, last_bytes, now)
        peer.sent.sent_many(number, entropies)
        if peer.departures is not None:
            peer.departures.sent(number, count, flow.id, traffic_class, now)
        if flags & FLAG_CODED and peer.estimator is not None:
            peer.outstanding.sent_many(number, count, now)
        self._outgoing.append(
            Burst(
                peer.peer.underlay_ip,
                entropies,
                flow.port,
                flow.tos[traffic_class] | ecn,
                rows,
                HEADER_BYTES + last_bytes,
            )
        )


def _short_bytes(flow: SendFlow, policy: Policy) -> int:
    """Payload that a flow sends as a short one.

    Of an announced flow, all or nothing: one that was announced as short has twice the limit for what TCP sends again,
    and beyond that the announcement was wrong.
    """
    limit = policy.short_limit_bytes
    if not policy.prior_knowledge or flow.announced is None:
        return limit
    return 2 * limit if flow.announced < limit else 0
