"""A random path per flowlet: LetFlow.

E. Vanini, R. Pan, M. Alizadeh, P. Taheri, T. Edsall: "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet
Switching", USENIX NSDI 2017, section 3: whenever a flow has paused for longer than the gap, its next packets take a
path drawn uniformly. Flowlets are long on free paths and short on busy ones, which is all the balancing that there
is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from host_agent.paths.base import Flow, PathPolicy, Route
from host_agent.paths.spray import Spray


@dataclass(slots=True)
class _Flowlet:
    labels: tuple[int, ...]
    port: int
    last: float


class Flowlet(PathPolicy):
    """gap_s: a pause of more than this many seconds ends a flowlet (the paper: 500 us).

    Where no path has a name, each flowlet has an entropy value of its own.
    """

    def __init__(self, rng: np.random.Generator, gap_s: float) -> None:
        self._rng = rng
        self._spray = Spray(rng)
        self._gap_s = gap_s
        self._flowlets: dict[int, _Flowlet] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        flowlet = self._flowlets.get(flow.id)
        if flowlet is None:
            flowlet = self._flowlets[flow.id] = _Flowlet(route.labels, self._drawn(route), now)
            return flowlet.port
        if flowlet.labels is not route.labels:
            flowlet.labels = route.labels
            if flowlet.port not in route.labels:
                flowlet.port = self._drawn(route)
        if now - flowlet.last > self._gap_s:
            flowlet.port = self._drawn(route)
        flowlet.last = now
        return flowlet.port

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        return [self.entropy(flow, route, size, now)] * count

    def forget(self, flow: int) -> None:
        self._flowlets.pop(flow, None)

    def _drawn(self, route: Route) -> int:
        if route.labels:
            return route.labels[int(self._rng.integers(len(route.labels)))]
        return self._spray.draw()
