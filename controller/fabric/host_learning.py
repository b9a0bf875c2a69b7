"""Learning where hosts are from their ARP packets, and answering those: hosts, resolver and edge ports together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

from controller.fabric.arp import NO_ADDRESS, REQUEST, Arp, is_host_address, is_host_mac
from controller.fabric.discovery import LinkDiscovery, LinkEvent
from controller.fabric.events import HostSeen
from controller.fabric.graph import PortRef
from controller.fabric.hosts import HOSTS_PER_PORT, Host, HostEvent, Hosts
from controller.fabric.resolver import Resolver, answer
from controller.fabric.switch_data import HeldHost, PacketOut

ANSWERS: Final = 4096
"""Most answers that wait for the switches' updates."""


class HostLearning:
    """Args:
    hosts: what is learnt, and what agents have registered.
    may_have_host: whether a switch may have one more host that no agent has registered.
    """

    def __init__(self, discovery: LinkDiscovery, hosts: Hosts, may_have_host: Callable[[int], bool]) -> None:
        self.hosts = hosts
        self._may_have_host = may_have_host
        self._discovery = discovery
        self._resolver = Resolver()
        self._found: list[str] = []
        self._answers: list[tuple[Arp, PortRef]] = []
        self._closed: deque[tuple[int, list[str], list[tuple[Arp, PortRef]]]] = deque()

    def arp(
        self, arp: Arp, place: PortRef, now: float, *, answered: bool = False
    ) -> tuple[list[PacketOut], list[HostEvent | LinkEvent]]:
        """Handle an ARP packet that came in at *place*. Return what to send at once, and what has changed.

        Answers come from `answers`, once the switches know where the packets that follow have to go. answered: its
        switch has answered it.
        """
        events: list[HostEvent | LinkEvent] = []
        if arp.eth_src != arp.sender_mac or not is_host_mac(arp.sender_mac):
            return [], []  # A question of ours, come back over a link not found yet, or a forged one.
        if self._discovery.port(place) is None or self._discovery.is_linked(place):
            return [], []
        if self._discovery.is_wired(place):
            if not self._discovery.is_quiet(place, now):
                return [], []
            events += self._discovery.host_found(place, now)
        frames = self._learn(arp, place, events, now)
        asks = arp.operation == REQUEST and arp.target_ip != arp.sender_ip and not answered
        if asks and is_host_address(arp.target_ip):
            frames += self._resolve(arp, place, now)
        return frames, events

    def held(
        self, dpid: int, ports: Iterable[int], hosts: Iterable[HeldHost], *, most: int | None, now: float
    ) -> list[HostEvent]:
        """Learn hosts from what a switch with these *ports* held when it connected. Return what has changed.

        As little of it is believed as of ARP: addresses that a host can have, at ports that are there, few a port; and
        *most* hosts in all, unless that is None.
        """
        room = Counter(dict.fromkeys(ports, HOSTS_PER_PORT))
        believed: list[HeldHost] = []
        for host in hosts:
            if most is not None and len(believed) >= most:
                break
            if room[host.port] > 0 and is_host_address(host.ipv4) and is_host_mac(host.mac):
                room[host.port] -= 1
                believed.append(host)
        return self.hosts.held(dpid, believed, now)

    def locate(self, now: float) -> list[PacketOut]:
        """Return ARP requests for registered hosts whose place is unknown, as far as they are due, and the next ones of
        questions that went out in part."""
        rest = self._resolver.rest(now)
        unlocated = self.hosts.unlocated()
        if not unlocated:
            return rest
        edge = self._discovery.edge_ports()
        free: dict[int, list[PortRef]] = {}
        for place in edge:
            if not self.hosts.at(place):
                free.setdefault(place.dpid, []).append(place)
        leaves = {
            host.ipv4.rpartition(".")[0]: host.place.dpid for host in self.hosts if host.place is not None
        }

        def guess(host: Host) -> list[PortRef]:
            """Return free ports of a switch that has a host of the same /24."""
            leaf = leaves.get(host.ipv4.rpartition(".")[0])
            return [] if leaf is None else free.get(leaf, [])

        return rest + self._resolver.locate(unlocated, guess, edge, now)

    def settle(self, now: float) -> tuple[list[PacketOut], list[HostEvent | LinkEvent]]:
        """Return questions to the old places of hosts that seem to have moved, and the moves nothing speaks against."""
        frames = self._challenges(now)
        seen = self.hosts.settle(now, self._is_edge)
        self._found += [event.ipv4 for event in seen if isinstance(event, HostSeen)]
        return frames, [*seen]

    def settle_at(self) -> float | None:
        """Return when `settle` next has something to do, seconds; None: not before something else happens."""
        return self.hosts.claims_at()

    def locate_at(self) -> float | None:
        """Return when `locate` next has something to ask, seconds; None: not before something else happens."""
        times = (self._resolver.rest_at(), self._resolver.locate_at(self.hosts.unlocated()))
        return min((time for time in times if time is not None), default=None)

    def close(self, update_round: int) -> None:
        """Tie all hosts found until now to this round of updates."""
        if self._found or self._answers:
            self._closed.append((update_round, self._found, self._answers))
            self._found, self._answers = [], []

    def answers(self, in_force: int, now: float) -> list[PacketOut]:
        """Return answers to those who asked for hosts that packets can reach by the rounds that are in force."""
        frames: list[PacketOut] = []
        while self._closed and self._closed[0][0] <= in_force:
            _, addresses, requests = self._closed.popleft()
            for ipv4 in addresses:
                host = self.hosts.by_ip(ipv4)
                if host is not None and host.place is not None:
                    frames += self._resolver.found(host, now)
            for request, place in requests:
                host = self.hosts.by_ip(request.target_ip)
                if host is not None and host.place is not None:
                    frames.append(answer(request, host, place))
        return frames

    def _learn(
        self, arp: Arp, place: PortRef, events: list[HostEvent | LinkEvent], now: float
    ) -> list[PacketOut]:
        seen: list[HostEvent] = []
        frames: list[PacketOut] = []
        if arp.sender_ip == NO_ADDRESS:
            seen = self.hosts.seen_mac(arp.sender_mac, place, now)
        elif is_host_address(arp.sender_ip):
            known = self.hosts.by_ip(arp.sender_ip)
            if known is None and not self._may_have_host(place.dpid):
                self.hosts.refused += 1
                return []
            old = None if known is None or known.place is None else self._discovery.port(known.place)
            seen = self.hosts.seen(
                arp.sender_ip, arp.sender_mac, place, now, old_place_up=old is not None and old.up
            )
            frames += self._challenges(now)
        self._found += [event.ipv4 for event in seen if isinstance(event, HostSeen)]
        events += seen
        return frames

    def _challenges(self, now: float) -> list[PacketOut]:
        return [frame for host in self.hosts.to_challenge(now) for frame in self._resolver.challenge(host)]

    def _is_edge(self, place: PortRef) -> bool:
        port = self._discovery.port(place)
        return port is not None and port.up and not self._discovery.is_wired(place)

    def _resolve(self, arp: Arp, place: PortRef, now: float) -> list[PacketOut]:
        target = self.hosts.by_ip(arp.target_ip)
        if target is None or target.place is None:
            if arp.sender_ip == NO_ADDRESS:  # Is this address free? So it is, as far as we know.
                return []
            return self._resolver.wanted(arp, place, self._discovery.edge_ports, now)
        if target.place != place and target.mac != arp.sender_mac and len(self._answers) < ANSWERS:
            self._answers.append((arp, place))
        return []
