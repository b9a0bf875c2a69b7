"""Waitress with a door: a request's connection can be taken out of the server, to stream on it without a thread.

Waitress answers every request in one of a few threads, so a stream that never ends would hold one for ever. A view
calls ``environ[HAND_OVER]()`` and gets the connection as a socket of its own; waitress forgets about it.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from flask import Flask
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, MultiSocketServer, create_server
from waitress.task import WSGITask

HAND_OVER: Final = "capstan.hand_over"


class HandOverError(RuntimeError):
    """The connection cannot be taken now; the text says why."""


class _Task(WSGITask):  # type: ignore[misc]
    _handed_over = False

    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[HAND_OVER] = self._hand_over
        return environ

    def _hand_over(self) -> socket.socket:
        """The connection; what the view returns is not sent. Raises HandOverError."""
        if self.channel.total_outbufs_len:
            raise HandOverError(
                "answers to earlier requests on this connection are still on their way: use a new one"
            )
        connection: socket.socket = self.channel.socket.dup()
        self._handed_over = True
        self.close_on_finish = True  # closes waitress's descriptor, not the connection: ours is another
        return connection

    def finish(self) -> None:
        if not self._handed_over:
            super().finish()


class _Channel(HTTPChannel):  # type: ignore[misc]
    task_class = _Task


def make_server(
    app: Flask, address: str, port: int, threads: int, max_body_bytes: int
) -> BaseWSGIServer | MultiSocketServer:
    """A server that listens, not yet running. Raises OSError if the address cannot be had."""
    server = create_server(
        app,
        host=address,
        port=port,
        threads=threads,
        ident="capstan",
        connection_limit=1000,
        max_request_body_size=max_body_bytes,
        asyncore_use_poll=True,  # select() knows descriptors below 1024 only, and streams take many
    )
    for one in server.map.values() if isinstance(server, MultiSocketServer) else (server,):
        if isinstance(one, BaseWSGIServer):
            one.channel_class = _Channel
    return server
