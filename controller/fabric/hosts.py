"""Which hosts there are and where: from agents' registrations, ARP, and what switches held before us.

A registration gives a host's addresses (agents prove who they are), ARP gives its place. An address belongs to
the host that had it first: a registered MAC wins over any ARP; between plain hosts a new MAC is believed only when the
old owner's port is down or the old owner has been silent. The same addresses at another port are a host that moved, if
its old port is down, or if nothing answers there; this holds for agents' hosts, too. One that answers at its old port
stays. To be silent is not to answer for `CHALLENGE_S`, though asked `CHALLENGES` times (and for half of that since the
last question, which goes late where the controller did not run).

A host whose agent has left keeps its agent's treatment: agents keep sending while their channel is away, and on
another's ports nothing else is to be expected there. It is forgotten with its place: it may be nowhere now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from controller.fabric.events import HostConflict, HostSeen
from controller.fabric.graph import PortRef
from controller.fabric.switch_data import HeldHost

CHALLENGE_S: Final = 1.0
CHALLENGES: Final = 3
"""Requests to the old place of a host that seems to have moved, evenly within the first half of that time."""
CONFLICT_EVENT_S: Final = 10.0
"""Least time between two events of a conflict about one address."""
HOSTS_PER_PORT: Final = 64
"""Most plain hosts believed behind one port, so that no host can fill the switches' tables with made-up addresses."""

HostEvent = HostSeen | HostConflict


@dataclass(slots=True)
class _Claim:
    """A host seems to have moved, or another to have its address: where, since when, how often its old place was asked,
    and when last.
    """

    place: PortRef
    since: float
    asked: int = 0
    asked_at: float = float("-inf")

    def ask_at(self) -> float | None:
        """Return when the old place is to be asked again, or None if it has been asked enough."""
        return None if self.asked >= CHALLENGES else self.since + self.asked * CHALLENGE_S / (2 * CHALLENGES)

    def settle_at(self) -> float:
        """Return when silence means it is gone: later where a question went late, as the controller did not run."""
        return max(self.since + CHALLENGE_S, self.asked_at + CHALLENGE_S / 2)


@dataclass(slots=True)
class Host:
    """A host: an agent has registered it, or its ARP was seen."""

    ipv4: str
    mac: str
    name: str = ""
    """As its agent registered; "" for a plain host."""
    agent: bool = False
    place: PortRef | None = None
    dispute: _Claim | None = None
    """Another MAC's claim to its address, since it last answered."""
    reported_at: float = float("-inf")
    left: bool = False
    """Its agent has left since it registered."""


