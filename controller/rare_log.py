"""Lines of a log that a peer can cause: only so many, with how many were left out."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from controller.token_bucket import TokenBucket

BURST: Final = 10
EVERY_S: Final = 1.0


class RareLog:
    """Logs *burst* lines at once, and one each *every_s* seconds in the long run; from any thread."""

    def __init__(
        self, log: logging.Logger, level: int = logging.WARNING, burst: int = BURST, every_s: float = EVERY_S
    ) -> None:
        self._log, self._level = log, level
        self._lines: TokenBucket | None = None
        self._burst, self._every_s = burst, every_s
        self._silent = 0
        self._lock = threading.Lock()

    def say(self, text: str, now: float | None = None) -> None:
        """Log a line, with how many before it were left out, or leave it out. now: seconds; None: this moment."""
        now = time.monotonic() if now is None else now
        with self._lock:
            self._lines = self._lines or TokenBucket(self._burst, now)
            if not self._lines.take(1 / self._every_s, now):
                self._silent += 1
                return
            more = f" ({self._silent} more such lines were left out)" if self._silent else ""
            self._silent = 0
        self._log.log(self._level, "%s%s", text, more)
