"""The coding half of sending: units of each flow, their size and redundancy, and the repairs behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from host_agent.coding.blocking import BlockingEstimator
from host_agent.coding.outcomes import Margin, SentUnit
from host_agent.coding.redundancy import repair_bound
from host_agent.coding.unit import ClosedUnit, UnitEncoder
from host_agent.coding.unit_size import optimal_k
from host_agent.coding.window import WindowEstimate
from host_agent.flows import SendFlow
from host_agent.inner_packet import TCP, InnerPacket
from host_agent.peers import PeerState
from host_agent.wire import Rows
from host_agent.wrapping import FRONT_BYTES, Wrapping
from protocol.datagram import NUMBER_MODULUS, REPAIR_HEAD_BYTES, serial_difference
from protocol.policy import DEFAULT_POLICY, ClassPolicy, CodingPolicy, Policy


class CodedSending:
    """One for all peers and flows; `Sender` says which packets are coded."""

    def __init__(self, rng: np.random.Generator, wrapping: Wrapping, counts: Counter[str]) -> None:
        (self._rng,) = rng.spawn(1)
        """Of units: what they draw does not change what paths draw, however packets come."""
        self._wrapping = wrapping
        self._counts = counts
        self._margins: dict[tuple[str, int], Margin] = {}
        """Of redundancy ``adaptive``, by leaf and class."""
        self._open: dict[bytes, SendFlow] = {}
        """Flows whose coding unit is open."""
        self._policy = DEFAULT_POLICY
        self._classes: Sequence[ClassPolicy] = ()
        """By traffic class."""

    def set_policy(self, policy: Policy, classes: Sequence[ClassPolicy], now: float) -> None:
        """Use *policy* from the next packet on; units that are open are closed by their old policy."""
        for flow in list(self._open.values()):
            self.close(flow, now)
        self._counts.update(self.unit_outcomes())
        self._margins.clear()
        self._policy, self._classes = policy, classes

    def forget(self, flow: SendFlow) -> None:
        """A flow is gone, and its open unit with it."""
        self._open.pop(flow.key, None)

    def sent(
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
        """A packet of a coded class has left as *position*; send the repairs that it completes."""
        if flow.encoder is None:
            flow.encoder, flow.encoder_class = UnitEncoder(coding, self._rng), kind
        encoder, known = flow.encoder, peer.estimator
        if seen.protocol == TCP:
            start = int.from_bytes(packet[seen.transport + 4 : seen.transport + 8], "big")
            self._tcp_left(flow, coding, start, seen.payload, seen.payload, now)
        if known is not None and not encoder.open_packets:
            blocked, before = known.blocking_probability(now), flow.payload - seen.payload
            self._plan_unit(peer, known, blocked, flow, encoder, kind, coding, before)
        if flow.unit is not None:
            peer.outcomes.sent((peer.number - 1) % NUMBER_MODULUS, flow.unit)
        units = encoder.take(position, packet, now, seen.push)
        self._note_open(flow, encoder)
        flow.peer = peer
        repairs = self._send_repairs(flow, units, now)
        if not encoder.open_packets:
            self._end_unit(flow, repairs)

    def send_rows(
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
        """Wrap segments in rows, as `Wrapping.wrap_rows` does, each unit's repairs behind it; all leave as one burst.

        *start*: sequence number of the first; *size*: bytes of payload of each but the last.
        """
        if flow.encoder is None:
            flow.encoder, flow.encoder_class = UnitEncoder(coding, self._rng), kind
        encoder, known, flow.peer = flow.encoder, peer.estimator, peer
        count, whole, at, told = len(rows), rows.shape[1] - FRONT_BYTES, 0, 0
        payload = count * size - (whole - last_bytes)
        policy, route, position = self._wrapping.steering.policies[kind], peer.routes[kind], flow.position
        draw = policy.entropies if policy.by_size else None
        units: list[tuple[int, ClosedUnit]] = []
        entropies: list[int] = []
        number, blocked = peer.number, None
        while at < count:
            if known is not None and not encoder.open_packets:
                # what a unit is planned by has seen its first packet
                behind = min((at + 1) * size, payload) - told * size
                self._tcp_left(flow, coding, start + told * size, behind, size, now)
                told = at + 1
                if blocked is None:
                    blocked = known.blocking_probability(now)
                before = flow.payload + at * size
                self._plan_unit(peer, known, blocked, flow, encoder, kind, coding, before)
            begin, at = at, min(count, at + encoder.room)
            cut = last_bytes if at == count else whole
            if flow.unit is not None:
                peer.outcomes.sent_many(number, at - begin, flow.unit)
            number += at - begin
            if draw is not None:
                entropies += draw(flow, route, whole, at - begin, cut, now)
            closed = encoder.take_rows(
                position + begin, rows, begin, at, FRONT_BYTES, cut, now, push and at == count
            )
            repairs = 0
            for unit in closed:
                if flow.unit is not None:
                    peer.outcomes.sent_many(number + repairs, unit.r, flow.unit)
                if draw is not None:
                    body = REPAIR_HEAD_BYTES + unit.symbol_bytes
                    entropies += draw(flow, route, body, unit.r, body, now)
                units.append((at, unit))
                repairs += unit.r
            number += repairs
            if not encoder.open_packets:
                self._end_unit(flow, repairs)
        self._tcp_left(flow, coding, start + told * size, payload - told * size, size, now)
        if draw is None:
            entropies = policy.entropies(flow, route, whole, number - peer.number, last_bytes, now)
        self._count(flow, len(entropies) - count)
        self._wrapping.wrap_coded(peer, flow, kind, rows, last_bytes, units, entropies, ecn, now)
        self._note_open(flow, encoder)

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
                self.close(flow, now)

    def close(self, flow: SendFlow, now: float) -> None:
        """Close the flow's unit if one is open, and send its repairs."""
        self._open.pop(flow.key, None)
        if flow.encoder is not None and flow.encoder.open_packets:
            self._end_unit(flow, self._send_repairs(flow, flow.encoder.end(), now))

    def unit_outcomes(self) -> dict[str, int]:
        """Units that came to k symbols in time and those that did not, under this policy's adaptive redundancy."""
        margins = self._margins.values()
        return {
            "units_in_time": sum(margin.successes for margin in margins),
            "units_not_in_time": sum(margin.failures for margin in margins),
        }

    def _note_open(self, flow: SendFlow, encoder: UnitEncoder) -> None:
        """Whether the flow's unit has to be closed in time."""
        if encoder.open_packets:
            self._open[flow.key] = flow
        else:
            self._open.pop(flow.key, None)

    def _tcp_left(
        self, flow: SendFlow, coding: CodingPolicy, start: int, payload: int, size: int, now: float
    ) -> None:
        """TCP segments of *size* bytes leave, from sequence number *start* on: *payload* bytes in all."""
        if payload <= 0:
            return
        end = (start + min(size, payload)) % NUMBER_MODULUS
        if flow.unacked is None:
            flow.unacked = (end, now)
        elif serial_difference(end, flow.unacked[0]) <= 0:
            # sent again: its ACK would not tell which one it is for
            second = (start + min(2 * size, payload)) % NUMBER_MODULUS
            flow.unacked = (second, now) if payload > size else None
        if coding.unit == "window":
            if flow.window is None:
                flow.window = WindowEstimate()
            flow.window.sent(start % NUMBER_MODULUS, payload, size)

    def _plan_unit(
        self,
        peer: PeerState,
        known: BlockingEstimator,
        blocked: float,
        flow: SendFlow,
        encoder: UnitEncoder,
        kind: int,
        coding: CodingPolicy,
        sent_bytes: int,
    ) -> None:
        """A unit begins: its size and redundancy. *blocked*: pB; *sent_bytes*: payload of the flow before it."""
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

    def _end_unit(self, flow: SendFlow, repairs: int) -> None:
        """The flow's unit is closed and its repairs have left."""
        self._counts["units_sent"] += 1
        if flow.unit is not None and flow.peer is not None:
            k, coding = flow.unit.symbols - repairs, self._classes[flow.encoder_class].coding
            most = coding is not None and repairs >= repair_bound(coding, k)
            flow.peer.outcomes.closed(flow.unit, k, most)
            flow.unit = None

    def _send_repairs(self, flow: SendFlow, units: list[ClosedUnit], now: float) -> int:
        """How many there are."""
        peer, total = flow.peer, 0
        if peer is None:
            return 0
        for unit in units:
            if flow.unit is not None:
                peer.outcomes.sent_many(peer.number, unit.r, flow.unit)
            self._wrapping.wrap_repairs(peer, flow, flow.encoder_class, unit, now)
            total += unit.r
        self._count(flow, total)
        return total

    def _count(self, flow: SendFlow, repairs: int) -> None:
        if repairs:
            flow.repairs += repairs
            self._counts["repairs_sent"] += repairs
