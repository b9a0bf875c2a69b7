"""Datagrams of flows: number, entropy value, header, and what is remembered of each until the peer reports it."""

from __future__ import annotations

from typing import Final

import capstan_native
import numpy as np

from host_agent.coding.unit import ClosedUnit, Piece
from host_agent.flows import SendFlow
from host_agent.paths.steering import Steering
from host_agent.peers import PeerState
from host_agent.priority import Priorities
from host_agent.wire import OUTER_HEADER_BYTES, Burst, Outgoing, Rows
from protocol.datagram import FLAG_CODED, HEADER_BYTES, NUMBER_MODULUS, REPAIR_HEAD_BYTES, Kind
from protocol.underlay import BASE_PORT

_SOURCE = int(Kind.SOURCE)
FRONT_BYTES: Final = OUTER_HEADER_BYTES + HEADER_BYTES
"""Room for headers before each packet in rows."""


class Wrapping:
    """Makes datagrams for *outgoing*. One for all peers."""

    def __init__(
        self, session: int, steering: Steering, priorities: Priorities, outgoing: list[Outgoing | Burst]
    ) -> None:
        self._session = session
        self.steering = steering
        self._outgoing = outgoing
        self._priorities = priorities

    def wrap(
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
        """One datagram of a flow (None: our own feedback) with this *body*; *ecn*: congestion marks of its packet."""
        number = peer.number
        peer.number = (number + 1) % NUMBER_MODULUS
        if flow is None:
            name, port, tos = 0, BASE_PORT, self._priorities.control_tos
        else:
            name, port, tos = flow.id, flow.port, flow.tos[traffic_class]
        route = peer.routes[traffic_class]
        entropy = self.steering.policies[traffic_class].entropy(flow or peer.own, route, len(body), now)
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

    def wrap_rows(
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
        """`wrap` for packets in rows, with room for the headers before each; the last one has *last_bytes*."""
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
        whole = width - FRONT_BYTES
        self._outgoing.append(
            self._left(peer, flow, traffic_class, rows, number, whole, last_bytes, flags, ecn, now)
        )

    def wrap_repairs(
        self, peer: PeerState, flow: SendFlow, traffic_class: int, unit: ClosedUnit, now: float
    ) -> None:
        """The repairs of a unit, made here."""
        body, number = REPAIR_HEAD_BYTES + unit.symbol_bytes, peer.number
        peer.number = (number + unit.r) % NUMBER_MODULUS
        made = _repairs(unit)
        capstan_native.seal_repairs(
            OUTER_HEADER_BYTES,
            traffic_class | FLAG_CODED,
            self._session,
            number,
            int(now * 1e6) % NUMBER_MODULUS,
            flow.id,
            made,
        )
        burst = self._left(peer, flow, traffic_class, made[0], number, body, body, FLAG_CODED, 0, now)
        self._outgoing += burst.each()

    def wrap_coded(
        self,
        peer: PeerState,
        flow: SendFlow,
        traffic_class: int,
        rows: Rows,
        last_bytes: int,
        units: list[tuple[int, ClosedUnit]],
        entropies: list[int],
        ecn: int,
        now: float,
    ) -> None:
        """`wrap_rows` for sources, and the repairs of each unit behind so many rows, as one burst.

        *entropies*: of all, in the order in which they leave.
        """
        number, position = peer.number, flow.position
        peer.number = (number + len(entropies)) % NUMBER_MODULUS
        flow.position = (position + len(rows)) % NUMBER_MODULUS
        flow.traffic_class = traffic_class
        made = [(behind, _repairs(unit)) for behind, unit in units]
        capstan_native.seal_coded(
            rows,
            OUTER_HEADER_BYTES,
            last_bytes,
            traffic_class | FLAG_CODED,
            self._session,
            number,
            int(now * 1e6) % NUMBER_MODULUS,
            flow.id,
            position,
            made,
        )
        self._departed(peer, flow, traffic_class, number, entropies, FLAG_CODED, now)
        tos = flow.tos[traffic_class]
        repairs = [(behind, unit[0]) for behind, unit in made]
        self._outgoing.append(
            Burst(
                peer.peer.underlay_ip,
                entropies,
                flow.port,
                tos | ecn,
                rows,
                HEADER_BYTES + last_bytes,
                repairs,
                tos,
            )
        )

    def _left(
        self,
        peer: PeerState,
        flow: SendFlow,
        traffic_class: int,
        rows: Rows,
        number: int,
        whole: int,
        last_bytes: int,
        flags: int,
        ecn: int,
        now: float,
    ) -> Burst:
        """Sealed datagrams with bodies of *whole* bytes leave, the last one's with *last_bytes*."""
        policy, route = self.steering.policies[traffic_class], peer.routes[traffic_class]
        entropies = policy.entropies(flow, route, whole, len(rows), last_bytes, now)
        self._departed(peer, flow, traffic_class, number, entropies, flags, now)
        tos = flow.tos[traffic_class] | ecn
        return Burst(peer.peer.underlay_ip, entropies, flow.port, tos, rows, HEADER_BYTES + last_bytes)

    def _departed(
        self,
        peer: PeerState,
        flow: SendFlow,
        traffic_class: int,
        number: int,
        entropies: list[int],
        flags: int,
        now: float,
    ) -> None:
        """Remember datagrams from *number* on, by what the peer will report of them."""
        count = len(entropies)
        peer.sent.sent_many(number, entropies)
        if peer.departures is not None:
            peer.departures.sent(number, count, flow.id, traffic_class, now)
        if flags & FLAG_CODED and peer.estimator is not None:
            peer.outstanding.sent_many(number, count, now)


def _repairs(unit: ClosedUnit) -> tuple[Rows, int, int, int, list[Piece]]:
    """The unit, with rows for its repairs, as `capstan_native` takes it."""
    rows = np.empty((unit.r, FRONT_BYTES + REPAIR_HEAD_BYTES + unit.symbol_bytes), np.uint8)
    return rows, unit.code.id, unit.seed, unit.position, unit.pieces
