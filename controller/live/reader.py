"""One reader of the stream: its connection, what waits for it, and what is half sent."""

from __future__ import annotations

import socket
from typing import Final

from controller.live.backlog import Backlog

SEND_BUFFER_BYTES: Final = 65536
"""Of the kernel: what is in it can no longer be replaced by something newer."""
STALLED_S: Final = 30.0
"""A reader that takes nothing for so long is given up."""
_MOST_READ: Final = 65536


class Reader:
    """Not thread-safe: belongs to the stream's thread.

    head: bytes that come before the stream (the answer's head). cursor: of the last event that it received.
    """

    def __init__(self, connection: socket.socket, head: bytes, backlog: Backlog, now: float) -> None:
        self.connection = connection
        self.backlog = backlog
        self.cursor = 0
        self.sent_bytes = 0
        self._out = memoryview(head)
        self._moved = now
        connection.setblocking(False)
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def blocked(self) -> bool:
        """Return whether something is half sent."""
        return bool(self._out)

    def beat(self) -> None:
        """Say that the stream lives, unless something is on its way."""
        if not self._out and not self.backlog:
            self._out = memoryview(b": \n\n")

    def flush(self, now: float) -> None:
        """Send what the kernel takes. Raises OSError when the reader is gone, or takes nothing for STALLED_S."""
        while True:
            if not self._out:
                self._moved = now
                if not self.backlog:
                    return
                self._out = memoryview(self.backlog.take())
            try:
                sent = self.connection.send(self._out)
            except BlockingIOError:
                if now - self._moved > STALLED_S:
                    raise TimeoutError(f"nothing was taken for {STALLED_S:g} s") from None
                return
            self._moved = now
            self.sent_bytes += sent
            self._out = self._out[sent:]

    def read(self) -> None:
        """Discard what the reader sent. Raises OSError if it has closed the stream."""
        try:
            if not self.connection.recv(_MOST_READ):
                raise ConnectionResetError("the reader closed the stream")
        except BlockingIOError:
            return
