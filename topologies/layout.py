"""Which switches, hosts and links a fabric has, by name: plain data, without Mininet.

A k-ary fat tree (Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center Network Architecture, 2008) has k pods
of k/2 edge and k/2 aggregation switches and (k/2)^2 cores; edge switches are numbered e1.. over all pods, and so are
a1.. and c1... Aggregation switch j of every pod is linked to cores (j-1)*k/2+1 .. j*k/2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from topologies.addressing import HostPlace, link_name, place_hosts


@dataclass(frozen=True, slots=True)
class Layout:
    """access: (host, leaf) pairs; fabric: pairs of switches, the lower tier first. Both as they are made."""

    switches: tuple[str, ...]
    hosts: tuple[HostPlace, ...]
    access: tuple[tuple[str, str], ...]
    fabric: tuple[tuple[str, str], ...]

    def link_names(self) -> list[str]:
        """Return names of all links, in natural order (l1-s2 before l1-s10)."""
        keys = {name: _natural(name) for name in (*self.switches, *(host.name for host in self.hosts))}
        links = sorted((*self.access, *self.fabric), key=lambda pair: (keys[pair[0]], keys[pair[1]]))
        return [link_name(*pair) for pair in links]


def number_of_links(topology: str, *, leaves: int, spines: int, k: int, hosts_on_leaf: int) -> int:
    """Return how many links a fabric has, its hosts' included, without making it."""
    if topology == "fat-tree":
        return k * k // 2 * (k + hosts_on_leaf)  # each edge switch has k/2 links up, and so has each above it
    return leaves * (spines + hosts_on_leaf)


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> Layout:
    """Return every leaf (l1..) linked to every spine (s1..), hosts (h1..) on leaves in turn."""
    hosts = tuple(place_hosts(leaves, hosts_per_leaf))
    lower = [f"l{number}" for number in range(1, leaves + 1)]
    upper = [f"s{number}" for number in range(1, spines + 1)]
    return Layout(
        switches=(*lower, *upper),
        hosts=hosts,
        access=tuple((host.name, f"l{host.leaf}") for host in hosts),
        fabric=tuple((leaf, spine) for leaf in lower for spine in upper),
    )


def fat_tree(k: int, hosts_per_edge: int) -> Layout:
    """Return a k-ary fat tree with that many hosts on each edge switch. Raises ValueError for an odd k."""
    if k < 2 or k % 2:
        raise ValueError(f"k must be an even number from 2 on, not {k}")
    half = k // 2
    hosts = tuple(place_hosts(k * half, hosts_per_edge))
    tiers = (("e", k * half), ("a", k * half), ("c", half * half))
    fabric = []
    for pod in range(k):
        ours = [pod * half + number for number in range(1, half + 1)]
        fabric += [(f"e{edge}", f"a{aggregation}") for edge in ours for aggregation in ours]
        fabric += [
            (f"a{aggregation}", f"c{index * half + core + 1}")
            for index, aggregation in enumerate(ours)
            for core in range(half)
        ]
    return Layout(
        switches=tuple(f"{tier}{number}" for tier, count in tiers for number in range(1, count + 1)),
        hosts=hosts,
        access=tuple((host.name, f"e{host.leaf}") for host in hosts),
        fabric=tuple(fabric),
    )


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Return the sort key of a name: digits as numbers."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name) if part]
