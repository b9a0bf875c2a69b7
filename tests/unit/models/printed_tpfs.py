"""TPFS's Eq. 1-3 and 5, and Eq. 4 as printed, which only tests compute; `controller.tpfs.printed` has the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Final

from controller.tpfs.printed import Queue

AS_PRINTED: Final = 1
AS_MEANT: Final = -1
"""Signs of rho^_i in Eq. 3."""


def sample_points(smallest: float, largest: float, number: int) -> list[float]:
    """Return x_1 .. x_M of the text before Eq. 1: x_min + i (x_max - x_min) / (M + 1), bytes."""
    step = (largest - smallest) / (number + 1)
    return [smallest + i * step for i in range(1, number + 1)]


def distance(
    left: Callable[[float], float], other: Callable[[float], float], points: Sequence[float]
) -> float:
    """Return Eq. 1: the distance of two distributions F(x), of F at the points."""
    return sqrt(sum((left(x) - other(x)) ** 2 for x in points))


def best_features(deviations: dict[tuple[str, ...], Sequence[float]]) -> tuple[str, ...]:
    """Return Eq. 2: of combinations of features, that with the least sum of its types' standard deviations."""
    return min(deviations, key=lambda features: sum(deviations[features]))


def serving_time(
    queue: Queue,
    alpha: float,
    beta: float,
    *,
    remaining: float = 1.0,
    before: float = 0.0,
    sign: int = AS_MEANT,
) -> float:
    """Return Eq. 3: W^_i. before: the sum of W_k of the queues above; *sign* of rho^_i: `AS_PRINTED` or
    `AS_MEANT`.
    """
    own = before + remaining / (1 - queue.above + sign * queue.left(alpha, beta))
    moved = remaining / (1 - queue.above - queue.load - queue.below)
    return (1 - alpha) * own + alpha * (own + moved)


def present_time(queue: Queue, remaining: float = 1.0, before: float = 0.0) -> float:
    """Return W_i: the same where nothing is moved."""
    return before + remaining / (1 - queue.above - queue.load)


def removed_bad(thresholds: Sequence[float], bad: Sequence[float], low: float, high: float) -> float:
    """Return Eq. 4's sum as printed: of types' thresholds p_l within low = p_(i-1) .. high = P_i, and bad
    loads rho^B_l.
    """
    return sum((p - low) / (high - low) * load for p, load in zip(thresholds, bad, strict=True))


def gains(queue: Queue, alpha: float, beta: float) -> bool:
    """Return Eq. 5: whether W_i - W^_i > 0."""
    return present_time(queue) > serving_time(queue, alpha, beta)
