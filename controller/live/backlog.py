"""What waits for one reader of a stream: bounded, whatever the reader does."""

from __future__ import annotations

from collections import deque
from typing import Final

from controller.live.topics import frame

PIECE_BYTES: Final = 1 << 16
"""What a reader is given at a time, unless one frame has more: frames are all readers' own together, pieces are not."""
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
        """Return the next piece of what waits, events before samples; it is the caller's from here on."""
        greeting, gap = self._greeting, frame("gap", {"lost": self._lost}) if self._lost else b""
        self._greeting, self._lost = b"", 0
        parts = [part for part in (greeting, gap) if part]
        size = sum(map(len, parts))
        while (upcoming := self._next()) is not None and (not parts or size + len(upcoming) <= PIECE_BYTES):
            parts.append(self._pop())
            size += len(upcoming)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self) -> bytes | None:
        """Return the frame that goes next, or None."""
        return self._events[0] if self._events else next(iter(self._samples.values()), None)

    def _pop(self) -> bytes:
        return self._events.popleft() if self._events else self._samples.pop(next(iter(self._samples)))
