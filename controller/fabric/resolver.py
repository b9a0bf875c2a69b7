"""Answers ARP from what is known, and asks for what is not: switches never flood it.

A request for a host whose place is known is answered in the host's name. For any other, the controller itself sends
requests at the edge ports, and the requester gets the reply when the host is found. Requests for one address back off
from 1 s to 30 s while there is no reply, and the rate of all requests together is limited, so that a host that scans
addresses costs little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.arp import BROADCAST_MAC, NO_ADDRESS, NO_MAC, REPLY, REQUEST, Arp
from controller.fabric.graph import PortRef
from controller.fabric.hosts import Host
from controller.fabric.lldp import CONTROLLER_MAC
from controller.fabric.switch_data import PacketOut
from controller.token_bucket import TokenBucket

FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 30.0
FRAMES_PER_S: Final = 4000.0
"""Request frames, over all addresses and ports."""
BURST_FRAMES: Final = 2000.0
AT_ONCE: Final = 64
"""Request frames of one call: less than a millisecond's work. The rest of a request follows at `FRAMES_PER_S`."""
REQUESTERS: Final = 32
"""Most requesters remembered for one address."""
PENDING: Final = 4096
"""Most addresses remembered as asked for."""
WAIT_S: Final = 5.0
"""A requester that got no reply for this long has repeated its request or given up."""
LOCATE_RETRY_S: Final = 2.0
"""Longest time between two requests for a registered host."""
LOCATE_AFTER_S: Final = 0.1
"""A registered host is looked for if nothing came from it for this long."""

_CONTROLLER: Final = CONTROLLER_MAC.hex(":")


@dataclass(slots=True)
class _Rest:
    """The ports at which a request has not been sent yet."""

    frame: bytes
    ports: deque[PortRef]


@dataclass(slots=True)
class _PendingRequest:
    retry_at: float
    retry_s: float = FIRST_RETRY_S
    requesters: dict[str, tuple[Arp, PortRef, float]] = field(default_factory=dict)

    def note(self, request: Arp, place: PortRef, now: float) -> None:
        """Remember who asks, in the place of those who have waited for too long."""
        waiting = {ip: asked for ip, asked in self.requesters.items() if now - asked[2] <= WAIT_S}
        if len(waiting) < REQUESTERS or request.sender_ip in waiting:
            waiting[request.sender_ip] = (request, place, now)
        self.requesters = waiting


