"""Flows over parallel links with strict-priority queues, packet by packet: what priorities alone can do.

No agents, no loss, no noise: a flow's packets all take one link. It begins with a window of ten packets, one more for
each packet that arrives, up to `WINDOW`; a packet's queue is chosen when it is sent. A packet on the wire is finished
first. Switches and hosts beside the one link cost a constant round-trip time.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

PAYLOAD_BYTES: Final = 1374
"""Of a full packet; `OVERHEAD_BYTES` more are on the wire."""
OVERHEAD_BYTES: Final = 126
ROUND_TRIP_S: Final = 0.001
INITIAL_WINDOW: Final = 10
"""RFC 6928."""
WINDOW: Final = 64
"""Packets; what a flow may have in queues."""

Priority = Callable[[int], float]
"""Of the packet after so many bytes; least first, first come first served among equals."""


@dataclass(frozen=True, slots=True)
class Job:
    """A flow of *size* bytes, over link number *link* from *start_s* on."""

    start_s: float
    size: int
    link: int


def by_bytes_sent(thresholds: Sequence[float]) -> Priority:
    """Return the queues of PIAS and TPFS. thresholds: bytes, not falling."""
    return lambda sent: bisect_right(thresholds, sent)


def by_size(thresholds: Sequence[float], size: int) -> Priority:
    """Return the one queue in which a flow of *size* bytes would end."""
    queue = bisect_left(thresholds, size)
    return lambda sent: queue


def by_remaining(size: int) -> Priority:
    """Return the priority by shortest remaining time, with a queue for every size."""
    return lambda sent: size - sent


@dataclass(slots=True)
class _Flow:
    job: Job
    priority: Priority
    window: int = INITIAL_WINDOW
    in_flight: int = 0
    sent: int = 0
    arrived: int = 0


class _Link:
    def __init__(self) -> None:
        self.busy = False
        self._queues: dict[float, deque[tuple[_Flow, int]]] = {}
        self._waiting: list[float] = []
        """The queues that hold something, a heap."""

    def put(self, priority: float, flow: _Flow, payload: int) -> None:
        queue = self._queues.get(priority)
        if queue is None:
            queue = self._queues[priority] = deque()
            heapq.heappush(self._waiting, priority)
        queue.append((flow, payload))

    def take(self) -> tuple[_Flow, int] | None:
        if not self._waiting:
            return None
        first = self._waiting[0]
        queue = self._queues[first]
        packet = queue.popleft()
        if not queue:
            del self._queues[first]
            heapq.heappop(self._waiting)
        return packet


def completion_times(
    jobs: Sequence[Job], priorities: Sequence[Priority], links: int, rate_bps: float
) -> list[float]:
    """Return seconds that each of *jobs* takes, from its start to its last byte's arrival. priorities: of each job.

    rate_bps: of each of *links* links.
    """
    flows = [_Flow(job, priority) for job, priority in zip(jobs, priorities, strict=True)]
    ports = [_Link() for _ in range(links)]
    number = {id(flow): index for index, flow in enumerate(flows)}
    times = [0.0] * len(flows)
    # what happens: a flow begins (payload 0), a packet has left its link (above 0), its acknowledgement is back (below)
    events = [(flow.job.start_s + ROUND_TRIP_S, index, flow, 0) for index, flow in enumerate(flows)]
    heapq.heapify(events)
    count = len(events)

    def serve(link: _Link, now: float) -> None:
        nonlocal count
        packet = link.take()
        link.busy = packet is not None
        if packet is not None:
            flow, payload = packet
            count += 1
            done = now + (payload + OVERHEAD_BYTES) * 8 / rate_bps
            heapq.heappush(events, (done, count, flow, payload))

    while events:
        now, _, flow, payload = heapq.heappop(events)
        link = ports[flow.job.link]
        if payload > 0:
            flow.arrived += payload
            if flow.arrived >= flow.job.size:
                times[number[id(flow)]] = now + ROUND_TRIP_S / 2 - flow.job.start_s
            else:
                count += 1
                heapq.heappush(events, (now + ROUND_TRIP_S, count, flow, -payload))
            serve(link, now)
            continue
        if payload < 0:
            flow.in_flight -= 1
            flow.window = min(flow.window + 1, WINDOW)
        while flow.in_flight < flow.window and flow.sent < flow.job.size:
            segment = min(PAYLOAD_BYTES, flow.job.size - flow.sent)
            link.put(flow.priority(flow.sent), flow, segment)
            flow.sent += segment
            flow.in_flight += 1
        if not link.busy:
            serve(link, now)
    return times
