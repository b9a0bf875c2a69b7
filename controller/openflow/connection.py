"""One switch's TCP connection: a non-blocking socket under a session."""

from __future__ import annotations

import selectors
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from controller.openflow.errors import PeerError
from controller.openflow.session import Session
from controller.openflow.session_events import SessionEvent

RECEIVE_BYTES: Final = 1 << 18
UNSENT_LIMIT_BYTES: Final = 32 << 20
"""A switch that leaves this much unread is given up: about a hundred whole states of a large fabric's leaf."""


class ConnectionEnded(RuntimeError):
    """The connection cannot go on; the text says why."""


class Connection:
    """A session on a socket that a selector watches. Raises ConnectionEnded from `receive` and `flush`.

    counters, refusal: as for `Session`.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        selector: selectors.BaseSelector,
        now: float,
        counters: Counter[str],
        refusal: Callable[[int], str | None] = lambda dpid: None,
    ) -> None:
        self.session = Session(now, counters, refusal)
        self.peer = peer
        self.introduced: int | None = None
        """The datapath id under which the control plane knows of it; None: it does not."""
        self._counters = counters
        self.closed = False
        self._sock = sock
        self._selector = selector
        self._unsent = bytearray()
        self._writing = False
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ, self)

    def receive(self, now: float) -> Iterator[SessionEvent]:
        """Events of what has arrived."""
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionEnded(error.strerror or str(error)) from error
        if not data:
            raise ConnectionEnded("closed by the switch")
        try:
            yield from self.session.receive(data, now)
        except PeerError as error:
            self._counters["refused-peers"] += 1
            raise ConnectionEnded(f"no fit peer: {error}") from error

    def flush(self) -> None:
        """Send what the session has to send, as far as the socket takes it now; the rest when it can."""
        self._unsent += self.session.data_to_send()
        if not self._unsent:
            return
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ConnectionEnded(error.strerror or str(error)) from error
        del self._unsent[:sent]
        if len(self._unsent) > UNSENT_LIMIT_BYTES:
            raise ConnectionEnded(f"it does not read: {len(self._unsent)} B are unsent")
        writing = bool(self._unsent)
        if writing != self._writing:
            self._writing = writing
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if writing else 0)
            self._selector.modify(self._sock, mask, self)

    def timer(self, now: float) -> None:
        """Keep the session alive; to be called at its deadline."""
        try:
            self.session.timer(now)
        except PeerError as error:
            raise ConnectionEnded(str(error)) from error
        self.flush()

    def close(self) -> None:
        """Let go of the socket; the switch keeps what it has."""
        if not self.closed:
            self.closed = True
            self._selector.unregister(self._sock)
            self._sock.close()
