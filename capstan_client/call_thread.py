"""Calls of the main thread, made in another: there no signal's handler raises."""

from __future__ import annotations

import _thread
import os
import queue
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
LOOK_S: Final = 0.5
"""How often the main thread looks for signals while it waits, where waiting itself does not (Windows)."""


class _Call(Generic[T]):
    """A call, and a place for its result."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._results: list[T] = []
        self._error: BaseException | None = None

    def do(self) -> None:
        """Make the call."""
        try:
            self._results.append(self._work())
        except BaseException as error:
            self._error = error
        self._ended.put(None)

    def ended(self, within_s: float) -> bool:
        """Return whether the call has ended, at the latest after so long."""
        try:
            self._ended.get(timeout=within_s)
        except queue.Empty:
            return False
        return True

    def result(self) -> T:
        """Return what the call that has ended returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]


class CallThread:
    """Does the main thread's calls in a thread of its own, one after the other; those of other threads where they are.

    An exception that a signal's handler raises may come between a lock's being taken and the ``try`` that gives it
    back: whatever wants it next waits for ever. Here such an exception ends no more than the wait for a result.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._serving = 0
        """The process whose thread serves; after a fork the new one has none."""

    def call(self, work: Callable[[], T]) -> T:
        """Return what *work* returns; raise what it raises."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        pending = self._ask(work)
        while not pending.ended(LOOK_S):
            continue
        return pending.result()

    def end(self, work: Callable[[], object], within_s: float) -> None:
        """Do *work* after all that was asked for, and nothing after it; return when it is done, or after *within_s*."""
        if self._serving != os.getpid():
            work()
            return
        pending = self._ask(work)
        self._calls.put(None)
        self._serving = 0
        pending.ended(within_s)

    def _ask(self, work: Callable[[], T]) -> _Call[T]:
        pending = _Call(work)
        self._calls.put(pending.do)
        if self._serving != os.getpid():
            _thread.start_new_thread(_serve, (self._calls,))  # `Thread.start` takes locks, and waits
            self._serving = os.getpid()
        return pending


def _serve(calls: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