class Hosts:
    """All hosts, by address, by name and by place, and who may claim an address."""

    def __init__(self) -> None:
        self.refused = 0
        """Claims for hosts that found no room."""
        self._by_ip: dict[str, Host] = {}
        self._by_name: dict[str, Host] = {}
        self._by_place: dict[PortRef, set[str]] = {}
        self._at_switch: Counter[int] = Counter()
        self._registered_macs: dict[str, set[str]] = {}
        self._claims: dict[str, _Claim] = {}
        """Of hosts that seem to have moved, by IP address."""
        self._disputes: dict[str, _Claim] = {}
        """Those of `Host.dispute` with a question left, by IP address."""
        self.version = 0
        """Grows with every change of an address, a place or an agent."""

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_ip.values())

    def __len__(self) -> int:
        return len(self._by_ip)

    def by_ip(self, ipv4: str) -> Host | None:
        """Return the host with an IPv4 address, or None."""
        return self._by_ip.get(ipv4)

    def find(self, name_or_ip: str) -> Host | None:
        """Return the host of that name or IPv4 address, or None; names go first."""
        return self._by_name.get(name_or_ip) or self._by_ip.get(name_or_ip)

    def at(self, place: PortRef) -> Iterable[Host]:
        """Return the hosts at a port, in the order of their addresses as text."""
        return [self._by_ip[ipv4] for ipv4 in sorted(self._by_place.get(place, ()))]

    def unlocated(self) -> list[Host]:
        """Return registered hosts whose place is unknown."""
        return [host for host in self._by_name.values() if host.place is None]

    def leaves(self) -> frozenset[int]:
        """Return switches with hosts."""
        return frozenset(self._at_switch)

    def leaves_with_agents(self) -> frozenset[int]:
        """Return switches with hosts of agents that have registered."""
        return frozenset(host.place.dpid for host in self._by_name.values() if host.place is not None)

    def count_at(self, dpid: int) -> int:
        """Return how many hosts a switch has."""
        return self._at_switch[dpid]

    def registered(self, name: str, ipv4: str, mac: str) -> Host:
        """Register the host of an agent, and return it.

        Its addresses may be others than before, and its name's or address's owner too.
        """
        mac = mac.lower()
        old = self._by_name.get(name)
        if old is not None:
            old.left = False
        if old is not None and (old.ipv4, old.mac, old.agent) == (ipv4, mac, True):
            return old
        if old is not None and old.ipv4 != ipv4:
            self._forget(old)
        host = self._by_ip.get(ipv4)
        if host is None:
            host = self._by_ip[ipv4] = Host(ipv4, mac)
        elif host.mac != mac:
            self._unplace(host)
            self._no_longer_registered(host)
            host.mac = mac
        if host.name != name:
            self._by_name.pop(host.name, None)
        host.name, host.agent, host.left = name, True, False
        self._by_name[name] = host
        self._registered_macs.setdefault(mac, set()).add(ipv4)
        self.version += 1
        return host

    def left(self, name: str) -> None:
        """Note that an agent is gone for good. Its host stays as long as its place is known (see above)."""
        host = self._by_name.get(name)
        if host is None:
            return
        host.left = True
        if host.place is None:
            self._forget(host)

    def held(self, dpid: int, hosts: Iterable[HeldHost], now: float) -> list[HostEvent]:
        """Learn the hosts that a switch delivered to under an earlier controller; return the events. What is known
        since is believed more.
        """
        events: list[HostEvent] = []
        for host in hosts:
            known = self._by_ip.get(host.ipv4)
            if known is None:
                known = self._by_ip[host.ipv4] = Host(host.ipv4, host.mac, agent=host.agent)
            if known.place is None and known.mac == host.mac:
                known.agent |= host.agent
                place = PortRef(dpid, host.port)
                self._place(known, place, now)
                events.append(HostSeen(now, host.ipv4, host.mac, place))
        return events

    def seen(self, ipv4: str, mac: str, place: PortRef, now: float, *, old_place_up: bool) -> list[HostEvent]:
        """Learn from an ARP packet of *ipv4*, *mac* that came in at *place*. Return what has changed.

        old_place_up: whether the port where *ipv4* was known before is up.
        """
        host = self._by_ip.get(ipv4)
        if host is None:
            if len(self._by_place.get(place, ())) >= HOSTS_PER_PORT:
                self.refused += 1
                return []
            host = self._by_ip[ipv4] = Host(ipv4, mac)
            self._place(host, place, now)
            return [HostSeen(now, ipv4, mac, place)]
        if host.mac != mac:
            return self._claimed(host, mac, place, now=now, old_place_up=old_place_up)
        if host.place == place:
            self._end_dispute(host)
            claim = self._claims.pop(ipv4, None)
            return [] if claim is None else self._conflict(host, mac, claim.place, now)
        if not host.name and len(self._by_place.get(place, ())) >= HOSTS_PER_PORT:
            self.refused += 1
            return []
        if host.place is not None and old_place_up:
            self._claims.setdefault(ipv4, _Claim(place, now))
            return []
        return [self._moved(host, place, now)]

    def to_challenge(self, now: float) -> list[Host]:
        """Return the hosts whose old place is to be asked now; they count as asked."""
        due = []
        for ipv4, claim in (*self._claims.items(), *self._disputes.items()):
            ask_at = claim.ask_at()
            if ask_at is not None and now >= ask_at:
                claim.asked, claim.asked_at = claim.asked + 1, now
                due.append(self._by_ip[ipv4])
        self._disputes = {ipv4: claim for ipv4, claim in self._disputes.items() if claim.ask_at() is not None}
        return due

    def settle(self, now: float, is_edge: Callable[[PortRef], bool]) -> list[HostEvent]:
        """Move hosts that did not answer at their old place; return the events. is_edge: if a host may be at a port."""
        events: list[HostEvent] = []
        for ipv4, claim in list(self._claims.items()):
            if now >= claim.settle_at():
                del self._claims[ipv4]
                if is_edge(claim.place):
                    events.append(self._moved(self._by_ip[ipv4], claim.place, now))
        return events

    def claims_at(self) -> float | None:
        """Return when `to_challenge` or `settle` has something to do, seconds; None: no address is disputed."""
        times = (
            claim.settle_at() if (ask_at := claim.ask_at()) is None else ask_at
            for claim in (*self._claims.values(), *self._disputes.values())
        )
        return min(times, default=None)

    def seen_mac(self, mac: str, place: PortRef, now: float) -> list[HostEvent]:
        """Learn the place of registered hosts with that MAC from a packet without sender IP; return the events."""
        events: list[HostEvent] = []
        for ipv4 in sorted(self._registered_macs.get(mac, ())):
            if self._by_ip[ipv4].place is None:
                events += self.seen(ipv4, mac, place, now, old_place_up=False)
        return events

    def clear_port(self, place: PortRef) -> None:
        """Forget the hosts believed at *place*, which turned out to lead to a switch: they are somewhere
        else.
        """
        for ipv4 in sorted(self._by_place.get(place, ())):
            host = self._by_ip[ipv4]
            if host.name and not host.left:
                self._unplace(host)
            else:
                self._forget(host)

    def forget_switch(self, dpid: int) -> None:
        """Forget a switch, and its hosts, which are somewhere else, or nowhere."""
        for place in [place for place in self._by_place if place.dpid == dpid]:
            self.clear_port(place)

    def _claimed(
        self, host: Host, mac: str, place: PortRef, *, now: float, old_place_up: bool
    ) -> list[HostEvent]:
        claim = host.dispute
        silent = claim is not None and claim.ask_at() is None and now >= claim.settle_at()
        if not host.agent and (host.place is None or not old_place_up or silent):
            before = host.place
            host.mac = mac
            self._end_dispute(host)
            self._place(host, place, now)
            return [HostSeen(now, host.ipv4, mac, place, before)]
        if claim is None:
            host.dispute = self._disputes[host.ipv4] = _Claim(place, now)
        return self._conflict(host, mac, place, now)

    def _conflict(self, host: Host, mac: str, place: PortRef, now: float) -> list[HostEvent]:
        if now - host.reported_at < CONFLICT_EVENT_S:
            return []
        host.reported_at = now
        return [HostConflict(now, host.ipv4, mac, place, host.mac)]

    def _moved(self, host: Host, place: PortRef, now: float) -> HostSeen:
        before = host.place
        self._end_dispute(host)
        self._claims.pop(host.ipv4, None)
        self._place(host, place, now)
        return HostSeen(now, host.ipv4, host.mac, place, before)

    def _place(self, host: Host, place: PortRef, now: float) -> None:
        self._unplace(host)
        host.place = place
        self._by_place.setdefault(place, set()).add(host.ipv4)
        self._at_switch[place.dpid] += 1
        self.version += 1

    def _unplace(self, host: Host) -> None:
        if host.place is not None:
            hosts = self._by_place[host.place]
            hosts.discard(host.ipv4)
            if not hosts:
                del self._by_place[host.place]
            self._at_switch[host.place.dpid] -= 1
            if not self._at_switch[host.place.dpid]:
                del self._at_switch[host.place.dpid]
            self._claims.pop(host.ipv4, None)
            host.place = None
            self.version += 1

    def _forget(self, host: Host) -> None:
        self._unplace(host)
        self._claims.pop(host.ipv4, None)
        self._end_dispute(host)
        del self._by_ip[host.ipv4]
        if self._by_name.get(host.name) is host:
            del self._by_name[host.name]
        self._no_longer_registered(host)
        self.version += 1

    def _end_dispute(self, host: Host) -> None:
        host.dispute = None
        self._disputes.pop(host.ipv4, None)

    def _no_longer_registered(self, host: Host) -> None:
        addresses = self._registered_macs.get(host.mac)
        if addresses is not None:
            addresses.discard(host.ipv4)
            if not addresses:
                del self._registered_macs[host.mac]
