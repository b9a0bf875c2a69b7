"""How flows use a fabric's paths: how evenly long ones do, and which short ones leave unused while leaves are ON."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.results.outcome import FlowOutcome
from topologies.fabric_spec import FabricSpec

_BELOW_A_LEAF = "0"
"""The stamp of what no path carried."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a leaf-spine fabric. number: between two leaves; leaf_of: the leaf of each host, by name."""

    number: int
    leaf_of: Mapping[str, str]


def paths_of(fabric: FabricSpec) -> Paths | None:
    """Return a fabric's paths; None for a fat tree, where their number depends on the two leaves."""
    if fabric.topology != "leaf-spine":
        return None
    return Paths(fabric.spines, {place.name: f"l{place.leaf}" for place in fabric.hosts()})


def spread(flows: Sequence[FlowOutcome], number: int) -> tuple[float, float]:
    """Return the standard deviation of the datagrams of *flows* that each of *number* paths carried, and their mean."""
    carried: Counter[str] = Counter()
    for flow in flows:
        carried.update(_stamped(flow))
    mean = sum(carried.values()) / number
    squares = sum((count - mean) ** 2 for count in carried.values())
    unused = (number - len(carried)) * mean**2
    return math.sqrt((squares + unused) / number), mean


def unused_while_on(
    flows: Sequence[FlowOutcome], changes: Sequence[Mapping[str, Any]], paths: Paths
) -> tuple[int, int]:
    """Return how many paths short *flows* did not take in their leaves' ON periods, and the paths of all periods.

    A flow takes its paths in every period in which it is under way. Periods without such a flow are not counted.
    changes: of one run, in order, with `leaf`, `mode` and `at_s`.
    """
    periods = _on_periods(changes)
    for flow in flows:
        of_leaf = periods.get(paths.leaf_of.get(flow.source, ""))
        if flow.traffic_class == "short" and flow.started_s is not None and of_leaf:
            ended_s = math.inf if flow.fct_s is None else flow.started_s + flow.fct_s
            for period in _during(of_leaf, flow.started_s, ended_s):
                period.used.update(_stamped(flow))
    used = [len(period.used) for of_leaf in periods.values() for period in of_leaf if period.used]
    return sum(paths.number - count for count in used), paths.number * len(used)


@dataclass(slots=True)
class _Period:
    begin_s: float
    end_s: float = math.inf
    used: set[str] = field(default_factory=set)


def _during(periods: list[_Period], begin_s: float, end_s: float) -> list[_Period]:
    first = bisect_right(periods, begin_s, key=lambda period: period.end_s)
    return periods[first : bisect_left(periods, end_s, key=lambda period: period.begin_s)]


def _on_periods(changes: Sequence[Mapping[str, Any]]) -> dict[str, list[_Period]]:
    periods: dict[str, list[_Period]] = {}
    for change in changes:
        of_leaf, at_s = periods.setdefault(change["leaf"], []), change["at_s"]
        is_on = bool(of_leaf) and of_leaf[-1].end_s == math.inf
        if change["mode"] == "on" and not is_on:
            of_leaf.append(_Period(at_s))
        elif change["mode"] != "on" and is_on:
            of_leaf[-1].end_s = at_s
    return periods


def _stamped(flow: FlowOutcome) -> dict[str, int]:
    return {stamp: count for stamp, count in flow.paths.items() if stamp != _BELOW_A_LEAF and count}
