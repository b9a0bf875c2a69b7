"""The end of a process that a signal, or another thread, asks for."""

from __future__ import annotations

import queue


class Ending:
    """What `threading.Event` is, where a signal's handler sets it.

    A handler runs in the main thread, between any two of its instructions. Within `Event.wait` that thread may hold the
    lock that `Event.set` takes, and would wait for itself; `SimpleQueue.put` takes none.
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Ask for the end; it is asked for from now on."""
        self._asked.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Return True as soon as the end is asked for, False if it is not within *timeout_s*."""
        try:
            self._asked.get(timeout=timeout_s)
        except queue.Empty:
            return False
        self.set()
        return True
