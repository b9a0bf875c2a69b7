"""What the control plane knows, as frozen data for those who ask (the API, tests)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.fabric.discovery import LinkDiscovery
from controller.fabric.graph import PortRef
from controller.fabric.hosts import Host
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import Routing
from controller.modes.leaf_modes import ModeInfo
from controller.plane.takeover import KnownSwitch


@dataclass(frozen=True, slots=True)
class SwitchInfo:
    """``name``: the bridge's name as its local port has it, "" if unknown. ``tier``: 0 is a leaf, 1 above it...;
    None while no hosts are known. ``stamp``: the path stamp that it writes when it is the topmost switch of a path."""

    dpid: int
    name: str
    connected: bool
    tier: int | None
    stamp: int


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """A link that was ever seen; ``speed_kbps`` is the lower of what its two ports say (0: unknown)."""

    a: PortRef
    b: PortRef
    up: bool
    speed_kbps: int


@dataclass(frozen=True, slots=True)
class HostInfo:
    """A host. ``name``: as its agent says, "" for a host without one. ``place``: None until it was seen at a port."""

    name: str
    ipv4: str
    mac: str
    agent: bool
    place: PortRef | None
    up: bool = True
    """Whether the port of its place is, as far as is known."""


@dataclass(frozen=True, slots=True)
class FabricSnapshot:
    """The fabric at one moment. ``scheme``: "" before the first one; ``settled``: all is discovered and forwards."""

    switches: tuple[SwitchInfo, ...]
    links: tuple[LinkInfo, ...]
    hosts: tuple[HostInfo, ...]
    modes: tuple[ModeInfo, ...]
    scheme: str
    settled: bool
    refused_hosts: int = 0
    """Claims of ARP for hosts that found no room: behind one port, or at switches without links."""
    forgotten: tuple[tuple[int, str], ...] = ()
    """Datapath ids and names of switches that are known no more: events of before name them."""


@dataclass(frozen=True, slots=True)
class PathInfo:
    """One path between two hosts: its switches in order, the port that leaves each, and the stamp that its packets
    carry at the end (0: no top tier)."""

    switches: tuple[int, ...]
    ports: tuple[int, ...]
    stamp: int


def switch_infos(
    switches: Mapping[int, KnownSwitch], routing: Routing, numbers: SwitchNumbers
) -> tuple[SwitchInfo, ...]:
    """Return what is known of all switches, in order of their datapath ids."""
    return tuple(
        SwitchInfo(dpid, switch.name, switch.connected, routing.tiers.get(dpid), numbers.get(dpid))
        for dpid, switch in sorted(switches.items())
    )


def host_infos(hosts: Iterable[Host], discovery: LinkDiscovery) -> tuple[HostInfo, ...]:
    """Return what is known of all hosts, in order of their addresses."""

    def up(place: PortRef | None) -> bool:
        port = None if place is None else discovery.port(place)
        return port is None or port.up

    return tuple(
        HostInfo(host.name, host.ipv4, host.mac, host.agent, host.place, up(host.place))
        for host in sorted(hosts, key=lambda host: tuple(map(int, host.ipv4.split("."))))
    )


def link_infos(discovery: LinkDiscovery) -> tuple[LinkInfo, ...]:
    """Return all links ever seen and not contradicted since."""
    up = discovery.links_up()
    infos = []
    for link in sorted(discovery.links_known()):
        ports = [discovery.port(end) for end in link]
        speed = min(port.speed_kbps if port is not None else 0 for port in ports)
        infos.append(LinkInfo(link.a, link.b, link in up, speed))
    return tuple(infos)


def path_infos(
    routing: Routing, numbers: SwitchNumbers, source: PortRef, target: PortRef
) -> tuple[PathInfo, ...]:
    """Return all equal-cost paths between two hosts' ports."""
    infos = []
    for steps in routing.paths(source.dpid, target.dpid):
        turn = next((dpid for dpid, _ in steps[1:] if routing.turns(dpid, target.dpid)), None)
        infos.append(
            PathInfo(
                (*(dpid for dpid, _ in steps), target.dpid),
                (*(hop.port for _, hop in steps), target.port),
                0 if turn is None else numbers[turn],
            )
        )
    return tuple(infos)
