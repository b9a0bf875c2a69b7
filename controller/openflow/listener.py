"""Accepts switches' connections, and goes on where there are too many of them, or no descriptors left."""

from __future__ import annotations

import logging
import resource
import selectors
import socket
from collections import Counter
from dataclasses import dataclass
from typing import Final

from controller.rare_log import RareLog

LOG: Final = logging.getLogger(__name__)

PAUSE_S: Final = 1.0
"""After a connection that could not be accepted, none is for this long."""
SAY_EVERY_S: Final = 10.0
MOST_CONNECTIONS: Final = 8192
"""Also where more descriptors are allowed: twice the switches that there can be."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A connection, and where it comes from as ADDRESS:PORT."""

    sock: socket.socket
    peer: str


class Listener:
    """A listening socket that a selector watches, but while it pauses. Raises OSError if the address cannot be had."""

    def __init__(
        self, address: str, port: int, selector: selectors.BaseSelector, counters: Counter[str]
    ) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = socket.create_server((address, port), family=family, backlog=128)
        self.sock.setblocking(False)
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)
        """Connections that there may be at a time: half of the descriptors that this process may have."""
        self._selector = selector
        self._counters = counters
        self._resume_at: float | None = None
        self._lines = RareLog(LOG, logging.ERROR, burst=1, every_s=SAY_EVERY_S)
        selector.register(self.sock, selectors.EVENT_READ, self)

    @property
    def port(self) -> int:
        """Return the TCP port that switches connect to."""
        number: int = self.sock.getsockname()[1]
        return number

    def accept(self, now: float) -> Accepted | None:
        """Return the next connection; None if there is none, or it could not be accepted (then it pauses)."""
        try:
            sock, address = self.sock.accept()
        except BlockingIOError:
            return None
        except OSError as error:
            self.say(f"cannot accept a switch's connection: {error.strerror or error}", now)
            self._selector.unregister(self.sock)
            self._resume_at = now + PAUSE_S
            self._counters["accept-pauses"] += 1
            return None
        return Accepted(sock, f"{address[0]}:{address[1]}")

    def say(self, text: str, now: float) -> None:
        """Log a line about connections, with how many like it were left out, at most every `SAY_EVERY_S`."""
        self._lines.say(text, now)

    def deadline(self) -> float | None:
        """Return when `resume` wants to be called next, seconds; None: not before something else happens."""
        return self._resume_at

    def resume(self, now: float) -> None:
        """Accept again if the pause is over."""
        if self._resume_at is not None and now >= self._resume_at:
            self._resume_at = None
            self._selector.register(self.sock, selectors.EVENT_READ, self)

    def close(self) -> None:
        """Listen no more."""
        self.sock.close()
