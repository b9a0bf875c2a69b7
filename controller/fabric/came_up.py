"""When the ports of each switch came up, so that the last of them is found without a look at all."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.graph import PortRef

_FEW: Final = 64
"""Entries that are not worth a look for those that a later one has overtaken."""


@dataclass(slots=True)
class _Switch:
    heap: list[tuple[float, int]] = field(default_factory=list)
    """Times, negative: the last first; and the ports' numbers."""
    ports: int = 0
    """In the heap when it was last without double entries."""


class CameUp:
    """Times in seconds, of one clock."""

    def __init__(self) -> None:
        self._switches: dict[int, _Switch] = {}

    def note(self, ref: PortRef, since: float) -> None:
        """Note that *ref* came up then, and counts again if it did not."""
        switch = self._switches.setdefault(ref.dpid, _Switch())
        if len(switch.heap) > 2 * switch.ports + _FEW:
            newest: dict[int, float] = {}
            for when, number in switch.heap:
                newest[number] = min(when, newest.get(number, when))
            switch.heap = [(when, number) for number, when in newest.items()]
            switch.ports = len(switch.heap)
            heapq.heapify(switch.heap)
        heapq.heappush(switch.heap, (-since, ref.port))

    def last(self, dpid: int, counts: Callable[[PortRef, float], bool]) -> float | None:
        """Return when the last port came up that counts, seconds; None: none did.

        counts: gets a port and when it came up; one that does not count is not asked for again before the next `note`.
        """
        heap = self._switches[dpid].heap if dpid in self._switches else []
        while heap:
            when, number = heap[0]
            if counts(PortRef(dpid, number), -when):
                return -when
            heapq.heappop(heap)
        return None

    def forget(self, dpid: int) -> None:
        """Forget a switch's ports."""
        self._switches.pop(dpid, None)
