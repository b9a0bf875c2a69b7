"""A small event loop on one selector: sockets, timers, nothing else. One thread."""

from __future__ import annotations

import heapq
import selectors
import time
from collections.abc import Callable
from typing import Final, Protocol

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE


class Source(Protocol):
    """What a selector can watch."""

    def fileno(self) -> int:
        """Return its file descriptor."""

    def __hash__(self) -> int: ...


class Loop:
    """Calls back on readiness and at times (seconds of the monotonic clock)."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._calls: dict[Source, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._running = True

    def watch(self, source: Source, events: int, call: Callable[[int], None]) -> None:
        """Call *call* with the ready events; replaces an earlier watch of the same source."""
        if source in self._calls:
            self._selector.modify(source, events)
        else:
            self._selector.register(source, events)
        self._calls[source] = call

    def forget(self, source: Source) -> None:
        """Watch no more; must come before the source is closed."""
        if self._calls.pop(source, None) is not None:
            self._selector.unregister(source)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call *call* once at this time, or as soon after it as the loop comes to it."""
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, call))

    def stop(self) -> None:
        """Have `run` return after its present round."""
        self._running = False

    def drop_timers(self) -> None:
        """Forget all that `at` was asked for."""
        self._timers.clear()

    def run(self) -> None:
        """Run until `stop`."""
        while self._running:
            timeout = None
            if self._timers:
                timeout = max(0.0, self._timers[0][0] - time.monotonic())
            for key, events in self._selector.select(timeout):
                # None: something that was called before it in this round has closed it
                call = self._calls.get(key.fileobj)  # type: ignore[call-overload]
                if call is not None:
                    call(events)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
