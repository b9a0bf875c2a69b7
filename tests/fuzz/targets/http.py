"""Requests to the API's HTTP process."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Sequence

from flask import Flask

from controller.api.front.limits import FrontSettings
from controller.api.front.process import HttpFront
from tests.fuzz.target import Target


class Http(Target):
    """Requests at a running HTTP process: whatever comes, others are answered."""

    samples = (
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello",
        b"POST /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /api/v1/events?since=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n",
        b"HEAD /../health HTTP/1.0\r\nConnection: keep-alive\r\nX: " + b"y" * 500 + b"\r\n\r\n",
    )

    def __init__(self) -> None:
        app = Flask("fuzz", static_folder=None)
        app.add_url_rule("/health", view_func=lambda: "well", endpoint="health")
        app.add_url_rule(
            "/api/v1/<path:what>", view_func=lambda what: what, endpoint="x", methods=["GET", "POST"]
        )
        self._front = HttpFront(app, "127.0.0.1", 0, FrontSettings(2))
        self._front.start()
        self._pid = self._front.pid

    def run(self, messages: Sequence[bytes]) -> None:
        with (
            socket.create_connection(("127.0.0.1", self._front.port)) as connection,
            contextlib.suppress(OSError),
        ):
            for data in messages:
                connection.sendall(data)
        asked = http.client.HTTPConnection("127.0.0.1", self._front.port, timeout=30)
        asked.request("GET", "/health")
        assert asked.getresponse().read() == b"well"
        asked.close()

    def close(self) -> None:
        assert self._front.pid == self._pid, "the HTTP process has died, and was started again"
        self._front.stop()
