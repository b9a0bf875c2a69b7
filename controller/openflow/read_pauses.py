"""Connections that are not read for a moment, since what came by them was more than there is time for.

To read what will be dropped takes the time of other switches. Left in the kernel's buffers it holds up its sender: a
switch drops packets for us then by itself, and keeps its other messages.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Final

from controller.openflow.connection import SwitchConnection

PAUSE_S: Final = 0.02
"""At least. At `RECEIVE_BYTES` each time, some 2400 packets a second of such a switch are read."""
MOST_S: Final = 1.0
"""At most: its answers to echo requests are not read meanwhile either."""


class ReadPauses:
    """Pauses, the first to end first."""

    def __init__(self) -> None:
        self._paused: list[tuple[float, int, SwitchConnection]] = []
        self._numbers = itertools.count()

    def pause(self, connection: SwitchConnection, now: float, seconds: float = PAUSE_S) -> None:
        """Do not read *connection* for *seconds*, within `PAUSE_S` and `MOST_S`; it is being read now."""
        connection.pause_reading()
        until = now + min(max(seconds, PAUSE_S), MOST_S)
        heapq.heappush(self._paused, (until, next(self._numbers), connection))

    def resume(self, now: float) -> None:
        """Read those again whose pause is over."""
        while self._paused and self._paused[0][0] <= now:
            heapq.heappop(self._paused)[2].resume_reading()

    def deadline(self) -> float | None:
        """Return when `resume` wants to be called next, seconds; None: not before something else happens."""
        return self._paused[0][0] if self._paused else None
