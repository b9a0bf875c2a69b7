"""One switch's connection: a non-blocking TCP socket, TLS where it is asked for, and a session above them."""

from __future__ import annotations

import math
import selectors
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from capstan_client.errors import CapstanError
from controller.openflow.errors import PeerError
from controller.openflow.packet_allowance import PacketAllowance
from controller.openflow.replies import ReplyRoom
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import SessionEvent
from controller.openflow.tls import TlsLayer

RECEIVE_BYTES: Final = 1 << 12
"""Read at a time: after some fifty packets of one switch (half a millisecond), another's mode signal has its turn."""
UNREAD_S: Final = 30.0
"""A switch that sends, and takes nothing for so long of what waits for it, is given up."""
UNSENT_LIMIT_BYTES: Final = 32 << 20
"""A switch that leaves this much unread is given up: about a hundred whole states of a large fabric's leaf."""


class ConnectionEnded(CapstanError, RuntimeError):
    """The connection cannot go on; the text says why."""


class SwitchConnection:
    """A session on a socket that a selector watches. Raises ConnectionEnded from `receive` and `flush`.

    counters, room: as for `OpenFlowSession`.
    refusal: why a switch with this datapath id and this name in its certificate ("": none) may not connect, or None.
    tls: what carries its bytes; None: they go as they are.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        selector: selectors.BaseSelector,
        now: float,
        *,
        counters: Counter[str],
        refusal: Callable[[int, str], str | None] = lambda dpid, name: None,
        tls: TlsLayer | None = None,
        room: ReplyRoom | None = None,
    ) -> None:
        self.session = OpenFlowSession(
            now, counters, lambda dpid: refusal(dpid, "" if tls is None else tls.peer_name), room
        )
        self._tls = tls
        self.allowance = PacketAllowance(now)
        self.peer = peer
        self.introduced: int | None = None
        """The datapath id under which the control plane knows of it; None: it does not."""
        self._counters = counters
        self.closed = False
        self._sock = sock
        self._selector = selector
        self._unsent = bytearray()
        self._writing = False
        self._reading = True
        self._received_at = now
        self._took_at = now
        """When it last took something of what waited, as of what was received then; or nothing waited."""
        self._received = 0.0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ, self)

    def recent_bytes(self, now: float) -> float:
        """Return what has come by it of late: each byte counts half as much after a second."""
        return self._received * math.exp2(self._received_at - now)

    @property
    def shaking_hands(self) -> bool:
        """Return whether TLS is not established yet: what it receives costs up to a millisecond."""
        return self._tls is not None and not self._tls.established

    def receive(self, now: float) -> Iterator[SessionEvent]:
        """Yield the events of what has arrived."""
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise ConnectionEnded(error.strerror or str(error)) from error
        if not data:
            raise ConnectionEnded("closed by the switch")
        self._received = self.recent_bytes(now) + len(data)
        self._received_at = now
        if not self._unsent:
            self._took_at = now
        elif now - self._took_at > UNREAD_S:
            raise ConnectionEnded(f"it does not read: {len(self._unsent)} B have waited for {UNREAD_S:g} s")
        try:
            if self._tls is not None:
                data = self._tls.receive(data)
            yield from self.session.receive(data, now)
        except PeerError as error:
            self._counters["refused-peers"] += 1
            self._send_alert()
            raise ConnectionEnded(f"no fit peer: {error}") from error
        if self._tls is not None and self._tls.closed:
            raise ConnectionEnded("closed by the switch")

    def flush(self) -> None:
        """Send what the session has to send, as far as the socket takes it now; the rest when it can."""
        data = self.session.data_to_send()
        if self._tls is not None:
            self._tls.send(data)
            data = self._tls.data_to_send()
        self._unsent += data
        if not self._unsent:
            return
        try:
            sent = self._sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ConnectionEnded(error.strerror or str(error)) from error
        del self._unsent[:sent]
        if sent:
            self._took_at = self._received_at
        if len(self._unsent) > UNSENT_LIMIT_BYTES:
            raise ConnectionEnded(f"it does not read: {len(self._unsent)} B are unsent")
        writing = bool(self._unsent)
        if writing != self._writing:
            self._watch(self._reading, writing)

    def _send_alert(self) -> None:
        """Say why, if there is room at once: the switch's log has it then."""
        if self._tls is not None and not self._unsent:
            with suppress(OSError):
                self._sock.send(self._tls.data_to_send())

    def timer(self, now: float) -> None:
        """Keep the session alive; to be called at its deadline."""
        try:
            self.session.timer(now)
        except PeerError as error:
            raise ConnectionEnded(str(error)) from error
        self.flush()

    def pause_reading(self) -> None:
        """Leave what comes in the kernel's buffer, until `resume_reading`."""
        if not self.closed:
            self._watch(False, self._writing)

    def resume_reading(self) -> None:
        """Read again; no error if it is closed."""
        if not self.closed:
            self._watch(True, self._writing)

    def _watch(self, reading: bool, writing: bool) -> None:
        before, after = _mask(self._reading, self._writing), _mask(reading, writing)
        self._reading, self._writing = reading, writing
        if before == after:
            return
        if not before:
            self._selector.register(self._sock, after, self)
        elif not after:
            self._selector.unregister(self._sock)
        else:
            self._selector.modify(self._sock, after, self)

    def close(self) -> None:
        """Close the socket; the switch keeps what it has."""
        if not self.closed:
            self.closed = True
            self.session.end()
            if _mask(self._reading, self._writing):
                self._selector.unregister(self._sock)
            self._sock.close()


def _mask(reading: bool, writing: bool) -> int:
    return (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
