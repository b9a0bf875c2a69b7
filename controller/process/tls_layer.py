"""The server's side of one TLS connection without a socket: ciphertext and clear text, in and out."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

from capstan_client.errors import CapstanError

_RECORD_BYTES: Final = 1 << 14
"""The most that a record carries (RFC 8446, section 5.1)."""


class TlsError(CapstanError, ConnectionError):
    """The connection cannot go on; ``cause`` is what OpenSSL says."""

    def __init__(self, cause: ssl.SSLError) -> None:
        super().__init__(f"TLS: {(cause.reason or str(cause)).replace('_', ' ').lower()}")
        self.cause = cause


class TlsLayer:
    """What is to be sent before the handshake is over waits for its end. Raises TlsError."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._waiting = bytearray()
        self.established = False
        """Whether the handshake is over; where the context asks for a certificate, the peer has shown a valid one."""
        self.closed = False
        """Whether the peer has said that nothing more comes."""

    def receive(self, data: bytes) -> bytes:
        """Take what came from the wire; return what it says in clear."""
        self._incoming.write(data)
        clear = bytearray()
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
                self._send_waiting()
            while chunk := self._tls.read(_RECORD_BYTES):
                clear += chunk
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.closed = True
        except ssl.SSLError as error:
            raise TlsError(error) from None
        return bytes(clear)

    def send(self, clear: bytes) -> None:
        """Have *clear* sent: `data_to_send` gives it as the wire wants it."""
        self._waiting += clear
        if self.established:
            self._send_waiting()

    def end(self) -> None:
        """Say that nothing more comes; harmless before the handshake is over."""
        if self.established:
            with suppress(ssl.SSLError):  # it also asks for the peer's own word, which nothing here waits for
                self._tls.unwrap()

    def data_to_send(self) -> bytes:
        """Return the bytes for the wire, once."""
        return self._outgoing.read()

    def _send_waiting(self) -> None:
        if self._waiting:
            self._tls.write(self._waiting)  # into memory, where there is room for all of it
            self._waiting.clear()
