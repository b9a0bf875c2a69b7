"""A spec's fabric as a controller discovers it, so that its reader makes of it what it makes of a real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from controller.fabric.graph import PortRef
from controller.plane.snapshot import FabricSnapshot, HostInfo, LinkInfo, SwitchInfo
from topologies.addressing import link_name
from topologies.fabric_spec import FabricSpec

_TIERS: Final = {"l": 0, "e": 0, "s": 1, "a": 1, "c": 2}
_BITS_PER_MBIT: Final = 10**6


@dataclass(frozen=True, slots=True)
class SeenFabric:
    """rates: bit/s of agents' clocks, by switch and port. Addresses are hosts' numbers, from 0 on."""

    snapshot: FabricSnapshot
    rates: Mapping[tuple[int, int], int]


def seen_fabric(fabric: FabricSpec, clock: float) -> SeenFabric:
    """Return a fabric all of whose links have a rate. clock: seconds of agents' clocks a second."""
    layout = fabric.layout()
    dpids = {name: number for number, name in enumerate(layout.switches, 1)}
    ports: Counter[int] = Counter()
    rates: dict[tuple[int, int], int] = {}

    def port(switch: str, link: str) -> PortRef:
        dpid = dpids[switch]
        ports[dpid] += 1
        rate_mbps = fabric.link_named(link).rate_mbps
        rates[dpid, ports[dpid]] = round((rate_mbps or 0.0) * _BITS_PER_MBIT / clock)
        return PortRef(dpid, ports[dpid])

    hosts = [
        HostInfo(host, str(IPv4Address(number)), "", True, port(leaf, link_name(host, leaf)))
        for number, (host, leaf) in enumerate(layout.access)
    ]
    names = [(link_name(*ends), ends) for ends in layout.fabric]
    links = [
        LinkInfo(port(low, name), port(high, name), name not in fabric.down, 0) for name, (low, high) in names
    ]
    switches = [
        SwitchInfo(dpid, name, True, _TIERS[name[0]], _stamp(fabric, name)) for name, dpid in dpids.items()
    ]
    return SeenFabric(FabricSnapshot(tuple(switches), tuple(links), tuple(hosts), (), "", True), rates)


def _stamp(fabric: FabricSpec, switch: str) -> int:
    """Return the stamp of a switch's paths (`native/simulator/src/overlay/switching.rs`); 0: none turns there."""
    number = int(switch[1:])
    half = fabric.k // 2
    match switch[0]:
        case "s":
            return number
        case "a":
            return 1 + (number - 1) % half
        case "c":
            return half + number
    return 0
