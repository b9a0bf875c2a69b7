"""Letting go of old flow records while the controller runs."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from controller.control_thread import ControlThread
from controller.store.flow_records import forget_flows

EVERY_S: Final = 3600.0
DAY_S: Final = 86_400.0
_LOG: Final = logging.getLogger("capstan.store")


class Retention:
    """Between `start` and `stop`: at first, then every hour. *days*: records of experiments that ended before go."""

    def __init__(self, engine: Engine, days: float) -> None:
        self._engine = engine
        self._days = days
        self._ending = threading.Event()
        self._thread = ControlThread(self._run, "retention")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Harmless if it does not run."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                gone = forget_flows(self._engine, time.time() - self._days * DAY_S)
                if gone:
                    _LOG.info("let go of %d flow records older than %g days", gone, self._days)
            except SQLAlchemyError as error:
                _LOG.error("old flow records stay: %s", str(error).splitlines()[0])
            self._ending.wait(EVERY_S)
