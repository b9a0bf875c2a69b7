"""What is below HTTP: a client's TCP connection, in clear or by TLS."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Final

import h11

from capstan_client.errors import CapstanError
from controller.api.front.environ import environ_of
from controller.api.front.handed_over import HandedOver
from controller.api.front.pace import kernel_queue_bytes
from controller.process.tls_layer import TlsError, TlsLayer

_PASS_OVER_S: Final = 0.02
"""Between two reads, of 256 KiB at most, of what is thrown away."""
_RESET: Final = struct.pack("ii", 1, 0)


class TakeError(CapstanError, RuntimeError):
    """The connection cannot be taken now; the text says why."""


class ClientTransport:
    """tls: between HTTP and the wire; None: HTTP in clear. Does nothing before `open` and after `lost`."""

    def __init__(self, tls: TlsLayer | None) -> None:
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self.given = 0
        """Bytes that the transport was given since the connection began."""

    def open(self, transport: asyncio.Transport, unsent_bytes: int) -> None:
        """Use *transport*, which asks for a pause where so many bytes are unsent."""
        self._transport = transport
        transport.set_write_buffer_limits(high=unsent_bytes)

    def lost(self) -> None:
        """Note that the connection is no more."""
        self._transport = None

    @property
    def encrypted(self) -> bool:
        """Return whether the client speaks TLS."""
        return self._tls is not None

    @property
    def host(self) -> str:
        """Return the client's address, without its port; "" if it is not known."""
        peer = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    @property
    def gone(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self._transport is None or self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Return the bytes of answers that are still here."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def untaken(self) -> int:
        """Return bytes of answers that the client has not taken: those here, and those that the kernel keeps for it."""
        if self._transport is None:
            return 0
        return self.unsent + kernel_queue_bytes(self._transport.get_extra_info("socket"))

    def environ(self, request: h11.Request) -> dict[str, str]:
        """Return the WSGI environment of a request of this client."""
        assert self._transport is not None
        extra = self._transport.get_extra_info
        scheme = "http" if self._tls is None else "https"
        return environ_of(request, extra("peername"), extra("sockname"), scheme)

    def receive(self, data: bytes) -> bytes:
        """Return what the client says in clear; its handshake is answered."""
        if self._tls is None:
            return data
        assert self._transport is not None
        try:
            clear = self._tls.receive(data)
        except TlsError:
            self._transport.write(self._tls.data_to_send())  # an alert says why
            self._transport.close()
            return b""
        if answer := self._tls.data_to_send():
            self.given += len(answer)
            self._transport.write(answer)
        if self._tls.closed:
            self.close()
        return clear

    def write(self, data: bytes) -> None:
        """Send bytes, encrypted where the client speaks TLS; a client that is gone gets nothing."""
        if self._transport is not None:
            if self._tls is not None:
                self._tls.send(data)
                data = self._tls.data_to_send()
            self.given += len(data)
            self._transport.write(data)

    def write_eof(self) -> None:
        """Say that no more answers come; by TLS the answer's length says where it ends."""
        if self._transport is not None and self._tls is None:
            self._transport.write_eof()

    def pause_reading(self) -> None:
        """Leave what the client sends in the kernel's buffer."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read what the client sends again."""
        if not self.gone:
            assert self._transport is not None
            self._transport.resume_reading()

    def pass_over(self) -> None:
        """Read on after a refusal, slowly: closed over unread data, the client would lose the refusal."""
        if not self.gone:
            self.pause_reading()
            asyncio.get_running_loop().call_later(_PASS_OVER_S, self.resume_reading)

    def take(self) -> socket.socket:
        """Return a duplicate of the connection, which belongs to the caller from now on. Raises TakeError."""
        if self._transport is None or self.unsent:
            raise TakeError(
                "answers to earlier requests on this connection are still on their way: use a new one"
            )
        if self._tls is not None:
            ours, theirs = socket.socketpair()
            transport, self._transport = self._transport, None
            HandedOver(transport, self._tls, ours)
            return theirs
        taken: socket.socket = self._transport.get_extra_info("socket").dup()
        self._transport.abort()  # closes the server's descriptor; the connection lives on in the other
        return taken

    def close(self) -> None:
        """End the connection once all is sent."""
        if self._transport is not None:
            if self._tls is not None:
                self._tls.end()
                self._transport.write(self._tls.data_to_send())
            self._transport.close()

    def abort(self) -> None:
        """Reset it without sending what is left; the kernel keeps none of it."""
        if self._transport is not None:
            with suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _RESET
                )
            self._transport.abort()
