"""Which switch turns a path downwards: what a path label names.

The first switch that sends a packet down to its leaf writes its path stamp. So a path is known by its source leaf,
its destination leaf and its turning switch, and a switch that sends it up needs only the ways to that switch.
"""

from __future__ import annotations

from functools import lru_cache

from controller.fabric.graph import Hop
from controller.fabric.paths import Routing

Ways = tuple[tuple[int, tuple[int, ...]], ...]
"""Turning switches, ascending, each with the ports, ascending, that lead to it."""


class TurningPoints:
    """Turning switches of a routing's paths; computed when asked for, and kept."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._turning: dict[int, frozenset[int]] = {}
        self._known: dict[tuple[int, int], Ways] = {}

    def ways(self, dpid: int, leaf: int) -> Ways:
        """Return which switches turn paths from *dpid* to *leaf* further up, and the ports of *dpid* that lead there.

        Nothing from a switch that turns them itself, or whose paths no switch turns.
        """
        key = (dpid, leaf)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._find(dpid, leaf)
        return known

    def _find(self, dpid: int, leaf: int) -> Ways:
        turning = self._turning.get(leaf)
        if turning is None:
            switches = self._routing.next_hops
            turning = frozenset(switch for switch in switches if self._routing.turns(switch, leaf))
            self._turning[leaf] = turning
        if dpid == leaf or dpid in turning:
            return ()
        hops = self._routing.next_hops.get(dpid, {}).get(leaf, ())
        if turning.issuperset(hop.to for hop in hops):
            return _direct(hops)  # the same for most leaves
        ports: dict[int, tuple[int, ...]] = {}
        for port, to in sorted(hops):
            for turn in (to,) if to in turning else (turn for turn, _ in self.ways(to, leaf)):
                ports[turn] = (*ports.get(turn, ()), port)
        return tuple(sorted(ports.items()))


@lru_cache(maxsize=1 << 10)
def _direct(hops: tuple[Hop, ...]) -> Ways:
    """Return the ways to next hops that all turn."""
    ports: dict[int, tuple[int, ...]] = {}
    for port, to in sorted(hops):
        ports[to] = (*ports.get(to, ()), port)
    return tuple(sorted(ports.items()))
