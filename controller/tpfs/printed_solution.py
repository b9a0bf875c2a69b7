"""Thresholds by TPFS's Eq. 4-7, queue by queue: what the scheme `tpfs-paper` does.

In queue i with default thresholds low = p_(i-1) and high = P_i, type l gets p_l of low .. high. At p_l the share
(high - p_l) / (high - low) of its bad load there leaves the queue, and F_l(high) - F_l(p_l) of its good load. The bad
load that leaves is made most while the good one is at most delta = alpha rho^G, with alpha given or by Eq. 7
(`controller.tpfs.printed`). Solved exactly on a grid of sizes. Of several solutions that move as much, the one that
is found first is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from controller.tpfs.printed import Queue, delta, removed_bad_meant, removed_good
from controller.tpfs.slowdown import mean_slowdown
from controller.tpfs.thresholds import FlowSizes, Solution, candidates, knapsack, queue_loads

FEW: Final = 1e-12
"""Of a byte: where no type has more to move, nothing is solved."""


def printed_thresholds(
    types: Sequence[FlowSizes],
    default: Sequence[int],
    load: float,
    *,
    alpha: float | None = None,
    others: FlowSizes | None = None,
) -> Solution:
    """Return the thresholds of each type of *types*, K - 1 each in bytes. load: of the link; alpha: None: by Eq. 7.

    others: flows of no type; they are part of the queues' loads and keep the default thresholds. Raises SolveError.
    """
    everything = [*types, *([] if others is None or not len(others) else [others])]
    total = sum(sizes.bytes for sizes in everything)
    of_type = [queue_loads(sizes, default) for sizes in everything]
    number = len(default) + 1
    good = [sum(loads[i].good for loads in of_type) * load / total if total else 0.0 for i in range(number)]
    bad = [sum(loads[i].bad for loads in of_type) * load / total if total else 0.0 for i in range(number)]
    chosen: list[list[int]] = [list(default) for _ in types]
    moved_bad = moved_good = allowed_bytes = 0.0
    for i, (low, high) in enumerate(itertools.pairwise([0, *default])):
        if high <= low or not total:
            continue
        queue = Queue(sum(good[:i]) + sum(bad[:i]), good[i], bad[i], good[i + 1] + bad[i + 1])
        allowed = max(0.0, alpha * queue.good if alpha is not None else delta(queue)) * total / load
        grids = [_grid(sizes, default, low, high) for sizes in types]
        worth = [
            np.array([removed_bad_meant([p], [loads[i].bad], low, high) for p in grid])
            for grid, loads in zip(grids, of_type, strict=False)
        ]
        cost = [
            np.array([removed_good([p], [loads[i].good], [_share(sizes)], high) for p in grid])
            for sizes, grid, loads in zip(types, grids, of_type, strict=False)
        ]
        allowed_bytes += allowed
        if not types or max(float(values.max()) for values in worth) <= FEW:
            continue
        picked = knapsack(worth, cost, allowed, counts=[len(grid) for grid in grids], boundaries=1)
        for kind, index in enumerate(picked):
            chosen[kind][i] = int(grids[kind][index])
            moved_bad += float(worth[kind][index])
            moved_good += float(cost[kind][index])
    slowdown = mean_slowdown(
        [sizes.slowdown for sizes in types],
        chosen,
        load,
        others=None if others is None else others.slowdown,
        default=default,
    )
    return Solution(tuple(map(tuple, chosen)), moved_bad, moved_good, allowed_bytes, slowdown)


def _grid(sizes: FlowSizes, default: Sequence[int], low: int, high: int) -> list[float]:
    """Return the candidates of one type for the boundary at *high*."""
    inside = candidates(sizes, default)
    return [low, *(float(size) for size in inside[(inside > low) & (inside < high)]), high]


def _share(sizes: FlowSizes) -> Callable[[float], float]:
    return lambda size: float(sizes.share(np.array(size)))
