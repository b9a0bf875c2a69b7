"""Decoding of any linear code by elimination of the losses: a system of (repairs received) x (sources missing)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from host_agent.coding.code import ContradictionError
from host_agent.coding.gf256 import Coefficients, Words, multiply, reduce


def solve(
    coefficients: Coefficients, sources: Words, missing: Sequence[int], repairs: Mapping[int, Words]
) -> dict[int, Words]:
    """Rebuild the missing sources that are determined.

    Args:
        coefficients: (len(repairs), k): the repairs' rows, in the order of *repairs*.
        sources: (k, words); the rows of *missing* are zeros.
        missing: source indices.
        repairs: received repairs (words,).

    Raises:
        ContradictionError: surplus equations do not agree with the others.
    """
    losses = list(missing)
    reduced, transform, pivots = reduce(coefficients[:, losses])
    rank = len(pivots)
    rows = [row for row in range(rank) if np.count_nonzero(reduced[row]) == 1]
    found = [losses[pivots[row]] for row in rows]
    rows += range(rank, len(reduced))  # rows that must come out as zero
    if not rows:
        return {}
    chosen = transform[rows]
    # what is missing = transform * (repairs + coefficients * sources), in one product
    stacked = np.concatenate((np.stack(list(repairs.values())), sources))
    result = multiply(np.concatenate((chosen, _product(chosen, coefficients)), axis=1), stacked)
    if result[len(found) :].any():
        raise ContradictionError("surplus repairs do not agree with the unit's other symbols")
    return {index: result[place] for place, index in enumerate(found)}


def _product(left: Coefficients, right: Coefficients) -> Coefficients:
    """Product of two small coefficient matrices."""
    width = right.shape[1]
    padded = np.zeros((right.shape[0], -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = right
    return multiply(left, padded.view(np.uint64)).view(np.uint8)[:, :width]
