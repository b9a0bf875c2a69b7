"""Random packet spraying: a fresh entropy value per packet (Dixit et al., INFOCOM 2013)."""

from __future__ import annotations

from typing import Final

import numpy as np

from host_agent.paths.base import PathPolicy
from protocol.underlay import EV_FIRST, EV_LAST

_BLOCK: Final = 1024


class Spray(PathPolicy):
    """Uniform over all entropy values; switches hash them evenly over the paths."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: list[int] = []

    def entropy(self, flow_hash: int, size: int, now: float) -> int:
        if not self._drawn:  # drawn in blocks: one call of numpy costs as much as forty list pops
            self._drawn = self._rng.integers(EV_FIRST, EV_LAST + 1, size=_BLOCK).tolist()
        return self._drawn.pop()

    def entropies(self, flow_hash: int, size: int, count: int, now: float) -> list[int]:
        while len(self._drawn) < count:
            self._drawn = self._rng.integers(EV_FIRST, EV_LAST + 1, size=_BLOCK).tolist() + self._drawn
        drawn = self._drawn[-count:]
        del self._drawn[-count:]
        return drawn[::-1]
