"""What waits for one reader of a stream: bounded, whatever the reader does."""

from __future__ import annotations

from collections import deque
from typing import Final

from controller.live.topics import frame

MOST_EVENTS: Final = 2000
"""Events that wait for a reader; beyond, the oldest are dropped and the reader gets their number."""


class Backlog:
    """Frames for a reader of some topics. Events wait in order, of each topic's samples only the newest."""

    def __init__(self, topics: frozenset[str], most: int = MOST_EVENTS) -> None:
        self.topics = topics
        self.dropped_events = 0
        self.dropped_samples = 0
        self._most = most
        self._events: deque[bytes] = deque()
        self._samples: dict[str, bytes] = {}
        self._greeting = b""
        self._lost = 0

    def __bool__(self) -> bool:
        return bool(self._greeting or self._events or self._samples or self._lost)

    def event(self, topic: str, data: bytes) -> None:
        """Append a frame, unless too many wait already."""
        if topic not in self.topics:
            return
        if len(self._events) >= self._most:
            self._events.popleft()
            self._lost += 1
            self.dropped_events += 1
        self._events.append(data)

    def sample(self, topic: str, data: bytes) -> None:
        """Add a frame that replaces the one of its topic that still waits."""
        if topic not in self.topics:
            return
        self.dropped_samples += topic in self._samples
        self._samples[topic] = data

    def greet(self, data: bytes) -> None:
        """Add a frame that comes before all others."""
        self._greeting = data

    def take(self) -> bytes:
        """Return all that waits, events before samples; it is the caller's from here on."""
        gap = frame("gap", {"lost": self._lost}) if self._lost else b""
        taken = b"".join((self._greeting, gap, *self._events, *self._samples.values()))
        self._events.clear()
        self._samples.clear()
        self._greeting, self._lost = b"", 0
        return taken
