"""Entropy values that came back unharmed are used again: REPS.

T. Bonato, A. Kabbani, A. Ghalayini, M. Papamichael, M. Dohadwala, L. Gianinazzi, M. Khalilov, E. Achermann, D. De
Sensi, T. Hoefler: "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation",
arXiv 2407.21625, section 3, Algorithms 1 and 2. Read as: each flow has a ring of eight entropy values. One that a
receiver reports without a congestion mark is kept; a packet takes the oldest one kept and thereby uses it up; with
none kept, or while the flow explores, it draws at random. On a loss the flow freezes: for a while nothing is drawn,
and what the ring holds is used in turn even when it was used up, for it is known to get through. Then it explores
once more.

The paper's mark is ECN and its loss is a time-out. Ours are a one-way delay of more than *congested_s* above the
least, since the fabric marks nothing, and a peer's report that a datagram was given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from host_agent.paths.base import Flow, PathPolicy, Report, Route
from host_agent.paths.spray import Spray

RING: Final = 8
"""Entropy values that a flow keeps (the paper's choice, section 3.2)."""


@dataclass(slots=True)
class _Ring:
    """What a flow knows. ``kept``: values not used up, oldest first. ``seen``: the last ones kept, used up or not."""

    explore: int
    kept: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    turn: int = 0
    frozen_until: float | None = None


class Reps(PathPolicy):
    """congested_s: a packet that was delayed by more is no proof of a good path. explore_packets: sent at random when a
    flow begins and when it thaws (the paper: one bandwidth-delay product). freeze_s: how long a loss freezes a flow.
    """

    learns: ClassVar[bool] = True

    def __init__(
        self, rng: np.random.Generator, congested_s: float, explore_packets: int, freeze_s: float
    ) -> None:
        self._spray = Spray(rng)
        self._congested_s = congested_s
        self._explore = explore_packets
        self._freeze_s = freeze_s
        self._rings: dict[int, _Ring] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        ring = self._rings.get(flow.id)
        if ring is None:
            ring = self._rings[flow.id] = _Ring(self._explore)
        if ring.explore > 0:
            ring.explore -= 1
        elif ring.kept:
            return ring.kept.pop(0)
        elif ring.frozen_until is not None and ring.seen:
            ring.turn = (ring.turn + 1) % len(ring.seen)
            return ring.seen[ring.turn]
        return self._spray.draw()

    def reported(self, report: Report, now: float) -> None:
        ring = self._rings.get(report.flow)
        if ring is None or report.delay_s > self._congested_s:
            return
        for values in (ring.kept, ring.seen):
            values.append(report.entropy)
            if len(values) > RING:
                del values[0]
        if ring.frozen_until is not None and now >= ring.frozen_until:
            ring.frozen_until = None
            ring.explore = self._explore

    def lost(self, flow: int, leaf: str, entropy: int, now: float) -> None:
        ring = self._rings.get(flow)
        if ring is not None and ring.frozen_until is None and ring.explore == 0:
            ring.frozen_until = now + self._freeze_s

    def forget(self, flow: int) -> None:
        self._rings.pop(flow, None)
