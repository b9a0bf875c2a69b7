"""What CAPTON's scheduler sees of a fabric: hosts, and virtual links, sums of parallel ones (paper, Section IV).

All paths carry a flow's packets in turn, so the links above a leaf act as one link up and one down, and so do those
above a pod of a fat-tree. Which of them failed does not matter, only how much capacity is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from plain.reading import did_you_mean

Direction = Literal["up", "down"]
_DIRECTIONS: Final[tuple[Direction, Direction]] = ("up", "down")


class VirtualLink(NamedTuple):
    """The link of a host, leaf or pod, away from it (up) or towards it (down)."""

    of: str
    direction: Direction


class Rates(NamedTuple):
    """Capacities of both directions, bit/s."""

    up: int
    down: int


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A host: its access link, and its leaf and pod, as many as the fabric has tiers above hosts less one.

    A single switch: (); leaf-spine: (leaf,); fat-tree: (edge switch, pod).
    """

    name: str
    access: Rates
    groups: tuple[str, ...] = ()


class VirtualFabric:
    """Hosts and virtual links by name.

    Args:
        hosts: all hosts; every one with as many groups.
        groups: capacities of leaves and pods, by name.

    Raises:
        ValueError: a name that stands twice or is not known, or different numbers of groups.
    """

    def __init__(self, hosts: Sequence[HostPlace], groups: Mapping[str, Rates]) -> None:
        self.hosts: Final = {host.name: index for index, host in enumerate(hosts)}
        if len(self.hosts) != len(hosts):
            raise ValueError("two hosts have the same name")
        depths = {len(host.groups) for host in hosts}
        if len(depths) > 1:
            raise ValueError(f"hosts have different numbers of groups: {sorted(depths)}")
        links = [VirtualLink(host.name, way) for host in hosts for way in _DIRECTIONS]
        capacities = [rate for host in hosts for rate in host.access]
        self.groups: Final[list[list[int]]] = [[] for _ in hosts]
        for level in range(depths.pop() if depths else 0):
            names = _distinct(host.groups[level] for host in hosts)
            for name in names:
                if name not in groups:
                    raise ValueError(f"the capacity of {name!r} is not known{did_you_mean(name, groups)}")
                links += [VirtualLink(name, way) for way in _DIRECTIONS]
                capacities += groups[name]
            for place, host in zip(self.groups, hosts, strict=True):
                place.append(names[host.groups[level]])
        self.links: Final = {link: number for number, link in enumerate(links)}
        if len(self.links) != len(links):
            raise ValueError("a host, a leaf and a pod must not have the same name")
        self.capacities: Final = capacities

    def host(self, name: str) -> int:
        """Return a host's number. Raises ValueError where there is none of that name."""
        try:
            return self.hosts[name]
        except KeyError:
            raise ValueError(f"host {name!r} is not known{did_you_mean(name, self.hosts)}") from None


def _distinct(names: Iterable[str]) -> dict[str, int]:
    """Return names in the order of their first appearance, numbered."""
    numbers: dict[str, int] = {}
    for name in names:
        numbers.setdefault(name, len(numbers))
    return numbers
