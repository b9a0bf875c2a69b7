"""Threads that take samples while a client watches, and ask for nothing else."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from controller.process.control_thread import ControlThread

LOG: Final = logging.getLogger("capstan.live")
LEASE_S: Final = 20.0
"""Who asks once counts as watching for so long."""
FIRST_S: Final = 0.1
"""Between attempts at the first sample, which a client may be waiting for."""
Sample = dict[str, Any]


class Sampler(ABC):
    """Takes a sample every *every_s* seconds while *watched* says so, or while a client has asked a moment ago.

    publish: gets each sample, in this thread. Subclasses say what a sample is.
    """

    def __init__(
        self, name: str, every_s: float, watched: Callable[[], bool], publish: Callable[[Sample], None]
    ) -> None:
        self._name = name
        self._every_s = every_s
        self._watched = watched
        self._publish = publish
        self._changed = threading.Condition()
        self._lease_until = 0.0
        self._newest: Sample | None = None
        self._stopping = False
        self._thread: ControlThread | None = None

    # What a subclass does, in the thread

    def _begin(self) -> None:  # noqa: B027 not every sampler has something to do then
        """Begin: a client watches."""

    def _end(self) -> None:  # noqa: B027
        """End: no client watches any more."""

    @abstractmethod
    def _take(self) -> Sample | None:
        """Return one sample; None: there is none yet."""

    # For other threads

    def start(self) -> None:
        """Begin to sample, in a thread of its own."""
        self._thread = ControlThread(self._run, self._name)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Harmless if it does not run."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Wake the thread: a client may have begun to watch, or an answer has come."""
        with self._changed:
            self._changed.notify_all()

    def keep_sampling(self) -> None:
        """Note that a client has asked, and may ask again."""
        with self._changed:
            self._lease_until = time.monotonic() + LEASE_S
            self._changed.notify_all()

    def newest(self, patience_s: float) -> Sample | None:
        """Return the newest sample; where there is none yet, ask for it, and wait so long. None: it did not come."""
        deadline = time.monotonic() + patience_s
        with self._changed:
            self._lease_until = time.monotonic() + LEASE_S
            self._changed.notify_all()
            while self._newest is None and not self._stopping and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            return self._newest

    # The thread

    def _wanted(self) -> bool:
        return self._watched() or time.monotonic() < self._lease_until

    def _run(self) -> None:
        taking = False
        due = 0.0
        while True:
            with self._changed:
                while not self._stopping and not (taking or self._wanted()):
                    self._changed.wait(1.0)
                    due = time.monotonic()
                if self._stopping:
                    return
            try:
                if taking and not self._wanted():
                    taking, self._newest = False, None
                    self._end()
                    continue
                if not taking:
                    taking = True
                    self._begin()
                sample = self._take()
            except Exception:  # one bad sample must not end all
                LOG.exception("no sample of the %s", self._name)
            else:
                if sample is not None:
                    with self._changed:
                        self._newest = sample
                        self._changed.notify_all()
                    self._publish(sample)
            pause_s = self._every_s if self._newest is not None else min(FIRST_S, self._every_s)
            due = max(due + pause_s, time.monotonic())
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, max(0.0, due - time.monotonic()))
