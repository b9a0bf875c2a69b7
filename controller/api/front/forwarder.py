"""The HTTP process's application: has the controller answer, over one connection for each of its threads."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

from controller.api.front.hand_over import HAND_OVER, HandOverError
from controller.api.front.wire import (
    PIECE,
    Kind,
    WireError,
    frame,
    read_frame,
    request_frame,
    send_taken,
)

GONE: Final = (
    b'{"type": "about:blank", "title": "Service Unavailable", "status": 503, '
    b'"detail": "the controller did not answer: it is ending; ask again"}'
)


class Forwarder:
    """A WSGI application. ``control``: where the controller takes connections from us, as descriptors."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._of_thread = threading.local()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        """The controller's answer, as it comes; 503 if there is none."""
        try:
            connection = self._connection()
            self._send(connection, environ)
            head = self._head(connection, environ)
        except OSError:
            self._drop()
            start_response(
                "503 Service Unavailable",
                [("Content-Type", "application/problem+json"), ("Content-Length", str(len(GONE)))],
            )
            return iter((GONE,))
        status, headers = json.loads(head)
        start_response(status, [(name, value) for name, value in headers])
        return self._body(connection)

    def _connection(self) -> socket.socket:
        """This thread's."""
        found: socket.socket | None = getattr(self._of_thread, "connection", None)
        if found is None:
            found, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._control, [b"n"], [theirs.fileno()])
            self._of_thread.connection = found
        return found

    def _drop(self) -> None:
        """What the connection would say next is not known any more: the next request gets another one."""
        found: socket.socket | None = getattr(self._of_thread, "connection", None)
        self._of_thread.connection = None
        if found is not None:
            found.close()

    @staticmethod
    def _send(connection: socket.socket, environ: WSGIEnvironment) -> None:
        connection.sendall(request_frame(environ))
        left = int(environ.get("CONTENT_LENGTH") or 0)
        while left:
            part = environ["wsgi.input"].read(min(left, PIECE))
            if not part:
                raise WireError("the request's body is shorter than it says")
            connection.sendall(part)
            left -= len(part)

    @staticmethod
    def _head(connection: socket.socket, environ: WSGIEnvironment) -> bytes:
        while True:
            kind, payload = read_frame(connection)
            if kind == Kind.HEAD:
                return payload
            if kind != Kind.TAKE:
                raise WireError(f"{kind.name} came before HEAD")
            try:
                taken: socket.socket = environ[HAND_OVER]()
            except HandOverError as error:
                connection.sendall(frame(Kind.KEPT, str(error).encode()))
            else:
                with taken:
                    send_taken(connection, taken)

    def _body(self, connection: socket.socket) -> Iterator[bytes]:
        """What follows a head. Raises WireError in the middle of it if the controller breaks off."""
        whole = False
        try:
            while True:
                kind, payload = read_frame(connection)
                if kind == Kind.END:
                    whole = True
                    return
                yield payload
        finally:
            if not whole:  # or the client has gone, and nobody reads on
                self._drop()
