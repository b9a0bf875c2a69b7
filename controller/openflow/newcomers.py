"""Connections that say they are a switch which is connected already: the older one is asked, and holds if it answers.

A switch that lost power, or its way to us, dials again long before its old connection is known to be dead; so the old
one is probed (an echo request), and has to answer within `PROBE_S`. One that answers is not displaced by anything that
merely knows its datapath id. Time in which this program did not run, or computed something else, is no silence: an
answer that has come meanwhile is read only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from controller.openflow.connection import SwitchConnection
from controller.openflow.session_events import Ready

PROBE_S: Final = 0.5
"""A connection that leaves an echo request unanswered for this long, while the same switch calls again, is dead."""
LOOK_EVERY_S: Final = 0.05
"""While a connection waits: what is longer between two looks does not count, for nothing was read in it."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A connection that has said everything, and waits for the older one's answer until ``until`` (as `Newcomers`
    counts time)."""

    connection: SwitchConnection
    ready: Ready
    until: float


class Newcomers:
    """Args:
    switches: the connection of each switch that is connected, by datapath id; the caller's.
    close, admit: end a connection with a reason; begin with one that may take its place in *switches*.
    """

    def __init__(
        self,
        switches: Mapping[int, SwitchConnection],
        close: Callable[[SwitchConnection, str], None],
        admit: Callable[[SwitchConnection, Ready], None],
    ) -> None:
        self._switches = switches
        self._close = close
        self._admit = admit
        self._waiting: dict[int, Newcomer] = {}
        self._looked_at: float | None = None
        self._not_counted_s = 0.0

    def arrived(self, connection: SwitchConnection, ready: Ready, now: float) -> bool:
        """Return whether *connection* has to be refused: another one waits for the same place.

        The place is given at once if it is free, else the connection that has it is probed.
        """
        dpid, counted = ready.dpid, self._counted(now)
        waiting, incumbent = self._waiting.get(dpid), self._switches.get(dpid)
        if waiting is not None and not waiting.connection.closed:
            return True  # also where the place has become free just now: it is the other one's
        if incumbent is None:
            self._admit(connection, ready)
        else:
            incumbent.session.probe()
            self._waiting[dpid] = Newcomer(connection, ready, counted + PROBE_S)
        return False

    def settle(self, now: float) -> list[tuple[Newcomer, str]]:
        """Let those in whose place has become free; return those to refuse, for the older connection has answered, each
        with that one's address: to let another in may end it.
        """
        refused = []
        counted = self._counted(now)
        for dpid, newcomer in list(self._waiting.items()):
            incumbent = self._switches.get(dpid)
            if newcomer.connection.closed:
                del self._waiting[dpid]
            elif incumbent is None:
                del self._waiting[dpid]
                self._admit(newcomer.connection, newcomer.ready)
            elif incumbent.session.probe_answered:
                del self._waiting[dpid]
                refused.append((newcomer, incumbent.peer))
            elif counted >= newcomer.until:
                del self._waiting[dpid]
                self._close(
                    incumbent, f"it connected again, and this one does not answer within {PROBE_S:g} s"
                )
                self._admit(newcomer.connection, newcomer.ready)
        return refused

    def deadline(self) -> float | None:
        """Return when `settle` wants to be called next, seconds; None: not before something else happens."""
        if not self._waiting or self._looked_at is None:
            return None
        first = min(newcomer.until for newcomer in self._waiting.values()) + self._not_counted_s
        return min(first, self._looked_at + LOOK_EVERY_S)

    def _counted(self, now: float) -> float:
        """Return the time that counts, seconds: *now*, less what was longer than `LOOK_EVERY_S` between two looks."""
        if self._looked_at is not None:
            self._not_counted_s += max(0.0, now - self._looked_at - LOOK_EVERY_S)
        self._looked_at = now
        return now - self._not_counted_s
