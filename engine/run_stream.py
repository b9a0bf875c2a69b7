"""Streams of events of a run's own controller, copied to those who read them here.

That controller is believed as little as its other answers (`engine.routes_runs`): what is passed on is the body of a
stream of events, below a head of ours.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final
from urllib.parse import urlsplit

import h11

from capstan_client.errors import CapstanError
from capstan_client.http import SILENCE_S
from controller.live.stream import stream_head

MOST: Final = 64
"""Readers at a time: each takes a thread and two connections."""
CONNECT_S: Final = 3.0
HEAD_S: Final = 10.0
"""Until the head of its answer is there, as a whole."""
HEAD_BYTES: Final = 1 << 14
PIECE: Final = 1 << 16
MEDIA: Final = "text/event-stream"
NO_ANSWER: Final = "the run's controller does not answer"


class StreamsError(CapstanError, RuntimeError):
    """The stream cannot be had; the text says why. ``status``: that the run's controller gave for a reason."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class RunStreams:
    """Readers of the stream of the run that is going on. A reader whose run ends is disconnected, and comes again."""

    def __init__(self, most: int = MOST) -> None:
        self._most: Final = most
        self._places: Final = threading.BoundedSemaphore(most)

    def add(self, take: Callable[[], socket.socket], api: str, target: str) -> None:
        """Send a reader the stream of events that the controller at *api* has at *target*, from a thread.

        take: gives the reader's connection. Raises StreamsError, and what *take* raises.
        """
        if not self._places.acquire(blocking=False):
            raise StreamsError(f"{self._most} readers watch the run: close another page first")
        try:
            source = _Source(api, target)
            try:
                reader = take()
            except BaseException:
                source.close()
                raise
        except BaseException:
            self._places.release()
            raise
        threading.Thread(target=self._copy, args=(source, reader), name="run-stream", daemon=True).start()

    def _copy(self, source: _Source, reader: socket.socket) -> None:
        try:
            with closing(source), reader, suppress(OSError, h11.ProtocolError):
                reader.settimeout(SILENCE_S)
                reader.sendall(stream_head())
                while data := source.next_piece():
                    reader.sendall(data)
        finally:
            self._places.release()


class _Source:
    """The answer of the controller at *api* to ``GET target``, if it is a stream of events. Raises StreamsError."""

    def __init__(self, api: str, target: str) -> None:
        parts = urlsplit(api)
        self._http: Final = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        try:
            self._connection = socket.create_connection((parts.hostname or "", parts.port or 80), CONNECT_S)
        except OSError as error:
            raise StreamsError(f"{NO_ANSWER}: {error}") from None
        try:
            head = self._ask(parts.netloc, target)
            _check_stream(head)
        except (OSError, h11.ProtocolError) as error:
            self.close()
            raise StreamsError(f"{NO_ANSWER}: {error}") from None
        except StreamsError:
            self.close()
            raise
        self._connection.settimeout(SILENCE_S)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def next_piece(self) -> bytes:
        """Return what comes next, at most `PIECE` bytes; none at the end. Raises OSError and h11.ProtocolError."""
        event = self._next_event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    def _ask(self, host: str, target: str) -> h11.Response:
        fields = [("Host", host), ("Accept", MEDIA), ("Accept-Encoding", "identity"), ("Connection", "close")]
        request = h11.Request(method="GET", target=target.encode("ascii", "replace"), headers=fields)
        self._connection.sendall(self._http.send(request) + self._http.send(h11.EndOfMessage()))
        deadline = time.monotonic() + HEAD_S
        while not isinstance(event := self._next_event(deadline), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise StreamsError(f"{NO_ANSWER}: it closed the connection")
        return event

    def _next_event(self, deadline: float | None = None) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if deadline is not None:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise StreamsError(
                        f"{NO_ANSWER}: after {HEAD_S:g} s the head of its answer was not whole"
                    )
                self._connection.settimeout(left_s)
            self._http.receive_data(self._connection.recv(PIECE))
        return event


def _check_stream(head: h11.Response) -> None:
    """Raise StreamsError for an answer that is no stream of events: a page would be run as one of ours."""
    if head.status_code != 200:
        status = head.status_code
        raise StreamsError(f"the run's controller answers with status {status}", status)
    fields = dict(head.headers)
    media = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media != MEDIA.encode() or fields.get(b"content-encoding", b"identity") != b"identity":
        raise StreamsError("the run's controller does not answer with a stream of events")
