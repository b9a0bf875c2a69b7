"""Connections that are not read for a moment, since what came by them was more than there is time for.

To read what will be dropped takes the time of other switches. Left in the kernel's buffers it holds up its sender: a
switch drops packets for us then by itself, and keeps its other messages.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from controller.openflow.connection import SwitchConnection

PAUSE_S: Final = 0.02
"""At `RECEIVE_BYTES` each time, some 5000 packets a second of such a switch are read."""


class ReadPauses:
    """Pauses, the first to end first."""

    def __init__(self) -> None:
        self._paused: deque[tuple[float, SwitchConnection]] = deque()

    def pause(self, connection: SwitchConnection, now: float) -> None:
        """Do not read *connection* before `PAUSE_S` are over; it is being read now."""
        connection.pause_reading()
        self._paused.append((now + PAUSE_S, connection))

    def resume(self, now: float) -> None:
        """Read those again whose pause is over."""
        while self._paused and self._paused[0][0] <= now:
            self._paused.popleft()[1].resume_reading()

    def deadline(self) -> float | None:
        """Return when `resume` wants to be called next, or None."""
        return self._paused[0][0] if self._paused else None
