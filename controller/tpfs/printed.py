"""TPFS's Eq. 4, 6 and 7 (IEEE Access 2020, section IV), and where the print of Eq. 1-7 cannot mean what it says.

S_i is the sum of rho_1 .. rho_i, loads of the queues; rho_i = good + bad. R is the mean remaining size of good flows.

**Eq. 1** subtracts sizes x_l, which are the same for both distributions: the vectors are of F(x_l), so that is taken.

**Eq. 3** has 1 - S_(i-1) + rho^_i in denominators. At alpha = beta = 0 nothing is moved, rho^_i = rho_i, and the
serving time must be W_i, whose denominator is 1 - S_i = 1 - S_(i-1) - rho_i. So the sign is meant to be a minus; with
the print a load makes serving faster.

**Eq. 4** maximises the sum of b_l rho^B_l with b_l = (p_l - p_(i-1)) / (P_i - p_(i-1)). A bad flow sends p_l -
p_(i-1) bytes in queue i where its threshold is p_l, so b_l is the share of the bad load that *stays*; removed is 1 -
b_l. As printed the sum is most at p_l = P_i for every type, which moves nothing, costs alpha = 0 and fits any delta:
the default thresholds are the optimum whatever the flows are. The
scheme `tpfs-paper` maximises `removed_bad_meant`.

**Eq. 5-7.** W - W^ > 0 is, in units of R and with the minus of Eq. 3,

    1 / (1 - S_i) - 1 / (1 - S_(i-1) - rho^_i) - alpha / (1 - S_(i+1)) > 0,

so alpha < (1 / (1 - S_i) - 1 / (1 - S_(i-1) - rho^_i)) (1 - S_(i+1)): Eq. 6, first part. Its second part puts rho^_i
= 0, the most that could be gained. So Eq. 7 is what alpha must keep to, and does not make sure that anything is
gained: `delta` is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queue:
    """What Eq. 3-7 take of queue i: *above* is S_(i-1), *below* rho_(i+1); shares of the link."""

    above: float
    good: float
    bad: float
    below: float

    @property
    def load(self) -> float:
        """Return rho_i."""
        return self.good + self.bad

    def left(self, alpha: float, beta: float) -> float:
        """Return rho^_i: what stays where a share *alpha* of the good load goes and *beta* of the bad."""
        return (1 - alpha) * self.good + (1 - beta) * self.bad


def removed_bad_meant(thresholds: Sequence[float], bad: Sequence[float], low: float, high: float) -> float:
    """Return what Eq. 4 must mean: bad load that leaves the queue."""
    return sum((high - p) / (high - low) * load for p, load in zip(thresholds, bad, strict=True))


def removed_good(
    thresholds: Sequence[float],
    good: Sequence[float],
    distributions: Sequence[Callable[[float], float]],
    high: float,
) -> float:
    """Return Eq. 4's constraint: sum of (F_l(P_i) - F_l(p_l)) rho^G_l, at most delta."""
    return sum(
        (cdf(high) - cdf(p)) * load for p, load, cdf in zip(thresholds, good, distributions, strict=True)
    )


def most_alpha(queue: Queue, remaining_load: float) -> float:
    """Return Eq. 6, first part: alpha is to be below it, where *remaining_load* = rho^_i stays."""
    gained = 1 / (1 - queue.above - queue.load) - 1 / (1 - queue.above - remaining_load)
    return gained * (1 - queue.above - queue.load - queue.below)


def loosest_alpha(queue: Queue) -> float:
    """Return Eq. 6, second part: the first with rho^_i = 0."""
    return most_alpha(queue, 0.0)


def delta(queue: Queue) -> float:
    """Return Eq. 7: delta = alpha rho^G is to be below it."""
    return loosest_alpha(queue) * queue.good
