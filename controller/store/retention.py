"""Letting go of old flow records while the controller runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from controller.process.control_thread import ControlThread
from controller.store.flow_records import forget_flows

EVERY_S: Final = 3600.0
DAY_S: Final = 86_400.0
JUMP_S: Final = 60.0
"""More than clocks drift apart in months."""
_LOG: Final = logging.getLogger("capstan.store")


class CautiousClock:
    """The time by which records are old: the wall clock, unless that has run ahead of a steady one. Pure."""

    def __init__(self, wall: float, steady: float) -> None:
        self._ahead = wall - steady

    def now(self, wall: float, steady: float) -> float:
        """Return Unix seconds. A jump forward counts for nothing, since what it deletes would not come back."""
        return min(wall, steady + self._ahead)


class Retention:
    """Between `start` and `stop`: at first, then every hour. *days*: records of experiments that ended before go.

    clock: the wall's, Unix seconds; it is trusted at the start.
    """

    def __init__(
        self,
        engine: Engine,
        days: float,
        clock: Callable[[], float] = time.time,
        every_s: float = EVERY_S,
    ) -> None:
        self._engine = engine
        self._days = days
        self._clock = clock
        self._every_s = every_s
        self._cautious = CautiousClock(clock(), _steady())
        self._ending = threading.Event()
        self._thread = ControlThread(self._run, "retention")

    def start(self) -> None:
        """Begin to delete what is too old, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Harmless if it does not run."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                before = self._now() - self._days * DAY_S
                gone = forget_flows(self._engine, before, self._ending.is_set)
                if gone:
                    _LOG.info("deleted %d flow records older than %g days", gone, self._days)
            except SQLAlchemyError as error:
                _LOG.error("old flow records stay: %s", str(error).splitlines()[0])
            self._ending.wait(self._every_s)

    def _now(self) -> float:
        wall = self._clock()
        now = self._cautious.now(wall, _steady())
        if wall - now > JUMP_S:
            _LOG.warning(
                "the clock has jumped forward by %.0f s since the start: records are judged without that; "
                "if it is right now, start the controller again",
                wall - now,
            )
        return now


def _steady() -> float:
    """Return seconds of a clock that cannot be set, and goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
