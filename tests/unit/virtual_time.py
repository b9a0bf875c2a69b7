"""An event loop whose time passes only while it waits, and then at once, however busy the machine is."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualClock:
    """now: seconds, as `time.monotonic` has them; a test may set it on, as a loop that did not run finds it."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def as_module(self) -> SimpleNamespace:
        """Return what stands for the module `time` in a module that is to go by this clock."""
        return SimpleNamespace(monotonic=lambda: self.now, time=time.time)


class _Selector(selectors.SelectSelector):
    """Sets the clock on by as long as it would wait."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing is ready and no timer runs: the loop would wait for ever"
            self._clock.now += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self._clock.now


def run(work: Coroutine[Any, Any, T], clock: VirtualClock) -> T:
    """Run *work* to its end in a loop that goes by *clock*, and return what it returns."""
    with asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
        return runner.run(work)
