"""Streams of events of a run's own controller, copied to those who read them here."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from capstan_client.errors import CapstanError

MOST: Final = 64
"""Readers at a time: each takes a thread and two connections."""
CONNECT_S: Final = 3.0
SILENCE_S: Final = 25.0
"""A stream says something every 10 s: after so long it is dead."""
PIECE: Final = 1 << 16


class StreamsError(CapstanError, RuntimeError):
    """The stream cannot be had; the text says why."""


class RunStreams:
    """Readers of the stream of the run that is going on. A reader whose run ends is disconnected, and comes again."""

    def __init__(self, most: int = MOST) -> None:
        self._most: Final = most
        self._places: Final = threading.BoundedSemaphore(most)

    def add(self, take: Callable[[], socket.socket], api: str, target: str) -> None:
        """Send a reader what the controller at *api* sends for *target*, its head included, from a thread.

        take: gives the reader's connection. Raises StreamsError, and what *take* raises.
        """
        if not self._places.acquire(blocking=False):
            raise StreamsError(f"{self._most} readers watch the run: close another page first")
        try:
            source = _asked(api, target)
            try:
                reader = take()
            except BaseException:
                source.close()
                raise
        except BaseException:
            self._places.release()
            raise
        threading.Thread(target=self._copy, args=(source, reader), name="run-stream", daemon=True).start()

    def _copy(self, source: socket.socket, reader: socket.socket) -> None:
        try:
            with source, reader, suppress(OSError):
                source.settimeout(SILENCE_S)
                reader.settimeout(SILENCE_S)
                while data := source.recv(PIECE):
                    reader.sendall(data)
        finally:
            self._places.release()


def _asked(api: str, target: str) -> socket.socket:
    """Return a connection to the controller at *api* over which *target* was asked for. Raises StreamsError."""
    parts = urlsplit(api)
    head = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    try:
        connection = socket.create_connection((parts.hostname or "", parts.port or 80), CONNECT_S)
    except OSError as error:
        raise StreamsError(f"the run's controller does not answer: {error}") from None
    try:
        connection.sendall(head.encode("ascii", "replace"))
    except OSError as error:
        connection.close()
        raise StreamsError(f"the run's controller does not answer: {error}") from None
    return connection
