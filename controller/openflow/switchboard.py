"""All connections of switches: accepted, kept alive, written to, closed; and which of them is which switch's."""

from __future__ import annotations

import logging
import selectors
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from controller.openflow.connection import ConnectionEnded, SwitchConnection
from controller.openflow.listener import Listener
from controller.openflow.replies import ReplyRoom
from controller.openflow.tls import SwitchTlsContexts, TlsLayer
from controller.rare_log import RareLog

LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 0.1
"""Between two looks at all connections: there may be thousands."""


class Switchboard:
    """Args:
    selector: watches all sockets.
    counters: of what happens, by name.
    refusal: why a switch with this datapath id and this name in its certificate may not connect, or None if it may.
    on_closed: gets each connection that has been closed.
    tls: of each new connection; None: OpenFlow in clear.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        counters: Counter[str],
        refusal: Callable[[int, str], str | None],
        on_closed: Callable[[SwitchConnection], None],
        *,
        tls: SwitchTlsContexts | None = None,
    ) -> None:
        self._selector = selector
        self._counters = counters
        self._refusal = refusal
        self._on_closed = on_closed
        self._tls = tls
        self._room = ReplyRoom()
        self._ends = RareLog(LOG, logging.INFO)
        self._listener: Listener | None = None
        self._look_at: float | None = None
        """No connection has to be kept alive, or given up, before."""
        self._connections: dict[SwitchConnection, None] = {}
        """In the order in which they came."""
        self.switches: dict[int, SwitchConnection] = {}
        """Those that the control plane knows of, by datapath id."""
        self.lost: deque[int] = deque()
        """Switches whose connection was closed, and the control plane does not know yet."""

    def listen(self, address: str, port: int) -> None:
        """Accept connections from now on. Raises OSError if the address cannot be had."""
        self._listener = Listener(address, port, self._selector, self._counters)

    @property
    def port(self) -> int:
        """Return the TCP port that switches connect to. Raises RuntimeError before `listen`."""
        if self._listener is None:
            raise RuntimeError("the OpenFlow shell does not listen yet: start() it first")
        return self._listener.port

    def is_listener(self, watched: object) -> bool:
        """Return whether *watched* (a selector key's data) stands for connections to `accept`."""
        return watched is self._listener

    def accept(self, now: float) -> None:
        """Take the next connection, if there is room for it."""
        assert self._listener is not None
        accepted = self._listener.accept(now)
        if accepted is None:
            return
        if len(self._connections) >= self._listener.most and not self._make_room():
            accepted.sock.close()
            self._counters["refused-connections"] += 1
            count = len(self._connections)
            self._listener.say(f"{accepted.peer} is refused: {count} switches are connected", now)
            return
        layer = None if self._tls is None else TlsLayer(self._tls.current())
        connection = SwitchConnection(
            accepted.sock,
            accepted.peer,
            self._selector,
            now,
            counters=self._counters,
            refusal=self._refusal,
            tls=layer,
            room=self._room,
        )
        self._connections[connection] = None
        due = connection.session.deadline()
        self._look_at = due if self._look_at is None else min(self._look_at, due)
        self._counters["connections"] += 1
        self.flush(connection)

    def flush(self, connection: SwitchConnection) -> None:
        """Send what a connection has to send; it is closed if it cannot go on."""
        if connection.closed:
            return
        try:
            connection.flush()
        except ConnectionEnded as end:
            self.close(connection, str(end))

    def close(self, connection: SwitchConnection, reason: str) -> None:
        """Close a connection; a switch that the control plane knows of is in `lost` then."""
        if connection.closed:
            return
        connection.close()
        self._connections.pop(connection, None)
        self._on_closed(connection)
        self._counters["disconnections"] += 1
        switch = connection.session.name
        self._ends.say(f"connection of switch {switch} at {connection.peer} ends: {reason}")
        dpid = connection.introduced
        if dpid is not None and self.switches.get(dpid) is connection:
            del self.switches[dpid]
            # Reported later: this may be in the middle of the effects of another event.
            self.lost.append(dpid)

    def close_all(self, reason: str) -> None:
        """Close all connections and the listening socket."""
        for connection in tuple(self._connections):
            self.close(connection, reason)
        if self._listener is not None:
            self._listener.close()

    def deadline(self) -> float | None:
        """Return when `tick` wants to be called next, seconds; None: not before something else happens."""
        resume_at = None if self._listener is None else self._listener.deadline()
        return min((time for time in (self._look_at, resume_at) if time is not None), default=None)

    def tick(self, now: float) -> None:
        """Keep connections alive, and close those that are silent."""
        if self._listener is not None:
            self._listener.resume(now)
        if self._look_at is None or now < self._look_at:
            return
        for connection in tuple(self._connections):
            if connection.session.deadline() <= now:
                try:
                    connection.timer(now)
                except ConnectionEnded as end:
                    self.close(connection, str(end))
        # What a connection receives only moves its deadline away.
        due = min((connection.session.deadline() for connection in self._connections), default=None)
        self._look_at = None if due is None else max(due, now + _LOOK_EVERY_S)

    def _make_room(self) -> bool:
        """Close the oldest connection that is no switch's, and return whether there was one."""
        for connection in self._connections:
            if connection.introduced is None:
                self._counters["refused-connections"] += 1
                self.close(connection, "others wait, and it has not shaken hands yet")
                return True
        return False
