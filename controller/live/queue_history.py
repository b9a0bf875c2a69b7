"""What queues held while a client watched: for the timeline of a flow that went through them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from controller.live.link_loads import LinkLoad

MOST_SAMPLES: Final = 1200
"""Samples: five minutes of four a second."""
Way = tuple[str, str]
"""A link by name, and its direction: "ab" or "ba"."""


@dataclass(frozen=True, slots=True)
class FullestQueue:
    """Of some ways at a moment (Unix seconds): the one with most packets waiting."""

    at: float
    link: str
    direction: str
    queued_packets: int
    dropped_per_s: float


class QueueHistory:
    """The newest MOST_SAMPLES samples; safe to use from several threads."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[Way, tuple[int, float]]]] = deque(maxlen=MOST_SAMPLES)
        self._lock = threading.Lock()

    def note(self, now: float, loads: Iterable[LinkLoad]) -> None:
        """Note a sample of links; keep only ways where something waits, or is dropped."""
        held: dict[Way, tuple[int, float]] = {}
        known = False
        for load in loads:
            for direction, load_one_way in (("ab", load.ab), ("ba", load.ba)):
                if load_one_way is None or load_one_way.queued_packets is None:
                    continue
                known = True
                if load_one_way.queued_packets or load_one_way.dropped_per_s:
                    held[load.name, direction] = (
                        load_one_way.queued_packets,
                        load_one_way.dropped_per_s or 0.0,
                    )
        if known:
            with self._lock:
                self._samples.append((now, held))

    def fullest(self, ways: Collection[Way], since: float, until: float) -> list[FullestQueue]:
        """Return the fullest of *ways* in each sample from *since* to *until*, Unix seconds, if something waited."""
        with self._lock:
            samples = [sample for sample in self._samples if since <= sample[0] <= until]
        fullest = []
        for sampled_s, held in samples:
            most = max(((held[way], way) for way in ways if way in held), default=None)
            if most is not None:
                (packets, dropped), (link, direction) = most
                fullest.append(FullestQueue(sampled_s, link, direction, packets, dropped))
        return fullest
