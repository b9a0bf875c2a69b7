"""Types: values of one combination whose flow sizes have the same distribution, found by DBSCAN.

**eps from the data.** Distances of distributions (`distances`) that differ only by sampling are about as large as
their noise. Two values are neighbours if they are no further apart than `NOISE_FACTOR` times that, nor than
`LEAST_DISTANCE`, below which a difference is true but does not matter: scaled by this, eps is 1. (Under one
distribution, distance over noise is the Cramer-von Mises statistic of two samples over its mean; it is beyond
2.65^2 once in a thousand.) The usual elbow of the k-distances needs many values to show at all, and the best
combination often has as many values as there are types: docs/tpfs.md compares.

**Few samples.** Types are formed by values with `FORM_FLOWS` flows or more: others would be neighbours
of all values, and join types that have nothing in common. A value with fewer, but at least `JOIN_FLOWS`, belongs to a
type if noise explains its distance from that one and from no other; all others are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.tpfs.distributions import Distributions, distances
from controller.tpfs.features import Floats, Integers

NOISE_FACTOR: Final = 3.0
LEAST_DISTANCE: Final = 0.03
FORM_FLOWS: Final = 50
JOIN_FLOWS: Final = 20
MOST_FORMING: Final = 1000
"""Values that form types, those with most flows; the others can only join: bounds the matrix of distances."""
MOST_TYPES: Final = 16
"""Those with most flows; what is left over is unknown."""
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Clusters:
    """of_value: number of the type of each value, or `UNKNOWN`, shape (v,); those with more flows have lower
    numbers."""

    of_value: Integers
    count: int


def clusters(values: Distributions) -> Clusters:
    """Return the types of *values*."""
    enough = np.flatnonzero(values.independent >= FORM_FLOWS)
    forming = enough[np.argsort(-values.flows[enough], kind="stable")[:MOST_FORMING]]
    of_value = np.full(len(values.flows), UNKNOWN, dtype=np.int64)
    if not len(forming):
        return Clusters(of_value, 0)
    apart = _scaled(values.of(forming), values.of(forming))
    # Seconds of processor time, which only the process that computes needs.
    from sklearn.cluster import DBSCAN

    labels = DBSCAN(eps=1.0, min_samples=1, metric="precomputed").fit(apart).labels_.astype(np.int64)
    of_value[forming] = _by_size(labels, values.flows[forming])
    count = int(of_value.max()) + 1
    joining = np.flatnonzero((of_value == UNKNOWN) & (values.independent >= JOIN_FLOWS))
    if len(joining) and count:
        near = _scaled(values.of(joining), pooled(values, of_value, count)) <= 1.0
        one_only = np.count_nonzero(near, axis=1) == 1
        of_value[joining[one_only]] = np.argmax(near[one_only], axis=1)
    return Clusters(of_value, count)


def pooled(values: Distributions, of_value: Integers, count: int) -> Distributions:
    """Return the distribution of each type."""
    member = of_value[None, :] == np.arange(count)[:, None]
    flows = member @ values.flows
    cdf = (member * values.flows) @ values.cdf / np.maximum(flows, 1e-300)[:, None]
    return Distributions(cdf, flows, member @ values.independent)


def _scaled(left: Distributions, other: Distributions) -> Floats:
    apart, noise = distances(left, other)
    return apart / np.maximum(LEAST_DISTANCE, NOISE_FACTOR * noise)


def _by_size(labels: Integers, flows: Floats) -> Integers:
    """Return the labels anew, by falling number of flows; beyond `MOST_TYPES` there are none."""
    total = np.bincount(labels, weights=flows)
    rank = np.empty(len(total), dtype=np.int64)
    rank[np.argsort(-total, kind="stable")] = np.arange(len(total))
    ranked = rank[labels]
    return np.where(ranked < MOST_TYPES, ranked, UNKNOWN)
