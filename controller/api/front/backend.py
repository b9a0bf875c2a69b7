"""The controller's side of its HTTP process: a thread for each connection from there, which runs the application."""

from __future__ import annotations

import json
import logging
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from io import BytesIO
from typing import IO, Any, Final
from wsgiref.types import WSGIApplication, WSGIEnvironment

from capstan_client.errors import CapstanError
from controller.api.front.frames import (
    PIECE,
    Kind,
    WireError,
    frame,
    head_frame,
    read_exactly,
    read_frame,
    read_taken,
)

_LOG: Final = logging.getLogger("capstan.api")
HAND_OVER: Final = "capstan.hand_over"
"""Of the environment: a view that calls it gets the client's connection as a socket of its own, to stream on it
without a thread; what the view returns is not sent then. Raises HandOverError."""
IN_MEMORY: Final = 1 << 20
"""Bytes of a body that are kept in memory; what is longer waits in a file."""


class HandOverError(CapstanError, RuntimeError):
    """The connection cannot be taken now; the text says why."""


def serve_control(control: socket.socket, app: WSGIApplication) -> None:
    """Serve what the HTTP process connects, until it ends."""
    while True:
        try:
            word, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            return
        if not word:
            return
        for descriptor in descriptors:
            connection = socket.socket(fileno=descriptor)
            threading.Thread(target=serve, args=(connection, app), name="api", daemon=True).start()


ReadTaken = Callable[[socket.socket], socket.socket | str]
"""Returns a client's connection that is handed over, or why it is not."""


def serve(connection: socket.socket, app: WSGIApplication, read: ReadTaken = read_taken) -> None:
    """Answer one request after the other, until the other side closes. read: as the other side hands over."""
    with connection, suppress(OSError):
        while True:
            kind, payload = read_frame(connection)
            if kind != Kind.REQUEST:
                raise WireError(f"{kind.name} came instead of REQUEST")
            _answer(connection, json.loads(payload), app, read)


def _answer(
    connection: socket.socket, environ: WSGIEnvironment, app: WSGIApplication, read: ReadTaken
) -> None:
    """Answer a request. Raise OSError if the answer cannot be brought to its end: the connection is of no
    more use.
    """
    with _body(connection, int(environ.get("CONTENT_LENGTH") or 0)) as body:
        environ |= {
            "wsgi.version": (1, 0),
            "wsgi.input": body,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
            HAND_OVER: lambda: _take(connection, read),
        }
        outgoing = _Outgoing(connection)

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            outgoing.head = head_frame(status, headers)
            return outgoing.write

        pieces: Iterable[bytes] = ()
        try:
            pieces = app(environ, start_response)
            for piece in pieces:
                outgoing.write(piece)
            outgoing.end()
        except OSError:
            raise
        except Exception as error:
            _LOG.exception("%s %s broke off", environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"))
            raise WireError("the answer broke off") from error
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()


def _body(connection: socket.socket, size: int) -> IO[bytes]:
    """Return all of a request's body, read to its end, whether the view reads it or not: the next request follows."""
    if size <= IN_MEMORY:
        return BytesIO(read_exactly(connection, size))
    with ExitStack() as on_error:
        file = on_error.enter_context(tempfile.TemporaryFile())
        while size:
            part = read_exactly(connection, min(size, PIECE))
            file.write(part)
            size -= len(part)
        file.seek(0)
        on_error.pop_all()
    return file


def _take(connection: socket.socket, read: ReadTaken) -> socket.socket:
    """Return the client's connection, out of the HTTP server. Raises HandOverError."""
    connection.sendall(frame(Kind.HANDOVER))
    taken = read(connection)
    if isinstance(taken, str):
        raise HandOverError(taken)
    return taken


class _Outgoing:
    """An answer on its way: gathered, since each write wakes the other process."""

    def __init__(self, connection: socket.socket) -> None:
        self.head = b""
        self._connection = connection
        self._gathered: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send a part of the answer, as WSGI's `write`."""
        for begin in range(0, len(data), PIECE):
            self._put(frame(Kind.DATA, data[begin : begin + PIECE]))

    def end(self) -> None:
        self._put(frame(Kind.END))
        self._flush()

    def _put(self, data: bytes) -> None:
        if self.head:
            self._gathered.append(self.head)
            self.head = b""
        self._gathered.append(data)
        self._size += len(data)
        if self._size >= PIECE:
            self._flush()

    def _flush(self) -> None:
        self._connection.sendall(b"".join(self._gathered))
        self._gathered.clear()
        self._size = 0
