"""The API behind its HTTP server, and raw clients of it."""

from __future__ import annotations

import http.client
import itertools
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from flask import Flask, Response, request

from controller.api.front.limits import FrontSettings, Limits
from controller.api.front.process import HttpFront
from controller.api.front.server import REFUSED
from tests.waiting import PATIENCE_S

ANSWER_BYTES = 1_000_000


LARGE_BYTES = 4_000_000
"""More than the kernel keeps for a connection."""


PIECE = b"x" * (1 << 16)


QUICK = Limits(window_s=0.5, head_s=0.5, linger_s=0.5, look_every_s=0.05)


PATIENT = Limits(look_every_s=0.05)


@dataclass
class Served:
    front: HttpFront
    asked: list[str]
    """Paths of the requests that came to the application."""

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.front.port), timeout=PATIENCE_S)

    def begin_connecting(self) -> socket.socket:
        """Return a client that does not wait to be connected: it may be cut off before `connect` would return."""
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self.front.port))
        connection.settimeout(PATIENCE_S)
        return connection

    def lazy(self) -> socket.socket:
        """Connect a client that keeps next to nothing in its kernel."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", self.front.port))
        return connection

    def health(self) -> float:
        """Return the seconds until /health is answered."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.front.port, timeout=PATIENCE_S)
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b"well"
        connection.close()
        return time.monotonic() - began

    def memory_kib(self) -> int:
        """Return the memory of the HTTP process, as far as it is its own, in KiB."""
        text = Path(f"/proc/{self.front.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("RssAnon:")).split()[1])

    def sockets(self) -> int:
        """Count the sockets that the HTTP process has open."""
        count = 0
        for descriptor in Path(f"/proc/{self.front.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                count += os.readlink(descriptor).startswith("socket:")
        return count


@contextmanager
def serving(limits: Limits, workers: int = 2, **settings: object) -> Iterator[Served]:
    app = Flask("slow", static_folder=None)
    asked: list[str] = []

    @app.before_request
    def note() -> None:
        asked.append(request.path)

    @app.get("/health")
    def health() -> str:
        return "well"

    @app.get("/metrics")
    def refused() -> str:
        return str(request.environ[REFUSED])

    @app.get("/answer")
    def answer() -> Response:
        return Response(bytes(ANSWER_BYTES), mimetype="application/octet-stream")

    @app.get("/large")
    def large() -> Response:
        return Response(bytes(LARGE_BYTES), mimetype="application/octet-stream")

    @app.get("/endless")
    def endless() -> Response:
        return Response(itertools.repeat(PIECE))

    @app.route("/api/v1/<path:what>", methods=["POST", "GET"])
    def taken(what: str) -> str:
        return f"{len(request.get_data())}"

    front = HttpFront(app, "127.0.0.1", 0, FrontSettings(workers, 2.0, limits, **settings))  # type: ignore[arg-type]
    front.start()
    try:
        yield Served(front, asked)
    finally:
        front.stop()


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", "")).encode()


def post(path: str, length: int, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *headers, "", "")
    return "\r\n".join(lines).encode()


def answered(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    with connection.makefile("rb") as file:
        return next_answer(file)


def next_answer(file: IO[bytes]) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the next of several answers."""
    first, *lines = [line.decode() for line in iter(file.readline, b"\r\n")]
    headers = dict(line.rstrip().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, file.read(int(headers["Content-Length"]))


def ended(connection: socket.socket) -> bool:
    """Read all that the server sent; return True once it has closed the connection."""
    try:
        while connection.recv(1 << 16):
            continue
    except ConnectionError:
        return True
    return True
