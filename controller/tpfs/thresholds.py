"""Demotion thresholds for each type (Eq. 4): send earlier down what will not finish anyway.

**The problem, ours.** K queues, default thresholds a_1 <= .. <= a_(K-1) (PIAS): a flow leaves the first l
queues when it has sent a_l bytes. Type t may get b_(t,l) <= a_l instead, not falling in l. A flow of s bytes whose
type has a lowered b_l sends min(s, a_l) - min(s, b_l) fewer bytes from the first l queues. This load is

- *bad* if s > a_l: the flow would have been demoted out of them anyway, and only stood in the others' way,
- *good* if s <= a_l: the flow would have finished in them.

    maximise    sum over t, l of bad(t, l, b_(t,l))      bad(t, l, b)  = sum over flows s > a_l of a_l - b
    subject to  sum over t, l of good(t, l, b_(t,l)) <= delta
                                                         good(t, l, b) = sum over flows b < s <= a_l of s - b
                b_(t,l) <= b_(t,l+1),  b_(t,l) <= a_l

Both are counted once for each boundary that a byte crosses: a flow that begins two queues lower is moved twice.
On a grid of candidate sizes this is a knapsack with one choice for each b_(t,l): solved exactly by HiGHS
(`scipy.optimize.milp`).

**The paper's Eq. 4** decides for each queue by itself, between its two default thresholds: `controller.tpfs.printed`
has the equations, with what they cannot mean, and `printed_solution` solves them. There a flow is never sent more
than one queue down by a boundary, a flow that would have finished costs what it is in number, not in bytes, and what
is moved at one boundary is not seen at the next.

**delta (ours; Eq. 7 bounds what could be gained at best).** Not given, it is the one of some twenty for which the
best thresholds have the least mean slowdown by the model of `controller.tpfs.slowdown`; flows of no type are in the
way of the others there, with the default thresholds. The twenty are those that prices give: what maximises bad -
price * good is also best among all that remove no more good load (Everett, 1963), and is found without a solver, type
by type, in a millisecond.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from capstan_client.errors import CapstanError
from controller.tpfs.features import Floats
from controller.tpfs.slowdown import SlowdownSums, mean_slowdown

GRID: Final = 24
"""Candidate sizes beside 0 and the default thresholds."""
PRICES: Final = (np.inf, *np.geomspace(100, 0.01, 21))
"""Of a byte of good load in bytes of bad load, falling: delta grows."""
SOLVE_S: Final = 5.0
"""For one delta; what is best by then is taken."""


class SolveError(CapstanError, RuntimeError):
    """The solver found no thresholds at all."""


class FlowSizes:
    """Flow sizes of one type in bytes, with weights, shapes (n,): sums over them in O(log n). ``flows``: sum of
    weights."""

    def __init__(self, sizes: ArrayLike, weights: ArrayLike | None = None) -> None:
        given = np.asarray(sizes, dtype=float)
        order = np.argsort(given, kind="stable")
        weight = np.ones(len(given)) if weights is None else np.asarray(weights, dtype=float)[order]
        self.sizes = given[order]
        self._weights = np.concatenate(([0.0], np.cumsum(weight)))
        self._sums = np.concatenate(([0.0], np.cumsum(weight * self.sizes)))
        self.flows = float(self._weights[-1])
        self.bytes = float(self._sums[-1])
        self.slowdown = SlowdownSums(self.sizes, weight)

    def __len__(self) -> int:
        return len(self.sizes)

    def above(self, size: Floats) -> Floats:
        """Return flows that are larger, shape of *size*."""
        return self.flows - self._weights[np.searchsorted(self.sizes, size, side="right")]

    def within(self, size: Floats) -> Floats:
        """Return bytes that lie within the first *size* bytes of their flow, shape of *size*."""
        index = np.searchsorted(self.sizes, size, side="right")
        return np.asarray(self._sums[index] + (self.flows - self._weights[index]) * size, dtype=float)

    def share(self, size: Floats) -> Floats:
        """Return P(X <= size), shape of *size*."""
        return 1.0 - self.above(size) / self.flows

    def quantile(self, share: float) -> float:
        """Return the least size that at least *share* of the flows do not exceed."""
        index = int(np.searchsorted(self._weights[1:], share * self.flows * (1 - 1e-12)))
        return float(self.sizes[min(index, len(self) - 1)])

    def bad(self, default: float, lowered: Floats) -> Floats:
        """Return the bad load that goes from above boundary *default* if it is *lowered*, bytes, shape of
        *lowered*.
        """
        return np.asarray(self.above(np.array(default)) * (default - lowered), dtype=float)

    def good(self, default: float, lowered: Floats) -> Floats:
        """Return the good load that goes with it, bytes, shape of *lowered*."""
        moved = self.within(np.array(default)) - self.within(lowered)
        return np.maximum(moved - self.bad(default, lowered), 0.0)


@dataclass(frozen=True, slots=True)
class QueueBytes:
    """Bytes that flows send from one queue: of those that finish there, and of those that are demoted out of it."""

    good: float
    bad: float


@dataclass(frozen=True, slots=True)
class Solution:
    """thresholds: of each type, K - 1 each, bytes. removed_good <= delta, and removed_bad: bytes, of all types."""

    thresholds: tuple[tuple[int, ...], ...]
    removed_bad: float
    removed_good: float
    delta: float
    slowdown: float
    """Mean, by the model."""


def queue_loads(flows: FlowSizes, thresholds: Sequence[float]) -> tuple[QueueBytes, ...]:
    """Return what one type sends from each of the K queues."""
    bounds = np.array([0.0, *thresholds, np.inf])
    loads = []
    for low, high in itertools.pairwise(bounds):
        leaving = float(flows.above(np.array(high)))
        top = high if np.isfinite(high) else float(flows.sizes[-1]) if len(flows) else 0.0
        total = float(flows.within(np.array(top)) - flows.within(np.array(min(low, top))))
        bad = leaving * (top - low) if leaving else 0.0
        loads.append(QueueBytes(float(max(total - bad, 0.0)), float(bad)))
    return tuple(loads)


def thresholds(
    types: Sequence[FlowSizes],
    default: Sequence[int],
    load: float,
    *,
    delta: float | None = None,
    others: FlowSizes | None = None,
) -> Solution:
    """Return the thresholds of each type of *types*.

    default: K - 1 thresholds in bytes, not falling; load: of the link, 0 to 1.
    delta: good load that may be removed, bytes; None: by the model. others: flows of no type. Raises SolveError.
    """
    if delta is not None:
        return solve(types, default, delta, load=load, others=others)
    problem = ThresholdProblem(types, default, GRID)
    solutions = [problem.solution(problem.priced(price), load, others) for price in PRICES]
    return min(solutions, key=lambda solution: solution.slowdown * (1 + (solution.removed_good > 0) * 1e-9))


def candidates(flows: FlowSizes, default: Sequence[int], grid: int = GRID) -> Floats:
    """Return the sizes that thresholds of one type may have, growing, in whole bytes."""
    most = float(default[-1]) if default else 0.0
    least = min(max(1.0, float(flows.sizes[0])) if len(flows) else 1.0, max(most, 1.0))
    some = np.geomspace(least, max(most, least), grid) if grid else np.zeros(0)
    return np.unique(np.rint(np.concatenate(([0.0], some, np.asarray(default, dtype=float)))))


def solve(
    types: Sequence[FlowSizes],
    default: Sequence[int],
    delta: float,
    *,
    load: float,
    others: FlowSizes | None = None,
    grid: int = GRID,
) -> Solution:
    """Return the best thresholds on the grid of `candidates` for one *delta* (bytes)."""
    problem = ThresholdProblem(types, default, grid)
    return problem.solution(problem.within(delta), load, others, delta)


class ThresholdProblem:
    """Eq. 4 on a grid. A choice is of one type at one boundary: one of ``sizes`` of the type, up to the default."""

    def __init__(self, types: Sequence[FlowSizes], default: Sequence[int], grid: int) -> None:
        self._types, self._default = types, default
        self._sizes = [candidates(sizes, default, grid) for sizes in types]
        self._choices = [
            (which, int(np.searchsorted(self._sizes[which], limit, side="right")))
            for which in range(len(types))
            for limit in default
        ]
        limits = [limit for _ in types for limit in default]
        parts = [
            (types[t], limit, self._sizes[t][:n]) for (t, n), limit in zip(self._choices, limits, strict=True)
        ]
        self._bad = [flows.bad(limit, sizes) for flows, limit, sizes in parts]
        self._good = [flows.good(limit, sizes) for flows, limit, sizes in parts]

    def within(self, delta: float) -> list[int]:
        """Return the best index of each choice where at most *delta* bytes of good load may go."""
        if not self._choices:
            return []
        return knapsack(
            self._bad, self._good, delta, counts=[n for _, n in self._choices], boundaries=len(self._default)
        )

    def priced(self, price: float) -> list[int]:
        """Return the index of each choice such that bad - price * good is most; infinite: no good load goes."""
        boundaries, picked = len(self._default), []
        for first in range(0, len(self._choices), boundaries or 1):
            # the best with the choice so far at index i, from the first boundary to the last: indices do not fall
            best, came = np.zeros(1), []
            for bad, good in zip(
                self._bad[first : first + boundaries], self._good[first : first + boundaries], strict=True
            ):
                worth = np.where(good > 0, -np.inf, bad) if np.isinf(price) else bad - price * good
                least = np.full(len(bad), best[-1])
                least[: len(best)] = best[: len(bad)]
                top = np.maximum.accumulate(least)
                indices = np.where(least == top, np.arange(len(bad)), 0)
                came.append(np.minimum(np.maximum.accumulate(indices), len(best) - 1))
                best = top + worth
            index = int(np.argmax(best)) if boundaries else 0
            own = []
            for back in reversed(came):
                own.append(index)
                index = int(back[index])
            picked += own[::-1]
        return picked

    def solution(
        self, picked: list[int], load: float, others: FlowSizes | None, delta: float | None = None
    ) -> Solution:
        """Return the thresholds that *picked* indices mean, and what they are worth.

        delta: bytes of good load that may go; None: as many as these thresholds remove.
        """
        picked = _raised(picked, self._bad, len(self._default))
        limits = [
            [
                int(self._sizes[t][index])
                for (t, _), index in zip(self._choices, picked, strict=True)
                if t == which
            ]
            for which in range(len(self._types))
        ]
        good = float(sum(part[index] for part, index in zip(self._good, picked, strict=True)))
        return Solution(
            tuple(tuple(row) for row in limits),
            float(sum(part[index] for part, index in zip(self._bad, picked, strict=True))),
            good,
            good if delta is None else delta,
            mean_slowdown(
                [sizes.slowdown for sizes in self._types],
                limits,
                load,
                others=None if others is None else others.slowdown,
                default=self._default,
            ),
        )


def _raised(picked: list[int], bad: list[Floats], boundaries: int) -> list[int]:
    """Return where nothing was to be had, nothing is moved: such thresholds go up to the next one, or to their
    default."""
    result = list(picked)
    for choice in reversed(range(len(picked))):
        if not bad[choice].any():
            last = choice % boundaries == boundaries - 1
            most = len(bad[choice]) - 1
            result[choice] = most if last else min(most, result[choice + 1])
    return result


def knapsack(
    bad: list[Floats], good: list[Floats], delta: float, *, counts: list[int], boundaries: int
) -> list[int]:
    """Return one index for each of the choices. Those of one type come one after the other, with growing boundary.

    Raises SolveError.
    """
    first = np.concatenate(([0], np.cumsum(counts)))
    value, cost = np.concatenate(bad), np.concatenate(good)
    scale, unit = max(float(value.max()), 1.0), max(float(cost.max()), 1.0)
    rows: list[int] = []
    columns: list[int] = []
    data: list[float] = []
    low: list[float] = []
    high: list[float] = []
    for choice, count in enumerate(counts):
        rows += [choice] * count
        columns += range(first[choice], first[choice + 1])
        data += [1.0] * count
        low.append(1.0)
        high.append(1.0)
    row = len(counts)
    for choice in range(len(counts)):
        if choice % boundaries == boundaries - 1:
            continue
        for index in range(counts[choice]):  # b_(l+1) at most there: b_l too
            upto = [first[choice] + step for step in range(index + 1)]
            behind = [first[choice + 1] + step for step in range(index + 1)]
            rows += [row] * (2 * index + 2)
            columns += upto + behind
            data += [1.0] * (index + 1) + [-1.0] * (index + 1)
            low.append(0.0)
            high.append(np.inf)
            row += 1
    rows += [row] * len(cost)
    columns += range(len(cost))
    data += list(cost / unit)
    low.append(-np.inf)
    high.append(delta / unit)
    from scipy.optimize import Bounds, LinearConstraint, milp  # a second of processor time
    from scipy.sparse import coo_array

    matrix = coo_array((data, (rows, columns)), shape=(row + 1, len(cost))).tocsr()
    result = milp(
        -value / scale,
        integrality=np.ones(len(value)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, low, high),
        options={"time_limit": SOLVE_S, "mip_rel_gap": 1e-6},
    )
    if result.x is None:
        raise SolveError(f"no thresholds found: {result.message}")
    return [int(np.argmax(result.x[begin:end])) for begin, end in itertools.pairwise(first)]
