"""Which features tell flow sizes best: the combination with the least spread within its types (Eq. 2).

**Our reading of Eq. 2.** The paper minimises the sum of the standard deviations within types. As the sum of plain
standard deviations would grow with every type and hang on the few largest flows, each type counts by its share of
flows, and what deviates is the same description of a distribution that Eq. 1 compares: whether a flow is at most
s_m,

    S = sum over types t of  n_t / n  *  1/M  sum over m of  sqrt(F_t(s_m) (1 - F_t(s_m))).

The root is concave, so S falls with every split into types that differ, and stays with one into types that do not.
Flows of unknown values are one more type: what is not predicted has the spread of all of its kind.

**One host's say.** A host whose flows are like no others' would make its own address the best feature. So F_t is
the mean over hosts of the distributions of their flows in t, and S the mean over hosts of the S of their flows,
each without the `TRIMMED` share of hosts at either end (one at least, from four hosts on). What only one host of
four or more does is not learnt.

**Ties.** More fields never tell less, but their values have fewer flows. Of the combinations with S within
`TOLERANCE` of the least one, that with the fewest fields is taken, then that with the fewest types (but not none),
then the least S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.tpfs.clustering import JOIN_FLOWS, UNKNOWN, Clusters, clusters
from controller.tpfs.distributions import Distributions, Spacing, describe, points
from controller.tpfs.features import Feature, Floats, Integers, Values, combinations, fair_weights
from controller.tpfs.records import Records

TOLERANCE: Final = 0.02
"""Of the least S."""
TRIMMED: Final = 0.1


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
        return self.values.combination


@dataclass(frozen=True, slots=True)
class Choice:
    """The best of *candidates* (all 15, in order of S), and the sizes s_m in bytes, shape (M,)."""

    best: Candidate
    candidates: Sequence[Candidate]
    points: Floats


def choose(records: Records, spacing: Spacing = "log") -> Choice | None:
    """The combination that tells most of *records*; None without records."""
    if not len(records):
        return None
    sizes = records["bytes"].astype(float)
    at = points(sizes, spacing)
    below = np.minimum(np.searchsorted(at, sizes), len(at) - 1).astype(np.int64)
    host = records["host"].astype(np.int64)
    found = [_candidate(values, below, host, len(at)) for values in combinations(records, JOIN_FLOWS)]
    found.sort(key=lambda one: (one.spread, len(one.combination), one.combination))
    most = found[0].spread * (1 + TOLERANCE)
    close = [one for one in found if one.spread <= most]
    best = min(
        close, key=lambda one: (len(one.combination), not one.clusters.count, one.clusters.count, one.spread)
    )
    return Choice(best, found, at)


def type_of_flows(candidate: Candidate, flows: int) -> Integers:
    """The type of each of the *flows* records that *candidate* was made from, or `UNKNOWN`, shape (flows,)."""
    result = np.full(flows, UNKNOWN, dtype=np.int64)
    result[candidate.values.flows] = candidate.clusters.of_value[candidate.values.value]
    return result


def _candidate(values: Values, below: Integers, host: Integers, width: int) -> Candidate:
    their = below[values.flows]
    weight = fair_weights(values, host)
    described = describe(values.value, their, weight, values.count, width)
    types = clusters(described)
    # flows of no type are the last group
    group = np.full(len(below), types.count, dtype=np.int64)
    of_flow = types.of_value[values.value]
    group[values.flows] = np.where(of_flow == UNKNOWN, types.count, of_flow)
    spread = _spreads(group, below, host, types.count + 1, width)
    unknown_share = float(np.mean(group == types.count))
    return Candidate(values, weight, described, types, _over_hosts(spread[group], host), unknown_share)


def _spreads(group: Integers, below: Integers, host: Integers, groups: int, width: int) -> Floats:
    """1/M sum of sqrt(F (1 - F)) of each group of flows, shape (groups,); 0 for one without flows."""
    hosts = int(host.max()) + 1
    of_host = np.bincount((group * hosts + host) * width + below, minlength=groups * hosts * width)
    share = np.cumsum(of_host.reshape(groups, hosts, width), axis=2, dtype=float)
    flows = share[:, :, -1]
    result = np.zeros(groups)
    for number in range(groups):
        there = flows[number] > 0
        if there.any():
            mean = _trimmed(share[number][there] / flows[number][there][:, None])
            result[number] = float(np.sqrt(np.maximum(mean * (1 - mean), 0.0)).mean())
    return result


def _over_hosts(spread: Floats, host: Integers) -> float:
    """The mean over hosts of the mean of their flows, shape (n,)."""
    flows = np.bincount(host)
    return float(_trimmed(np.bincount(host, weights=spread)[flows > 0] / flows[flows > 0]))


def _trimmed(of_host: Floats) -> Floats:
    """The mean over hosts, shape (h, ...), without those at either end."""
    hosts = len(of_host)
    out = max(1, int(TRIMMED * hosts)) if hosts >= 4 else 0
    return np.asarray(np.sort(of_host, axis=0)[out : hosts - out].mean(axis=0))
