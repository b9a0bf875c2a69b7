"""When each port is to send its next LLDP frame: those of links before those of edge ports."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from controller.fabric.graph import PortRef
from controller.fabric.port_state import PortState


class FrameTimes:
    """Times in seconds, of one clock. ports: all that there are; of a port only `next_send` counts.

    Frames of edge ports come after those that links live by.
    """

    def __init__(self, ports: Mapping[PortRef, PortState]) -> None:
        self._ports = ports
        self._of_links: list[tuple[float, PortRef]] = []
        self._of_edge: list[tuple[float, PortRef]] = []

    def add(self, ref: PortRef, when: float, *, of_link: bool) -> None:
        """Take up a time of a port."""
        heapq.heappush(self._of_links if of_link else self._of_edge, (when, ref))

    def take(self, now: float) -> PortRef | None:
        """Return the port whose turn it is, once; None: it is no port's turn yet."""
        for queue in self._queues():
            if self._first_in(queue) is not None and queue[0][0] <= now:
                return heapq.heappop(queue)[1]
        return None

    def next(self) -> float | None:
        """Return the earliest time; None where no port is to send."""
        times = [queue[0][0] for queue in self._queues() if self._first_in(queue) is not None]
        return min(times) if times else None

    def _queues(self) -> tuple[list[tuple[float, PortRef]], ...]:
        return self._of_links, self._of_edge

    def _first_in(self, queue: list[tuple[float, PortRef]]) -> PortRef | None:
        """Return the first port of a queue, without those that a later decision has overtaken."""
        while queue:
            when, ref = queue[0]
            state = self._ports.get(ref)
            if state is not None and state.next_send == when:
                return ref
            heapq.heappop(queue)
        return None