class Resolver:
    """The addresses that were asked for, who asked, and when each may be asked for again."""

    def __init__(self) -> None:
        self._pending: dict[str, _PendingRequest] = {}
        self._frames = TokenBucket(BURST_FRAMES, 0.0)
        self._rest: deque[_Rest] = deque()
        """Of requests that went out in part."""
        self._rest_at = 0.0

    def wanted(
        self, request: Arp, place: PortRef, edge: Callable[[], Sequence[PortRef]], now: float
    ) -> list[PacketOut]:
        """Return request frames for *request*, which came in at *place* for a host that is not known or not placed.

        edge: returns the ports where hosts may be; called if there is something to ask.
        """
        pending = self._pending.get(request.target_ip)
        if pending is None:
            self._expire(now)
            if len(self._pending) >= PENDING:
                return []
            pending = self._pending[request.target_ip] = _PendingRequest(now)
        if request.sender_ip != NO_ADDRESS:
            pending.note(request, place, now)
        if now < pending.retry_at:
            return []
        ports = [port for port in edge() if port != place]
        return self._ask(request.target_ip, BROADCAST_MAC, pending, ports, now=now)

    def locate(
        self,
        hosts: Iterable[Host],
        guess: Callable[[Host], Sequence[PortRef]],
        edge: Sequence[PortRef],
        now: float,
    ) -> list[PacketOut]:
        """Return the request frames for registered hosts whose place is not known (their MACs are, so only they
        answer).

        guess: where a host probably is; asked first. Without a guess all edge ports are asked, but for one host of a
        /24 at a time: where it is found is the guess for the others.
        """
        frames: list[PacketOut] = []
        networks: set[str] = set()
        for host in hosts:
            pending = self._pending.setdefault(host.ipv4, _PendingRequest(now + LOCATE_AFTER_S))
            if now < pending.retry_at:
                continue
            pending.retry_s = min(pending.retry_s, LOCATE_RETRY_S)
            ports = guess(host) if pending.retry_s == FIRST_RETRY_S else ()
            network = host.ipv4.rpartition(".")[0]
            if not ports and pending.retry_s == FIRST_RETRY_S and network in networks:
                pending.retry_at = now + LOCATE_AFTER_S
                continue
            networks.add(network)
            frames += self._ask(host.ipv4, host.mac, pending, ports or edge, now=now)
        return frames

    def locate_at(self, hosts: Iterable[Host]) -> float | None:
        """Return when `locate` next has something to ask for *hosts*, seconds; None: for none of them."""
        return min((self._pending[h.ipv4].retry_at for h in hosts if h.ipv4 in self._pending), default=None)

    def rest(self, now: float) -> list[PacketOut]:
        """Return the next frames of requests that went out in part, as far as they are due."""
        if not self._rest or now < self._rest_at:
            return []
        self._rest_at = now + AT_ONCE / FRAMES_PER_S
        frames: list[PacketOut] = []
        while self._rest and len(frames) < AT_ONCE:
            first = self._rest[0]
            frames.append(PacketOut(*first.ports.popleft(), first.frame))
            if not first.ports:
                self._rest.popleft()
        return frames

    def rest_at(self) -> float | None:
        """Return when `rest` next has frames, seconds; None: all are sent."""
        return self._rest_at if self._rest else None

    def challenge(self, host: Host) -> list[PacketOut]:
        """Return the ARP requests that ask the owner of a disputed address whether it is still there."""
        if host.place is None:
            return []
        return [PacketOut(host.place.dpid, host.place.port, _probe(host.ipv4, host.mac))]

    def found(self, host: Host, now: float) -> list[PacketOut]:
        """Return answers for all who wanted to know; call when packets to *host* find their way."""
        pending = self._pending.pop(host.ipv4, None)
        if pending is None:
            return []
        return [
            answer(request, host, place)
            for request, place, asked_s in pending.requesters.values()
            if now - asked_s <= WAIT_S and place != host.place
        ]

    def _ask(
        self, ipv4: str, mac: str, pending: _PendingRequest, edge: Sequence[PortRef], *, now: float
    ) -> list[PacketOut]:
        if now < pending.retry_at:
            return []
        if not edge:
            pending.retry_at = now + LOCATE_AFTER_S
            return []
        if self._frames.level(FRAMES_PER_S, now) < min(len(edge), BURST_FRAMES):
            pending.retry_at = now + FIRST_RETRY_S / 10
            return []
        self._frames.spend(len(edge))
        pending.retry_at = now + pending.retry_s
        pending.retry_s = min(2 * pending.retry_s, LAST_RETRY_S)
        frame = _probe(ipv4, mac)
        if len(edge) > AT_ONCE:
            if not self._rest:
                self._rest_at = now + AT_ONCE / FRAMES_PER_S
            self._rest.append(_Rest(frame, deque(edge[AT_ONCE:])))
        return [PacketOut(*ref, frame) for ref in edge[:AT_ONCE]]

    def _expire(self, now: float) -> None:
        if len(self._pending) < PENDING:
            return
        for ipv4 in [ip for ip, q in self._pending.items() if now - q.retry_at > LAST_RETRY_S]:
            del self._pending[ipv4]


def answer(request: Arp, host: Host, place: PortRef) -> PacketOut:
    """Return the reply to *request*, which came in at *place*, in the name of *host*."""
    reply = Arp(
        eth_dst=request.eth_src,
        eth_src=host.mac,
        operation=REPLY,
        sender_mac=host.mac,
        sender_ip=host.ipv4,
        target_mac=request.sender_mac,
        target_ip=request.sender_ip,
    )
    return PacketOut(place.dpid, place.port, reply.encode())


def _probe(ipv4: str, mac: str) -> bytes:
    """Return an ARP probe (RFC 5227): no sender's IP address, so no cache learns anything from it."""
    return Arp(mac, _CONTROLLER, REQUEST, _CONTROLLER, NO_ADDRESS, NO_MAC, ipv4).encode()
