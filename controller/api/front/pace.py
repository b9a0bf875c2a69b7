"""A least rate, over windows of time."""

from __future__ import annotations

import socket
import struct

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Pace:
    """Judges bytes that a peer moves while it is its turn. Pure: time is passed in, in seconds."""

    def __init__(self, window_s: float, least_bytes_per_s: float) -> None:
        self._window_s = window_s
        self._least_bytes = window_s * least_bytes_per_s
        self._since: float | None = None
        self._moved_before = 0

    def rest(self) -> None:
        """Wait: it is not the peer's turn, and the next window begins when it is."""
        self._since = None

    def too_slow(self, now: float, moved: int) -> bool:
        """Return True if a window has ended in which too little moved. *moved*: bytes since the connection began."""
        if self._since is not None and now - self._since < self._window_s:
            return False
        slow = self._since is not None and moved - self._moved_before < self._least_bytes
        self._since, self._moved_before = now, moved
        return slow


def kernel_queue_bytes(connection: socket.socket) -> int:
    """Return how many bytes the kernel keeps that the other end has not acknowledged; 0 if it does not say."""
    if fcntl is None:
        return 0
    try:
        queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # a socket that was closed meanwhile
        return 0
    return int(struct.unpack("i", queued)[0])
