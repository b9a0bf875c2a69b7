"""Random packet spraying: a fresh entropy value per packet (Dixit et al., INFOCOM 2013)."""

from __future__ import annotations

from typing import Final

import numpy as np

from host_agent.paths.base import AHEAD, Flow, PathPolicy, Route, Turn
from protocol.underlay import EV_FIRST, EV_LAST

_BLOCK: Final = 1024


class Spray(PathPolicy):
    """Uniform over all entropy values; switches hash them evenly over the paths."""

    by_size = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: list[int] = []

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        return self.draw()

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        while len(self._drawn) < count:
            self._drawn = self._block() + self._drawn
        drawn = self._drawn[-count:]
        del self._drawn[-count:]
        return drawn[::-1]

    def ahead(self, flow: Flow, route: Route) -> Turn:
        return Turn(self, self._drawn[: -AHEAD - 1 : -1])

    def draw(self) -> int:
        """One entropy value."""
        if not self._drawn:  # drawn in blocks: one call of numpy costs as much as forty list pops
            self._drawn = self._block()
        return self._drawn.pop()

    def _block(self) -> list[int]:
        drawn: list[int] = self._rng.integers(EV_FIRST, EV_LAST + 1, size=_BLOCK).tolist()
        return drawn
