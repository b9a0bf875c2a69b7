"""Who waits for a switch's confirmation of an update: threads, and traces of mode changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from controller.openflow.connection import SwitchConnection
from controller.openflow.errors import SwitchError
from controller.plane.effects import ModeChanged
from controller.shell.shell_events import ModeSwitched

Ticket = tuple[SwitchConnection, int]


@dataclass(slots=True, eq=False)
class Waiter:
    """A thread that waits until all of ``tickets`` are confirmed."""

    tickets: set[Ticket]
    done: threading.Event = field(default_factory=threading.Event)
    errors: list[SwitchError] = field(default_factory=list)

    def late(self) -> list[str]:
        """Return the names of the switches that have not confirmed all yet; for the thread that waits, too."""
        return sorted({connection.session.name for connection, _ in tuple(self.tickets)})


class Confirmations:
    """Waiters and traces by ticket. Used by the shell's thread only, but for a waiter's ``done``."""

    def __init__(self) -> None:
        self._waiters: list[Waiter] = []
        self._traces: dict[Ticket, tuple[ModeChanged, float, float]] = {}

    def wait_for(self, tickets: Iterable[Ticket]) -> Waiter:
        """Return what is done once all *tickets* are confirmed: at once if there are none."""
        waiter = Waiter(set(tickets))
        self._waiters.append(waiter)
        self._settle()
        return waiter

    def trace(self, ticket: Ticket, change: ModeChanged, noticed: float, sent: float) -> None:
        """Make a `ModeSwitched` of *change* when *ticket* is confirmed."""
        self._traces[ticket] = (change, noticed, sent)

    def confirmed(self, ticket: Ticket, errors: tuple[SwitchError, ...], now: float) -> ModeSwitched | None:
        """Note a confirmed update. Return the trace of the mode change that it was, if the switch took it."""
        for waiter in self._waiters:
            if ticket in waiter.tickets:
                waiter.tickets.discard(ticket)
                waiter.errors.extend(errors)
        self._settle()
        trace = self._traces.pop(ticket, None)
        if trace is None or errors:
            return None
        change, noticed, sent = trace
        return ModeSwitched(change.at, change.leaf, change.mode, change.cause, noticed, sent, now)

    def gone(self, connection: SwitchConnection) -> None:
        """Note that nothing more will be confirmed on *connection*."""
        for waiter in self._waiters:
            waiter.tickets = {ticket for ticket in waiter.tickets if ticket[0] is not connection}
        self._settle()
        self._traces = {key: trace for key, trace in self._traces.items() if key[0] is not connection}

    def _settle(self) -> None:
        for waiter in self._waiters:
            if not waiter.tickets:
                waiter.done.set()
        self._waiters = [waiter for waiter in self._waiters if waiter.tickets]
