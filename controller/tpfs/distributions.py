"""Flow-size distributions described by M points, and how far two of them are apart.

**Points.** A distribution is F(s_m) = P(X <= s_m) at sizes s_1 < .. < s_M, the same for all values. The paper takes M
even steps up to the largest flow; with heavy tails nearly all flows are then below the first step. ``log`` takes even
steps of the logarithm. Measured (docs/tpfs.md): even steps confuse types, so ``log`` is the default.

**Distance (ours: Eq. 1's with a mean for its sum).** d(F, G) = sqrt(1/M sum over m of (F(s_m) - G(s_m))^2), between 0
and 1.

**Noise.** Two samples of one distribution, of n and n' flows, are apart as well: E[d^2] = 1/M sum of F (1 - F) (1/n
+ 1/n').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from controller.tpfs.features import Floats, Integers

Spacing = Literal["log", "even"]
POINTS: Final = 32
"""M."""


def points(sizes: Floats, spacing: Spacing = "log", count: int = POINTS) -> Floats:
    """Return the sizes s_m in bytes, shape (count,); the last one is the largest of *sizes* (bytes, shape (n,), n >
    0)."""
    least, most = max(1.0, float(sizes.min())), max(1.0, float(sizes.max()))
    if spacing == "even":
        return np.asarray(most * np.arange(1, count + 1) / count)
    return np.geomspace(least, most, count)


@dataclass(frozen=True, slots=True)
class Distributions:
    """Of several values. cdf: shape (v, M); flows: of each, weighted, shape (v,); independent: how many flows of
    weight 1 would show as much, (sum of w)^2 / sum of w^2, shape (v,)."""

    cdf: Floats
    flows: Floats
    independent: Floats

    def of(self, which: Integers) -> Distributions:
        """Return the distributions with these indices."""
        return Distributions(self.cdf[which], self.flows[which], self.independent[which])


def describe(value: Integers, below: Integers, weight: Floats, *, count: int, width: int) -> Distributions:
    """Return the distributions of *count* values over *width* points.

    value: of each flow; below: index of the least point that is not below its size; weight: shapes (f,).
    """
    cells = np.bincount(value * width + below, weights=weight, minlength=count * width)
    histogram = cells.reshape(count, width)
    flows = histogram.sum(axis=1)
    squares = np.bincount(value, weights=weight * weight, minlength=count)
    safe = np.maximum(flows, 1e-300)
    cdf = np.cumsum(histogram, axis=1) / safe[:, None]
    return Distributions(cdf, flows, flows * flows / np.maximum(squares, 1e-300))


def distances(left: Distributions, other: Distributions) -> tuple[Floats, Floats]:
    """Return the distance of each of *left* to each of *other*, and what noise alone would make it: shapes (v, w)."""
    width = left.cdf.shape[1]
    product = left.cdf @ other.cdf.T / width
    own, others = (np.mean(part.cdf**2, axis=1) for part in (left, other))
    mean, means = (np.mean(part.cdf, axis=1) for part in (left, other))
    apart = own[:, None] + others[None, :] - 2 * product
    both = own[:, None] + others[None, :] + 2 * product
    # F (1 - F) of the mean of both
    spread = (2 * (mean[:, None] + means[None, :]) - both) / 4
    samples = 1 / left.independent[:, None] + 1 / other.independent[None, :]
    return np.sqrt(np.maximum(apart, 0.0)), np.sqrt(np.maximum(spread, 0.0) * samples)
