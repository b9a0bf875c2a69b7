"""Systematic random linear code over GF(256): repair j is the sum of c(seed, j, i) * source i.

The coefficients are a pure function of (seed, j, i), so a receiver needs no state and later repairs of a unit can
be made at will. They come from splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014), evaluated at a counter: 64-bit integer arithmetic only, the same on every platform and numpy. Each is
``1 + (value >> 32) % 255``: never 0, so that any single loss is healed by any single repair (mod 255 favours no
value by more than 6e-8).

e losses and m >= e repairs fail when their m x e coefficients have rank below e: about 256^-(m - e + 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from host_agent.coding.code import Code
from host_agent.coding.gf256 import Coefficients, Words, multiply
from host_agent.coding.linear import solve
from protocol.datagram import CodeId

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX2: Final = np.uint64(0x94D049BB133111EB)


def coefficients(seed: int, repairs: Sequence[int], k: int) -> Coefficients:
    """Rows (len(repairs), k) of the repairs of those indices (0..255), for k (1..256) sources."""
    row = np.asarray(repairs, dtype=np.uint64)[:, None] << np.uint64(8)
    counter = row | np.arange(k, dtype=np.uint64)[None, :]
    # the seed takes the upper half of the state, the counter the lower: no two (seed, counter) share a state
    state = np.uint64(seed << 32) ^ counter
    state = (state + np.uint64(1)) * _GAMMA
    state = (state ^ (state >> np.uint64(30))) * _MIX1
    state = (state ^ (state >> np.uint64(27))) * _MIX2
    state ^= state >> np.uint64(31)
    return (np.uint64(1) + (state >> np.uint64(32)) % np.uint64(255)).astype(np.uint8)


class Rlc(Code):
    name = "rlc"
    id = CodeId.RLC

    def most_repairs(self, k: int) -> int:
        return 255

    def encode(self, sources: Words, r: int, seed: int) -> Words:
        return multiply(coefficients(seed, range(r), len(sources)), sources)

    def worth_trying(self, missing: int, repairs: int) -> bool:
        return repairs >= missing

    def decode(
        self, sources: Words, missing: Sequence[int], repairs: Mapping[int, Words], r: int, seed: int
    ) -> dict[int, Words]:
        return solve(coefficients(seed, list(repairs), len(sources)), sources, missing, repairs)
