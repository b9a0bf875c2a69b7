"""Tiers and equal-cost shortest paths of a fabric.

A packet goes through leaves only at its ends, and not through switches that the controller has lost, as long as there
is such a path; only a leaf that would else be cut off is reached through those. Whatever is allowed, next hops of one
destination always lead closer to it in one and the same order, so there is no loop (`_next_hops`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from controller.fabric.graph import Adjacency, Hop, Wiring, adjacency


@dataclass(frozen=True, slots=True)
class Routing:
    """Where packets go.

    ``next_hops[dpid][leaf]``: all first hops of the shortest paths from a switch to a leaf; no entry: no path.
    ``tiers[dpid]``: links to the nearest leaf, 0 for a leaf; switches that reach none have no entry.
    ``below[dpid]``: the leaves under a switch, going down all the way.
    ``transit_leaves``: leaves that carry packets of others, because there is no other path.
    ``carriers``: switches that paths between leaves pass on their way, or would if all switches were usable.
    """

    next_hops: Mapping[int, Mapping[int, tuple[Hop, ...]]] = field(default_factory=dict)
    tiers: Mapping[int, int] = field(default_factory=dict)
    below: Mapping[int, frozenset[int]] = field(default_factory=dict)
    transit_leaves: frozenset[int] = frozenset()
    carriers: frozenset[int] = frozenset()

    def turns(self, dpid: int, leaf: int) -> bool:
        """Return whether packets to *leaf* go down from *dpid*, so that their path turned there at the latest."""
        hops = self.next_hops.get(dpid, {}).get(leaf, ())
        own = self.tiers.get(dpid, 0)
        return bool(hops) and all(self.tiers.get(hop.to, own) < own for hop in hops)

    def passed(self) -> frozenset[int]:
        """Return the switches that paths between leaves pass on their way."""
        leaves = [dpid for dpid, tier in self.tiers.items() if tier == 0]
        carriers: set[int] = set()
        for to in leaves:
            passed: set[int] = set()
            todo = [dpid for dpid in leaves if dpid != to]
            while todo:
                ways = self.next_hops.get(todo.pop(), {}).get(to, ())
                further = {hop.to for hop in ways if hop.to != to} - passed
                passed |= further
                todo += further
            carriers |= passed
        return frozenset(carriers)

    def paths(self, source: int, destination: int) -> Iterator[tuple[tuple[int, Hop], ...]]:
        """Yield every shortest path between two leaves as (switch, its way out) pairs; nothing if there is none."""
        if source == destination:
            yield ()
            return
        for hop in self.next_hops.get(source, {}).get(destination, ()):
            for rest in self.paths(hop.to, destination):
                yield ((source, hop), *rest)


def compute_routing(wiring: Wiring) -> Routing:
    """Return the tiers and next hops towards every leaf."""
    routing = _compute(wiring)
    carriers = routing.passed()
    linked = frozenset(end.dpid for link in wiring.up for end in link)
    if not linked <= wiring.usable | wiring.leaves:
        carriers |= _compute(replace(wiring, usable=linked)).passed()
    return replace(routing, carriers=carriers)


def _compute(wiring: Wiring) -> Routing:
    tiers = _tiers(adjacency(wiring.known), wiring.leaves)
    up = adjacency(wiring.up)
    switches = frozenset(up) | wiring.leaves
    spines = switches - wiring.leaves
    passes = (spines & wiring.usable, spines, *((switches,) if wiring.leaf_transit else ()))
    next_hops: dict[int, dict[int, tuple[Hop, ...]]] = {dpid: {} for dpid in sorted(switches)}
    transit_leaves: set[int] = set()
    for leaf in sorted(wiring.leaves):
        missing = wiring.leaves - {leaf}
        for through in passes:
            for dpid, hops in _next_hops(up, leaf, through).items():
                # Earlier passes win. No path of theirs leads to a switch that needed this pass (it would have
                # had a path itself), and paths of one pass get shorter with every hop: no loop.
                if leaf not in next_hops[dpid]:
                    next_hops[dpid][leaf] = hops
                    transit_leaves.update(hop.to for hop in hops if hop.to != leaf)
            missing = frozenset(dpid for dpid in missing if leaf not in next_hops[dpid])
            if not missing:
                break
    return Routing(
        next_hops, tiers, _below(adjacency(wiring.known), tiers), frozenset(transit_leaves & wiring.leaves)
    )


def _next_hops(up: Adjacency, leaf: int, through: frozenset[int]) -> dict[int, tuple[Hop, ...]]:
    """Return the first hops of all shortest paths to *leaf* that pass only switches in *through*."""
    distance = {leaf: 0}
    queue = deque([leaf])
    while queue:
        near = queue.popleft()
        if near != leaf and near not in through:
            continue
        for _, far in up.get(near, ()):
            if far not in distance:
                distance[far] = distance[near] + 1
                queue.append(far)
    return {
        dpid: tuple(
            hop
            for hop in up[dpid]
            if distance.get(hop.to) == own - 1 and (hop.to == leaf or hop.to in through)
        )
        for dpid, own in distance.items()
        if dpid != leaf
    }


def _tiers(known: Adjacency, leaves: frozenset[int]) -> dict[int, int]:
    tiers = dict.fromkeys(sorted(leaves), 0)
    queue = deque(tiers)
    while queue:
        near = queue.popleft()
        for _, far in known.get(near, ()):
            if far not in tiers:
                tiers[far] = tiers[near] + 1
                queue.append(far)
    return tiers


def _below(known: Adjacency, tiers: Mapping[int, int]) -> dict[int, frozenset[int]]:
    below: dict[int, frozenset[int]] = {}
    for dpid in sorted(tiers, key=lambda switch: tiers[switch]):
        if tiers[dpid] == 0:
            below[dpid] = frozenset((dpid,))
        else:
            lower = [below[hop.to] for hop in known.get(dpid, ()) if tiers[hop.to] < tiers[dpid]]
            below[dpid] = frozenset().union(*lower)
    return below
