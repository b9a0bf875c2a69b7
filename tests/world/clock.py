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
        self._pending: deque[Action] = deque()
        self._missed = 0
        """How many arrivals were due while it was cut."""
        self._cut = False
        self.closed = False

    def send(self, arrive: Action) -> None:
        """Have *arrive* done when the message is there."""
        if not self.closed:
            self._pending.append(arrive)
            self._schedule()

    def cut(self) -> None:
        self._cut = True

    def mend(self) -> None:
        """Have messages that have waited arrive, before those that were sent after them."""
        self._cut = False
        missed, self._missed = self._missed, 0
        for _ in range(missed):
            self._schedule()

    def close(self) -> None:
        self.closed = True
        self._pending.clear()

    def _schedule(self) -> None:
        self._last = max(self._last, self._clock.now + self._delay_s * (0.5 + self._rng.random()))
        self._clock.at(self._last, self._arrive)

    def _arrive(self) -> None:
        if self._cut:
            self._missed += 1
        elif self._pending:
            self._pending.popleft()()
