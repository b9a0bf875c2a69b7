"""PIAS's model, solved: how many bytes a flow is best to send from each of K strict-priority queues.

A flow begins in queue 1 (highest) and leaves queue l for queue l + 1 when it has sent a_l bytes; the last queue
keeps it. (W. Bai et al.: Information-Agnostic Flow Scheduling for Commodity Data Centers, NSDI 2015, section 4: the
threshold problem as a sum of ratios.)

**The problem.** Let X be the flow size, P(X > a) the share of flows larger than a, and L(a) = E[min(X, a)] / E[X]
the share of all bytes that lie within the first a bytes of their flow. On a link with load rho, queue l is served
with what the queues above leave, mu_l = mu - sum of lambda_i over i < l, and gets lambda_l; taken as M/M/1, a flow
stays there for 1 / (mu_l - lambda_l) = 1 / (mu (1 - rho L(a_l))). Only flows larger than a_(l-1) ever come there,
so the mean stay of a flow is, in units of 1 / mu,

    T(a_1 .. a_(K-1)) = sum over l = 1 .. K of  P(X > a_(l-1)) / (1 - rho L(a_l)),      a_0 = 0, a_K = infinity.

**The solution.** Each term has two neighbouring thresholds, so on a grid the best sequence is a shortest path with K
edges: found exactly by dynamic programming, in O(K G^2) for G grid points. The grid is then refined round the
solution until the thresholds move by less than `PRECISION`.

**What follows.** T charges a flow a stay for every queue that it visits, so its optimum uses few queues: two or three
distinct thresholds for the published tables, however many queues there are. The thresholds that the paper's authors
publish for their simulations (`controller.queues.pias.PUBLISHED`) use all eight, and have 1.3 to 1.9 times that T: they
are not its optimum, and the text that we have does not say what they are the optimum of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

GRID: Final = 400
"""Candidate thresholds in each round."""
PRECISION: Final = 1e-3
"""Relative: rounds end when no threshold moved by more."""
MOST_ROUNDS: Final = 12

Floats = NDArray[np.float64]


class ThresholdsError(ValueError):
    """No thresholds can be computed; the text says what is wrong with which argument."""


class FlowSizes(Protocol):
    """What the problem needs to know of a flow-size distribution. Sizes are bytes; arguments have shape (n,)."""

    def largest(self) -> float:
        """Return a size that no flow exceeds."""

    def smallest(self) -> float:
        """Return a size that no flow is below; may be 0."""

    def above(self, sizes: Floats) -> Floats:
        """Return P(X > size), shape (n,)."""

    def within(self, sizes: Floats) -> Floats:
        """Return E[min(X, size)] / E[X], shape (n,)."""


@dataclass(frozen=True)
class CumulativeTable:
    """P(X <= sizes[i]) = cdf[i], linear in between; what cdf[0] has above 0 is an atom at sizes[0].

    sizes: bytes, growing; cdf: not falling, from at least 0 to 1; both of shape (n,).

    Raises:
        ThresholdsError: anything else, or a mean of 0 bytes.
    """

    sizes: Floats
    cdf: Floats

    def __init__(self, sizes: ArrayLike, cdf: ArrayLike) -> None:
        object.__setattr__(self, "sizes", np.asarray(sizes, dtype=float))
        object.__setattr__(self, "cdf", np.asarray(cdf, dtype=float))
        if self.sizes.ndim != 1 or self.sizes.shape != self.cdf.shape or not self.sizes.size:
            raise ThresholdsError(
                f"a flow-size table needs as many shares as sizes: {self.cdf.shape}, {self.sizes.shape}"
            )
        if not (np.all(np.isfinite(self.sizes)) and self.sizes[0] >= 0 and np.all(np.diff(self.sizes) > 0)):
            raise ThresholdsError("sizes of a flow-size table must be finite, not negative, and grow")
        if not (self.cdf[0] >= 0 and np.all(np.diff(self.cdf) >= 0) and self.cdf[-1] == 1):
            raise ThresholdsError("shares of a flow-size table must not fall, and end at 1")
        if self._integral(np.array([self.largest()]))[0] <= 0:
            raise ThresholdsError("a flow-size table whose flows are all empty has no thresholds")

    def largest(self) -> float:
        """Return the largest size of the table."""
        return float(self.sizes[-1])

    def smallest(self) -> float:
        """Return the smallest size of the table."""
        return float(self.sizes[0])

    def above(self, sizes: Floats) -> Floats:
        """Return P(X > size), shape (n,)."""
        share = np.interp(sizes, self.sizes, self.cdf, left=0.0, right=1.0)
        return np.asarray(1.0 - share, dtype=float)

    def within(self, sizes: Floats) -> Floats:
        """Return E[min(X, size)] / E[X], shape (n,)."""
        return np.asarray(self._integral(sizes) / self._integral(np.array([self.largest()]))[0], dtype=float)

    def _integral(self, sizes: Floats) -> Floats:
        """Return E[min(X, size)]: the area under P(X > s) for s from 0 to size."""
        survival = 1.0 - self.cdf
        steps = np.diff(self.sizes) * (survival[1:] + survival[:-1]) / 2
        at_knots = self.sizes[0] + np.concatenate(([0.0], np.cumsum(steps)))
        inside = np.clip(sizes, self.sizes[0], self.sizes[-1])
        index = np.clip(np.searchsorted(self.sizes, inside, side="right") - 1, 0, len(self.sizes) - 1)
        rest = inside - self.sizes[index]
        area = at_knots[index] + rest * (survival[index] + self.above(inside)) / 2
        return np.asarray(np.where(sizes < self.sizes[0], np.maximum(sizes, 0.0), area), dtype=float)


def mean_stay(flow_sizes: FlowSizes, load: float, thresholds: Sequence[float]) -> float:
    """Return T of the module's docstring, in units of 1 / mu. thresholds: bytes, not falling."""
    below = np.array([0.0, *thresholds])
    upto = np.array([*thresholds, flow_sizes.largest()])
    share = np.concatenate(([1.0], flow_sizes.above(below[1:])))
    return float(np.sum(share / (1.0 - load * flow_sizes.within(upto))))


