"""Which features predict flow sizes best: the combination with the least spread within its types (Eq. 2).

**Ours, for Eq. 2.** The paper minimises the sum of the standard deviations within types. As the sum of plain
standard deviations would grow with every type and hang on the few largest flows, each type counts by its share of
flows, and what deviates is the same description of a distribution that Eq. 1 compares: whether a flow is at most
s_m,

    S = sum over types t of  w_t / w  *  1/M  sum over m of  sqrt(F_t(s_m) (1 - F_t(s_m))),

where a flow of s bytes weighs min(s, a_(K-1)), in w_t and in F_t: what thresholds (the last default one is a_(K-1)) can
move of it. With all flows alike, answers of a byte each, half of all flows, decided: that a flow from a server's port
is an answer explained more of the spread than which of four applications a request is of, and moves nothing. The root
is concave, so S falls with every split into types that differ, and stays with one into types that do not. Flows of
unknown values have the spread of all flows: nothing is predicted of them. (As a type of their own they would be well
described where one application's values have few flows each, and it alone is left unknown.)

**One host's say.** A host whose flows are like no others' would make its own address the best feature. So F_t is
the mean over hosts of the distributions of their flows in t, and S the mean over hosts of the S of their flows. Hosts
weigh as their flows do, at most `FAIR_FACTOR` times the median host; those with less than `LEAST_WEIGHT` of the mean
are left out (they send answers only), and so is the `TRIMMED` share of hosts at either end (one at least, from four
hosts on). What only one host of four or more does is not learnt.

**Ties.** More fields never predict less, but their values have fewer flows. Of the combinations with S within
`TOLERANCE` of the least one, those with the fewest fields are taken; of those within `SAME` of the least of them that
with the fewest types (but not none), then the least S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.tpfs.clustering import JOIN_FLOWS, UNKNOWN, Clusters, clusters
from controller.tpfs.distributions import Distributions, Spacing, describe, points
from controller.tpfs.features import (
    FAIR_FACTOR,
    Feature,
    Floats,
    Integers,
    Values,
    combinations,
    fair_weights,
)
from controller.tpfs.records import Records

TOLERANCE: Final = 0.02
"""Of the least S: for so little no field more."""
SAME: Final = 0.005
"""Of the least S among those with as many fields: for so little no type more."""
TRIMMED: Final = 0.1
LEAST_WEIGHT: Final = 0.01
"""Of the mean weight of a host."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A combination with its types. weight: of each of ``values.flows``; spread: S; unknown_share: of all flows."""

    values: Values
    weight: Floats
    distributions: Distributions
    clusters: Clusters
    spread: float
    unknown_share: float

    @property
    def combination(self) -> tuple[Feature, ...]:
        """Return the features that are combined."""
        return self.values.combination


@dataclass(frozen=True, slots=True)
class Choice:
    """The best of *candidates* (all 15, in order of S), and the sizes s_m in bytes, shape (M,)."""

    best: Candidate
    candidates: Sequence[Candidate]
    points: Floats


def choose(records: Records, movable: float | None = None, spacing: Spacing = "log") -> Choice | None:
    """Return the combination that predicts most of *records*; None without records.

    movable: bytes of a flow that thresholds can move, the last default one; None: all flows weigh the same.
    """
    if not len(records):
        return None
    sizes = records["bytes"].astype(float)
    grid = points(sizes, spacing)
    below = np.minimum(np.searchsorted(grid, sizes), len(grid) - 1).astype(np.int64)
    host = records["host"].astype(np.int64)
    load = np.ones(len(sizes)) if movable is None else np.clip(sizes, 1.0, max(movable, 1.0))
    everything = float(
        spreads(np.zeros_like(below), below, host=host, load=load, groups=1, width=len(grid))[0]
    )
    candidates = [
        _candidate(values, below, host=host, load=load, width=len(grid), everything=everything)
        for values in combinations(records, JOIN_FLOWS)
    ]
    candidates.sort(
        key=lambda candidate: (candidate.spread, len(candidate.combination), candidate.combination)
    )
    most = candidates[0].spread * (1 + TOLERANCE)
    fields = min(len(candidate.combination) for candidate in candidates if candidate.spread <= most)
    close = [
        candidate
        for candidate in candidates
        if candidate.spread <= most and len(candidate.combination) == fields
    ]
    close = [candidate for candidate in close if candidate.spread <= close[0].spread * (1 + SAME)]
    best = min(
        close,
        key=lambda candidate: (not candidate.clusters.count, candidate.clusters.count, candidate.spread),
    )
    return Choice(best, candidates, grid)


def _candidate(
    values: Values, below: Integers, *, host: Integers, load: Floats, width: int, everything: float
) -> Candidate:
    """Return the candidate of these features. everything: the spread of all flows."""
    their = below[values.flows]
    weight = fair_weights(values, host)
    described = describe(values.value, their, weight, count=values.count, width=width)
    types = clusters(described)
    # flows of no type are the last group
    group = np.full(len(below), types.count, dtype=np.int64)
    of_flow = types.of_value[values.value]
    group[values.flows] = np.where(of_flow == UNKNOWN, types.count, of_flow)
    spread = spreads(group, below, host=host, load=load, groups=types.count + 1, width=width)
    spread[types.count] = everything
    unknown_share = float(np.mean(group == types.count))
    return Candidate(values, weight, described, types, over_hosts(spread[group], host, load), unknown_share)


def spreads(
    group: Integers, below: Integers, *, host: Integers, load: Floats, groups: int, width: int
) -> Floats:
    """Return 1/M sum of sqrt(F (1 - F)) of each group of flows, shape (groups,); 0 for one without flows."""
    hosts = int(host.max()) + 1
    cell = group * hosts + host
    of_host = np.bincount(cell * width + below, weights=load, minlength=groups * hosts * width)
    share = np.cumsum(of_host.reshape(groups, hosts, width), axis=2)
    weight = share[:, :, -1]
    result = np.zeros(groups)
    for number in range(groups):
        there = weight[number] > 0
        if there.any():
            mean = _trimmed(share[number][there] / weight[number][there][:, None], weight[number][there])
            result[number] = float(np.sqrt(np.maximum(mean * (1 - mean), 0.0)).mean())
    return result


def over_hosts(spread: Floats, host: Integers, load: Floats) -> float:
    """Return the mean over hosts of the mean of their flows, shape (n,)."""
    weight: Floats = np.bincount(host, weights=load).astype(float)
    there = weight > 0
    return float(_trimmed(np.bincount(host, weights=spread * load)[there] / weight[there], weight[there]))


def _trimmed(of_host: Floats, weight: Floats) -> Floats:
    """Return the mean over hosts, shape (h, ...), without those at either end. weight: above 0, shape (h,)."""
    enough = weight >= LEAST_WEIGHT * weight.mean()
    of_host, weight = of_host[enough], np.minimum(weight[enough], FAIR_FACTOR * np.median(weight[enough]))
    hosts = len(of_host)
    out = max(1, int(TRIMMED * hosts)) if hosts >= 4 else 0
    order = np.argsort(of_host, axis=0, kind="stable")[out : hosts - out]
    middle, weights = np.take_along_axis(of_host, order, axis=0), weight[order]
    return np.asarray((middle * weights).sum(axis=0) / weights.sum(axis=0))
