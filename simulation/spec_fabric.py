"""A spec's fabric as the simulator takes it: rates, delays, links that are down, and room at every port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import capstan_native

from simulation.fabrics import SettingsError
from topologies.fabric_spec import FabricSpec
from topologies.links import Link, burst_bytes

_PS_PER_MS: Final = 10**9
_BITS_PER_MBIT: Final = 10**6
SWITCH_PS: Final = 50 * 10**6
"""What a packet takes at a switch of the lab, and at the host that sends it: eight links there and back make a least
round trip of 0.40 ms, and long flows see 0.33 to 0.42 ms there on quiet cores. RACK's reordering window is a multiple
of that, so it decides what sprayed flows retransmit."""


Room = tuple[int, int | None, int | None]


@dataclass(frozen=True, slots=True)
class SimulatedFabric:
    """native: as `capstan_native.Simulation` takes it; rooms: number of each link, and packets, or else bytes,
    that its ports hold.

    links: numbers of each link, upwards and downwards, by its name; shaped: whether they are shapers.
    """

    native: Mapping[str, Any]
    rooms: tuple[Room, ...]
    links: Mapping[str, tuple[int, int]]
    shaped: bool


def simulated_fabric(fabric: FabricSpec, shaped: bool = False) -> SimulatedFabric:
    """Return the fabric of a spec for the simulator. shaped: links are what the lab's are, shapers behind switches that
    take time, instead of wires.

    Raises:
        SettingsError: what it has none of: links without a rate, a fat tree with another number of hosts, a host whose
            only link is down.
    """
    if fabric.topology == "fat-tree" and fabric.hosts_on_leaf != fabric.k // 2:
        raise SettingsError(
            f"a simulated fat tree of k = {fabric.k} has {fabric.k // 2} hosts on each leaf",
            where="fabric.hosts_per_leaf",
            remedy="leave it out",
        )
    cut_off = next((name for name in fabric.down if name.startswith("h")), None)
    if cut_off is not None:
        raise SettingsError(
            f"{cut_off} is a host's only link, which a simulation cannot take down",
            where="fabric.down",
            remedy=f"leave it out, or make the link slow: fabric.overrides.{cut_off}.rate_mbps",
        )
    leaf_spine = fabric.topology == "leaf-spine"
    plain: dict[str, Any] = {
        "shape": fabric.topology,
        "sizes": [fabric.leaves, fabric.hosts_on_leaf, fabric.spines] if leaf_spine else [fabric.k],
        "host_bps": _bps("access", fabric.access),
        "fabric_bps": _bps("link", fabric.link),
        "delay_ps": 0,
        "changes": [],
        "bursts": [],
    }
    changes: list[tuple[int, int, int | None]] = []
    bursts: list[tuple[int, int]] = []
    rooms: list[Room] = []
    numbers = _link_numbers(fabric, plain)
    common_bps = (plain["fabric_bps"], plain["host_bps"])
    for name, pair in numbers.items():
        link = fabric.link_named(name)
        rate = 0 if name in fabric.down else _bps(f"overrides.{name}", link)
        for number in pair:
            delay_ps = round(link.delay_ms * _PS_PER_MS) + (SWITCH_PS if shaped else 0)
            if rate != common_bps[name.startswith("h")] or delay_ps:
                changes.append((number, rate, delay_ps))
            rooms.append((number, *link.limits))
            if shaped and link.rate_mbps is not None:
                bursts.append((number, burst_bytes(link.rate_mbps)))
    native = plain | {"changes": changes, "bursts": bursts}
    return SimulatedFabric(native, tuple(rooms), numbers, shaped)


def _bps(name: str, link: Link) -> int:
    if link.rate_mbps is None:
        raise SettingsError(
            "a simulated link has a rate",
            where=f"fabric.{name}.rate_mbps",
            remedy="give one in Mbit/s (null is the lab's: unshaped)",
        )
    rate = round(link.rate_mbps * _BITS_PER_MBIT)
    if not rate:
        raise SettingsError(
            f"{link.rate_mbps:g} Mbit/s are less than 1 bit/s",
            where=f"fabric.{name}.rate_mbps",
            remedy="give more, or name the link in fabric.down",
        )
    return rate


def _link_numbers(fabric: FabricSpec, plain: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the simulator's numbers of each link, upwards and downwards, by its name."""
    hosts, on_leaf = len(fabric.hosts()), fabric.hosts_on_leaf
    numbers = {
        f"h{host + 1}-{'l' if fabric.topology == 'leaf-spine' else 'e'}{host // on_leaf + 1}": (
            host,
            hosts + host,
        )
        for host in range(hosts)
    }
    walk = _leaf_spine_links if fabric.topology == "leaf-spine" else _fat_tree_links
    numbers.update(walk(fabric, plain))
    return numbers


def _leaf_spine_links(fabric: FabricSpec, plain: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    if (
        fabric.leaves < 2
    ):  # its links to spines carry nothing, and no route says their numbers: they follow the hosts'
        first = 2 * len(fabric.hosts())
        for spine in range(fabric.spines):
            yield f"l1-s{spine + 1}", (first + spine, first + fabric.spines + spine)
        return
    names, queries = [], []
    for leaf in range(fabric.leaves):
        here, there = leaf * fabric.hosts_on_leaf, (0 if leaf else 1) * fabric.hosts_on_leaf
        for spine in range(fabric.spines):
            names.append(f"l{leaf + 1}-s{spine + 1}")
            queries += [(here, there, spine), (there, here, spine)]
    routes = iter(capstan_native.simulated_routes(plain, queries))
    for name, up, down in zip(names, routes, routes, strict=True):
        yield name, (up[1], down[2])


def _fat_tree_links(fabric: FabricSpec, plain: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    half = fabric.k // 2
    names, queries = [], []
    for edge in range(fabric.k * half):
        pod = edge // half
        here, there = edge * half, (0 if pod else half) * half
        for aggregation in range(half):
            for core in range(half):
                path = aggregation * half + core
                name = f"a{pod * half + aggregation + 1}"
                names.append((f"e{edge + 1}-{name}", f"{name}-c{path + 1}"))
                queries += [(here, there, path), (there, here, path)]
    routes = iter(capstan_native.simulated_routes(plain, queries))
    for (lower, upper), up, down in zip(names, routes, routes, strict=True):
        yield lower, (up[1], down[4])
        yield upper, (up[2], down[3])
