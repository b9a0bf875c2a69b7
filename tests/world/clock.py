"""Time that passes only when something happens, and channels whose messages take some of it."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from typing import Final

Action = Callable[[], None]
FIRST_S: Final = 1000.0


class Clock:
    """What is to happen, in order of time; what is due at the same time happens in the order of its planning."""

    def __init__(self) -> None:
        self.now = FIRST_S
        self._queue: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()

    def at(self, when: float, action: Action) -> None:
        """Have *action* done at *when*, or now if that has passed."""
        heapq.heappush(self._queue, (max(when, self.now), next(self._numbers), action))

    def after(self, seconds: float, action: Action) -> None:
        self.at(self.now + seconds, action)

    def next_at(self) -> float:
        """Return when something is due next; infinity: never."""
        return self._queue[0][0] if self._queue else float("inf")

    def do_next(self) -> None:
        """Let time pass until then, and do it."""
        when, _, action = heapq.heappop(self._queue)
        self.now = when
        action()


class Channel:
    """Messages in order, each for some milliseconds under way. While it is cut they wait; closed, they are lost."""

    def __init__(self, clock: Clock, rng: random.Random, delay_s: float) -> None:
        self._clock = clock
        self._rng = rng
        self._delay_s = delay_s
        self._last = 0.0
        self._waiting: deque[Action] = deque()
        self._cut = False
        self.closed = False

    def send(self, arrive: Action) -> None:
        """Have *arrive* done when the message is there."""
        if not self.closed:
            self._last = max(self._last, self._clock.now + self._delay_s * (0.5 + self._rng.random()))
            self._clock.at(self._last, lambda: self._arrived(arrive))

    def cut(self) -> None:
        self._cut = True

    def mend(self) -> None:
        """Messages that have waited arrive, in order, after the ones that are on their way."""
        self._cut = False
        waiting, self._waiting = self._waiting, deque()
        for arrive in waiting:
            self.send(arrive)

    def close(self) -> None:
        self.closed = True
        self._waiting.clear()

    def _arrived(self, arrive: Action) -> None:
        if self.closed:
            return
        if self._cut:
            self._waiting.append(arrive)
        else:
            arrive()
