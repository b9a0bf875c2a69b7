"""Round robin per packet over named paths: DRB.

J. Cao, R. Xia, P. Yang, C. Guo, G. Lu, L. Yuan, Y. Zheng, H. Wu, Y. Xiong, D. Maltz: "Per-packet Load-balanced,
Low-Latency Routing for Clos-based Data Center Networks", ACM CoNEXT 2013, section 4: a sender names the switch at
which a packet turns ("bounces"), in turn over all of them in digit-reversed order, from a random first one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from host_agent.paths.base import AHEAD, Flow, PathPolicy, Route, Turn
from host_agent.paths.spray import Spray


@dataclass(slots=True)
class _Turn:
    labels: tuple[int, ...]
    order: list[int]
    at: int


class RoundRobin(PathPolicy):
    """In turn for each destination leaf and class, so that shares differ by one packet; sprays unnamed paths.

    The paper turns per pair of hosts; all hosts of a leaf are reached over the same paths, so one turn serves them all.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._spray = Spray(rng)
        self._turns: dict[Route, _Turn] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        turn = self._turns.get(route)
        if turn is None or turn.labels is not route.labels:
            turn = self._begin(route)
        if not turn.order:
            return self._spray.draw()
        at = turn.at
        turn.at = at + 1 if at + 1 < len(turn.order) else 0
        return turn.order[at]

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        turn = self._turns.get(route)
        if turn is None or turn.labels is not route.labels:
            turn = self._begin(route)
        paths = len(turn.order)
        if not paths:
            return self._spray.entropies(flow, route, size, count, last, now)
        at = turn.at
        turn.at = (at + count) % paths
        return (turn.order * ((at + count) // paths + 1))[at : at + count]

    def ahead(self, flow: Flow, route: Route) -> Turn | None:
        turn = self._turns.get(route)
        if turn is None or turn.labels is not route.labels:
            return None
        if not turn.order:
            return self._spray.ahead(flow, route)
        return Turn(turn, (turn.order[turn.at :] + turn.order[: turn.at])[:AHEAD])

    def _begin(self, route: Route) -> _Turn:
        order = digit_reversed(route.labels)
        start = int(self._rng.integers(len(order))) if order else 0
        turn = self._turns[route] = _Turn(route.labels, order, start)
        return turn


def digit_reversed(labels: tuple[int, ...]) -> list[int]:
    """*labels* in the order of their places' reversed binary digits.

    Neighbours in the numbering share an aggregation switch; this way packets that follow each other do not.
    """
    digits = max(1, (len(labels) - 1).bit_length())
    places = sorted(range(len(labels)), key=lambda place: f"{place:0{digits}b}"[::-1])
    return [labels[place] for place in places]