def pias_thresholds(flow_sizes: FlowSizes, load: float, queues: int = 8) -> tuple[float, ...]:
    """Return the `queues` - 1 thresholds, in bytes and not falling, that make T least.

    load: of the link, above 0 and below 1.

    Raises:
        ThresholdsError: load or queues out of range.
    """
    if not 0 < load < 1:
        raise ThresholdsError(f"load must be above 0 and below 1, not {load}")
    if not 1 <= queues <= 64:
        raise ThresholdsError(f"queues must be 1 to 64, not {queues}")
    if queues == 1:
        return ()
    largest = flow_sizes.largest()
    least = max(flow_sizes.smallest(), largest * 1e-9, 1e-9)
    grid = np.unique(np.concatenate((np.geomspace(least, largest, GRID), np.linspace(least, largest, GRID))))
    best = _shortest_path(flow_sizes, load, grid, queues)
    for _ in range(MOST_ROUNDS):
        finer = _shortest_path(flow_sizes, load, _around(grid, best), queues)
        moved = np.max(np.abs(finer - best) / best)
        grid, best = _around(grid, best), finer
        if moved < PRECISION:
            break
    return tuple(float(value) for value in best)


def _shortest_path(flow_sizes: FlowSizes, load: float, grid: Floats, queues: int) -> Floats:
    """Return the best thresholds on *grid* (shape (g,), growing), shape (queues - 1,)."""
    ends = np.append(grid, flow_sizes.largest())
    stay = 1.0 / (1.0 - load * flow_sizes.within(ends))
    share = flow_sizes.above(grid)
    cost = stay[:-1].copy()  # of a path whose first threshold is grid[j]
    came_from: list[NDArray[np.intp]] = []
    later = np.tri(len(grid), dtype=bool).T  # [i, j]: threshold j may follow threshold i
    for _ in range(queues - 2):
        through = np.where(later, (cost[:, None] + share[:, None] * stay[None, :-1]), np.inf)
        came_from.append(np.argmin(through, axis=0))
        cost = np.min(through, axis=0)
    index = int(np.argmin(cost + share * stay[-1]))
    chosen = [index]
    for step in reversed(came_from):
        chosen.append(int(step[chosen[-1]]))
    return grid[chosen[::-1]]


def _around(grid: Floats, best: Floats) -> Floats:
    """Return a grid that is finer between the neighbours of each of *best*."""
    places = np.searchsorted(grid, best)
    low = grid[np.maximum(places - 1, 0)]
    high = grid[np.minimum(places + 1, len(grid) - 1)]
    each = max(5, GRID // len(best))
    return np.unique(
        np.concatenate([np.linspace(a, b, each) for a, b in zip(low, high, strict=True)] + [best])
    )
