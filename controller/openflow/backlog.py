"""What waits for the control plane: LLDP and what switches say of themselves first, then other packets; with an end.

Packets can come faster than they can be looked at, from whatever host likes to send ARP. Links live by LLDP, so it does
not wait behind other packets; what is too much is dropped, and counted.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

from capstan_client.errors import CapstanError
from controller.openflow.connection import SwitchConnection
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.session_events import MeterCount, PacketIn, SessionEvent, UpdateDone

MOST_LLDP: Final = 8192
"""Frames that wait; a fabric's links have some 400 a second."""
MOST_OTHERS: Final = 2048
"""Other packets that wait: half a second's work."""
MOST_EVENTS: Final = 16_384
"""Events of one switch that wait; one that sends more is no switch that we can work with."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event of a connection, and when it came (seconds, the shell's clock)."""

    connection: SwitchConnection
    event: SessionEvent
    at: float


class TooManyEventsError(CapstanError, RuntimeError):
    """One switch sends events faster than they can be looked at."""


class Backlog:
    """Args:
    counters: gets ``dropped-lldp`` and ``dropped-packet-ins``.
    """

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._first: deque[Waiting] = deque()
        self._others: deque[Waiting] = deque()
        self._lldp = 0
        self._events: Counter[SwitchConnection] = Counter()

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    def add(self, waiting: Waiting) -> bool:
        """Keep an event for later, or drop it; return whether it is kept.

        Raises TooManyEventsError for one that may not be dropped.
        """
        if not isinstance(waiting.event, PacketIn):
            if self._events[waiting.connection] >= MOST_EVENTS:
                raise TooManyEventsError(f"it sends faster than it can be served: {MOST_EVENTS} events wait")
            self._events[waiting.connection] += 1
            self._first.append(waiting)
        elif rule_of(waiting.event.cookie) is Rule.LLDP:
            if self._lldp >= MOST_LLDP:
                self._counters["dropped-lldp"] += 1
                return False
            self._lldp += 1
            self._first.append(waiting)
        elif len(self._others) >= MOST_OTHERS:
            self._counters["dropped-packet-ins"] += 1
            return False
        else:
            self._others.append(waiting)
        return True

    def take(self) -> Waiting:
        """Return what is next. Raises IndexError if nothing waits."""
        if not self._first:
            return self._others.popleft()
        waiting = self._first.popleft()
        if isinstance(waiting.event, PacketIn):
            self._lldp -= 1
        else:
            self._events[waiting.connection] -= 1
            if not self._events[waiting.connection]:
                del self._events[waiting.connection]
        return waiting


def urgent(event: SessionEvent) -> bool:
    """Return whether it may not wait: a mode signal or a confirmation, which short flows' completion times hang on."""
    match event:
        case PacketIn(_, cookie, _):
            return rule_of(cookie) is Rule.FIRST_SHORT
        case MeterCount() | UpdateDone():
            return True
        case _:
            return False
