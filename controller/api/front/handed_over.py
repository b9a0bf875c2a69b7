"""A TLS connection whose client is served by another process from now on: bytes between it and a pair of sockets.

A connection in clear is handed over as it is. TLS has its state here, so the other process gets one end of a pair,
reads and writes it like a client's connection, and ends it in the same way.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from controller.process.tls_layer import TlsError, TlsLayer

_PIECE: Final = 1 << 16
_UNSENT_BYTES: Final = 1 << 16
"""More is not read from the other process before the client has taken some of it."""


class HandedOver(asyncio.Protocol):
    """Takes the place of a transport's protocol.

    Args:
        transport: the client's, in clear: it carries what *tls* makes.
        ours: our end of the pair; it is closed with the connection.
    """

    def __init__(self, transport: asyncio.Transport, tls: TlsLayer, ours: socket.socket) -> None:
        self._transport = transport
        self._tls = tls
        self._ours = ours
        self._loop = asyncio.get_running_loop()
        ours.setblocking(False)
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        transport.set_protocol(self)
        transport.resume_reading()
        self._loop.add_reader(ours, self._pass_on)

    def data_received(self, data: bytes) -> None:
        try:
            clear = self._tls.receive(data)
        except TlsError:
            self._transport.abort()
            return
        if clear:
            with suppress(OSError):  # a client has nothing more to say that would have to wait for room
                self._ours.send(clear)
        if self._tls.closed:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.remove_reader(self._ours)
        self._ours.close()

    def pause_writing(self) -> None:
        self._loop.remove_reader(self._ours)

    def resume_writing(self) -> None:
        self._loop.add_reader(self._ours, self._pass_on)

    def _pass_on(self) -> None:
        try:
            data = self._ours.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._tls.send(data)
        else:
            self._loop.remove_reader(self._ours)
            self._tls.end()
        self._transport.write(self._tls.data_to_send())
        if not data:
            self._transport.close()
