"""The fabric as a graph: ports, links, and who is next to whom. Frozen data; switches are named by their dpid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class PortRef(NamedTuple):
    """A port of a switch."""

    dpid: int
    port: int


class Link(NamedTuple):
    """Both ends of a link between switches; the lower end first (`link_between`)."""

    a: PortRef
    b: PortRef


class Hop(NamedTuple):
    """A way out of a switch: leave by ``port``, arrive at switch ``to``."""

    port: int
    to: int


def link_between(end: PortRef, other: PortRef) -> Link:
    """Return the link of two ports, the lower one first."""
    return Link(end, other) if end < other else Link(other, end)


Adjacency = Mapping[int, tuple[Hop, ...]]
"""Ways out of every switch, by port; parallel links are ways of their own."""


def adjacency(links: Iterable[Link]) -> Adjacency:
    """Return the hops out of each switch, in ascending order."""
    hops: dict[int, list[Hop]] = {}
    for a, b in links:
        hops.setdefault(a.dpid, []).append(Hop(a.port, b.dpid))
        hops.setdefault(b.dpid, []).append(Hop(b.port, a.dpid))
    return {dpid: tuple(sorted(ways)) for dpid, ways in hops.items()}


@dataclass(frozen=True, slots=True)
class Wiring:
    """What is known of the fabric's shape.

    ``known``: all links ever seen and not contradicted since: they say which tier a switch is of, also while some
    are down. ``up``: those that carry packets now. ``leaves``: switches with hosts. ``usable``: switches that
    may carry other leaves' packets (connected, and with their state in place). ``leaf_transit``: whether leaves may
    carry others' packets where there is no other way; not while much of the fabric is still to be found.
    """

    known: frozenset[Link]
    up: frozenset[Link]
    leaves: frozenset[int]
    usable: frozenset[int]
    leaf_transit: bool = True
