"""Runs of datagrams of a known peer: taken in as one thing where all of them are ordinary, one by one where not."""

from __future__ import annotations

from collections import Counter
from typing import Final

from host_agent.inner_packet import PacketError
from host_agent.peers import PeerState
from host_agent.receiving import Receiver
from host_agent.wire import CodedRun, Run
from protocol.datagram import NUMBER_MODULUS, DatagramError, Kind

_ECN: Final = 0b11
_REPAIR: Final = int(Kind.REPAIR)


def take_run(receiver: Receiver, peer: PeerState, run: Run, counts: Counter[str], now: float) -> None:
    """Take in datagrams of the peer's present session; what is replayed or malformed is dropped and counted."""
    _, tos, kind, flags, _, number, sent_us, name, position, key, ports, bodies = run
    count, step = len(bodies), 0 if kind == _REPAIR else 1
    if kind == _REPAIR:
        if count > 1 and peer.arrivals.accept_run(number, count, now):
            receiver.receive_repairs(peer, flags, (number, sent_us), name, position, ports, bodies, now)
            return
    elif count > 1 and not tos & _ECN:
        flow = receiver.flow_of_run(peer, flags, name, position, count, key, now)
        if flow is not None and peer.arrivals.accept_run(number, count, now):
            receiver.receive_run(peer, flow, flags, (number, sent_us), position, ports, bodies, now)
            return
    for offset, body in enumerate(bodies):
        at = (number + offset) % NUMBER_MODULUS
        if not peer.arrivals.accept(at, now):
            counts["dropped_replayed"] += 1
            continue
        place = (position + offset * step) % NUMBER_MODULUS
        try:
            receiver.receive(
                peer, kind, flags, (at, sent_us), name, place, body, key, ports[offset], tos, now
            )
        except (DatagramError, PacketError) as error:
            counts[f"dropped_{error.reason}"] += 1


def take_coded_run(receiver: Receiver, peer: PeerState, run: CodedRun, now: float) -> bool:
    """Take in sources with repairs among them that nobody needs.

    False, and nothing was done: each part has to be looked at by itself.
    """
    (_, tos, _, flags, _, number, sent_us, name, position, key, ports, sources), repairs = run
    if tos & _ECN:
        return False
    flow = receiver.flow_of_run(peer, flags, name, position, len(sources), key, now)
    if (
        flow is None
        or flow.decoder is None
        or not flow.decoder.needs_none_of(position, repairs)
        or not peer.arrivals.accept_run(number, len(ports), now)
    ):
        return False
    surplus = len(ports) - len(sources)
    receiver.receive_run(peer, flow, flags, (number, sent_us), position, ports, sources, now, surplus)
    return True
