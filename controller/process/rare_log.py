"""Lines of a log that a peer can cause: at most so many, with how many were left out."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

SAY_EVERY_S: Final = 1.0


class RareLog:
    """Logs a line at most every `SAY_EVERY_S` seconds; from any thread."""

    def __init__(self, log: logging.Logger, level: int = logging.WARNING) -> None:
        self._log, self._level = log, level
        self._said_at = float("-inf")
        self._silent = 0
        self._lock = threading.Lock()

    def say(self, text: str, now: float | None = None) -> None:
        """Log a line, with how many before it were left out, or leave it out. now: seconds; None: this moment."""
        now = time.monotonic() if now is None else now
        with self._lock:
            if now - self._said_at < SAY_EVERY_S:
                self._silent += 1
                return
            more = f" ({self._silent} more such lines were left out)" if self._silent else ""
            self._said_at, self._silent = now, 0
        self._log.log(self._level, "%s%s", text, more)
