"""What becomes of updates that switches were sent: confirmed for those who wait, or refused."""

from __future__ import annotations

import logging
from typing import Final

from controller.openflow.connection import SwitchConnection
from controller.openflow.errors import SwitchError
from controller.openflow.refusals import Refusals
from controller.rare_log import RareLog
from controller.shell.confirmations import Waiter
from controller.shell.context import ShellContext
from controller.shell.shell_events import SwitchRefused
from controller.token_bucket import TokenBucket

LOG: Final = logging.getLogger(__name__)

MOST_LINES: Final = 5
"""In the log, about what a switch refused of one update; another says how much more there was."""
MOST_EVENTS: Final = 256
"""About what switches refused, at once, and one a second in the long run: one can invent them; the counter has all."""
BEGINS_ANEW: Final = "it refused an update; it gets its whole state when it connects again"


class UpdateResults:
    """Used by the shell's thread only, but for `errors`."""

    def __init__(self, shell: ShellContext) -> None:
        self._shell: Final = shell
        self._board: Final = shell.board
        self._refusals = Refusals()
        self._lines = RareLog(LOG, logging.ERROR)
        self._events = TokenBucket(MOST_EVENTS, shell.now())

    def errors(self) -> tuple[SwitchError, ...]:
        """Return the last errors that switches answered with, oldest first."""
        return self._refusals.latest()

    def waiter(self) -> Waiter:
        """Return who waits for all updates sent so far, with the errors of switches that have not begun anew since."""
        switches = self._board.switches
        waiter = self._shell.confirmations.wait_for(
            (connection, ticket)
            for connection in switches.values()
            for ticket in connection.session.unconfirmed
        )
        waiter.errors.extend(self._refusals.open(switches, self._shell.now()))
        return waiter

    def done(
        self, connection: SwitchConnection, ticket: int, errors: tuple[SwitchError, ...], read_at: float
    ) -> None:
        """Take a switch's confirmation of an update, of which it refused what *errors* say."""
        for error in errors[:MOST_LINES]:
            self.refused(error)
        for error in errors[MOST_LINES:]:
            self._note(error)
        if len(errors) > MOST_LINES:
            more = len(errors) - MOST_LINES
            LOG.error(
                "switch %s refused %d more parts of this update at least", connection.session.name, more
            )
        trace = self._shell.confirmations.confirmed((connection, ticket), errors, read_at)
        if trace is not None:
            self._shell.on_event(trace)
        if errors:
            self._heal(connection, errors)

    def refused(self, error: SwitchError) -> None:
        """Note what a switch refused, with a line in the log, unless there were many of late."""
        self._lines.say(str(error))
        self._note(error)

    def began_anew(self, dpid: int) -> None:
        """Note that a switch has connected: it gets its whole state now."""
        self._refusals.began_anew(dpid)

    def deadline(self) -> float | None:
        """Return when `tick` has something to do, seconds; None: not before something else happens."""
        return self._refusals.deadline()

    def tick(self, now: float) -> None:
        """Close the connections of switches that are to begin anew by now."""
        for dpid in self._refusals.due(now):
            connection = self._board.switches.get(dpid)
            if connection is not None:
                self._board.close(connection, BEGINS_ANEW)

    def _note(self, error: SwitchError) -> None:
        self._shell.counters["refused"] += 1
        self._refusals.note(error)
        if self._events.take(1.0, self._shell.now()):
            self._shell.on_event(SwitchRefused(error.at, error))

    def _heal(self, connection: SwitchConnection, errors: tuple[SwitchError, ...]) -> None:
        """Begin with a switch anew: a refused update leaves it unlike what the control plane believes."""
        dpid = connection.introduced
        assert dpid is not None
        if self._refusals.update_refused(dpid, errors, self._shell.now()):
            self._board.close(connection, BEGINS_ANEW)
