"""Shapes of fabrics for tests, their schemes and packets, and their switches' states without a control plane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.fabric.graph import Link, PortRef, Wiring, link_between
from controller.fabric.hosts import Host
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import compute_routing
from controller.openflow.wanted_switch import WantedSwitch
from controller.plane.fabric_views import FabricViews
from controller.schemes.scheme import ByMode, ClassScheme, Mode, ModeRule, Scheme
from protocol.underlay import BASE_PORT, TrafficClass, dscp
from tests.unit.fake_fabric import FakeFabric
from tests.unit.fake_tables import FakeSwitch, Packet

KEY = b"0123456789abcdef"

LOCAL = 0xFFFFFFFE

ECMP = Scheme("ecmp", "", "", *(ClassScheme("hash", entropy="flow-hash") for _ in range(3)))

RPS = Scheme("rps", "", "", *(ClassScheme("spray") for _ in range(3)))

LABELS = Scheme("labels", "", "", *(ClassScheme("label") for _ in range(3)))

CAPS = Scheme(
    "caps",
    "",
    "",
    ClassScheme("spray"),
    ClassScheme(None, ByMode("hash", "spray")),
    ClassScheme("spray"),
    mode=ModeRule(),
)


@dataclass(frozen=True)
class SimHost:
    name: str
    ipv4: str
    mac: str
    place: PortRef


@dataclass
class Shape:
    """Switches by dpid with their number of ports, links, hosts."""

    ports: dict[int, int] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    hosts: list[SimHost] = field(default_factory=list)

    def add_link(self, one: int, other: int) -> None:
        self.links.append(link_between(self.new_port(one), self.new_port(other)))

    def add_hosts(self, leaf: int, number: int, count: int) -> None:
        for place in range(1, count + 1):
            name = f"h{len(self.hosts) + 1}"
            mac = f"02:ca:00:{number:02x}:00:{place:02x}"
            self.hosts.append(SimHost(name, f"10.0.{number}.{place}", mac, self.new_port(leaf)))

    def new_port(self, dpid: int) -> PortRef:
        self.ports[dpid] = self.ports.get(dpid, 0) + 1
        return PortRef(dpid, self.ports[dpid])

    @property
    def leaves(self) -> frozenset[int]:
        return frozenset(host.place.dpid for host in self.hosts)

    def without(self, *switches: int) -> list[Link]:
        return [link for link in self.links if not {link.a.dpid, link.b.dpid} & set(switches)]


def leaf_spine(leaves: int, spines: int, hosts: int) -> Shape:
    shape = Shape()
    for leaf in range(1, leaves + 1):
        shape.add_hosts(0x10000 + leaf, leaf, hosts)
        for spine in range(1, spines + 1):
            shape.add_link(0x10000 + leaf, 0x20000 + spine)
    return shape


def fat_tree(k: int, hosts: int) -> Shape:
    shape, half = Shape(), k // 2
    for pod in range(k):
        for edge in range(half):
            number = pod * half + edge + 1
            shape.add_hosts(0x10000 + number, number, hosts)
            for agg in range(half):
                shape.add_link(0x10000 + number, 0x20000 + pod * half + agg + 1)
        for agg in range(half):
            for core in range(half):
                shape.add_link(0x20000 + pod * half + agg + 1, 0x30000 + agg * half + core + 1)
    return shape


def shortest_paths(links: list[Link], leaves: frozenset[int], one: int, other: int) -> set[tuple[int, ...]]:
    """Return all shortest paths between two leaves that pass no other leaf, found by brute force."""
    near: dict[int, set[int]] = {}
    for a, b in links:
        near.setdefault(a.dpid, set()).add(b.dpid)
        near.setdefault(b.dpid, set()).add(a.dpid)
    ways = [(one,)]
    while ways:
        found = {way for way in ways if way[-1] == other}
        if found:
            return found
        ways = [
            (*way, step)
            for way in ways
            if way[-1] == one or way[-1] not in leaves
            for step in near.get(way[-1], ())
            if step not in way
        ]
    return set()


def datagram(
    source: SimHost, target: SimHost, kind: TrafficClass, ev: int = 40000, key: int = 5, priority: int = 0
) -> Packet:
    return Packet(
        eth_dst=target.mac,
        ip_dscp=dscp(kind, priority),
        ipv4_src=source.ipv4,
        ipv4_dst=target.ipv4,
        udp_src=ev,
        udp_dst=BASE_PORT + key,
    )


def static_fabric(
    shape: Shape,
    scheme: Scheme | None,
    *,
    known: list[Link] | None = None,
    up: list[Link] | None = None,
    usable: frozenset[int] | None = None,
    on: frozenset[int] = frozenset(),
    plain: frozenset[str] = frozenset(),
) -> FakeFabric:
    """Return the fabric with the state that the pipeline wants, without a control plane.

    known: links that have been found (default all). up: those that are up (default: all of these).
    on: leaves that are ON. plain: names of hosts without an agent.
    """
    known = shape.links if known is None else known
    wiring = Wiring(
        frozenset(known),
        frozenset(known if up is None else up),
        shape.leaves,
        frozenset(shape.ports) if usable is None else usable,
    )
    routing = compute_routing(wiring)
    numbers = SwitchNumbers()
    numbers.assign(shape.ports)
    hosts = [Host(host.ipv4, host.mac, host.name, host.name not in plain, host.place) for host in shape.hosts]
    views = FabricViews(
        hosts,
        routing,
        wiring.known,
        numbers,
        ports={dpid: tuple(range(1, n + 1)) for dpid, n in shape.ports.items()},
    )
    fabric = FakeFabric()
    fabric.wire(shape.links)
    for dpid in shape.ports:
        mode: Mode = "on" if routing.below.get(dpid, frozenset()) & on else "off"
        switch = fabric.switches[dpid] = FakeSwitch()
        wanted = WantedSwitch(dpid)
        wanted.want(views.view(dpid), scheme, mode)
        switch.apply(wanted.take_whole(), whole=True)
    return fabric


def stamp_of(shape: Shape, dpid: int) -> int:
    numbers = SwitchNumbers()
    numbers.assign(shape.ports)
    return numbers[dpid]


def pairs(shape: Shape) -> Iterator[tuple[SimHost, SimHost]]:
    return itertools.permutations(shape.hosts, 2)
