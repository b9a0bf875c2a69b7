"""Two conditions that took turns in one run: how far apart their 99th percentiles are, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 2000
Block = Sequence[float]


@dataclass(frozen=True, slots=True)
class Interval:
    """``value`` as measured, and the 95 % interval of it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Apart:
    """Of *others* against *alone*: quotient and difference (in the values' unit) of their 99th percentiles."""

    ratio: Interval
    difference: Interval


def apart(alone: Sequence[Block], others: Sequence[Block], rng: np.random.Generator) -> Apart:
    """Return blocks in the order of their rounds, as many of each; a round is a block of each kind, one after the
    other.

    The bootstrap (Efron and Tibshirani 1993, section 8.3) draws rounds, and in each of them its values: what changed
    on the machine between rounds is in the interval, too. Raises ValueError without a round.
    """
    if len(alone) != len(others) or not alone:
        raise ValueError(f"{len(alone)} blocks alone and {len(others)} others are not rounds")
    rounds = [(np.asarray(a, float), np.asarray(b, float)) for a, b in zip(alone, others, strict=True)]
    before = _p99([a for a, _ in rounds])
    after = _p99([b for _, b in rounds])
    drawn = np.empty((RESAMPLES, 2))
    for index in range(RESAMPLES):
        picked = [rounds[index] for index in rng.integers(len(rounds), size=len(rounds))]
        drawn[index] = [_p99([rng.choice(pair[side], len(pair[side])) for pair in picked]) for side in (0, 1)]
    return Apart(
        _interval(after / before, drawn[:, 1] / drawn[:, 0]),
        _interval(after - before, drawn[:, 1] - drawn[:, 0]),
    )


def _p99(blocks: Sequence[NDArray[np.float64]]) -> float:
    return float(np.percentile(np.concatenate(blocks), 99))


def _interval(value: float, drawn: NDArray[np.float64]) -> Interval:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))
