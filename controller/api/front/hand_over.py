"""Waitress with a door: a request's connection can be taken out of the server, to stream on it without a thread.

And with one answer for all who ask for the same at once (`collapsing`).

Waitress answers every request in one of a few threads, so a stream that never ends would hold one for ever. A view
calls ``environ[HAND_OVER]()`` and gets the connection as a socket of its own; waitress forgets about it.
"""

from __future__ import annotations

import socket
from collections.abc import Hashable
from functools import partial
from typing import Any, Final
from wsgiref.types import WSGIApplication

from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server
from waitress.task import Task, WSGITask

from controller.api.front.collapsing import LARGEST_ANSWER, Answer, CollapsingDispatcher, sameness

HAND_OVER: Final = "capstan.hand_over"


class HandOverError(RuntimeError):
    """The connection cannot be taken now; the text says why."""


class _Kept:
    """The answer to one request, once all of it has been written; None if it is not for others."""

    answer: Answer | None = None


class _Task(WSGITask):  # type: ignore[misc]
    _handed_over = False

    def __init__(self, channel: _Channel, request: Any, kept: _Kept) -> None:
        super().__init__(channel, request)
        self._kept = kept
        self._parts: list[bytes] = []

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

    def build_response_header(self) -> bytes:
        head: bytes = super().build_response_header()
        self._parts.append(head)
        return head

    def write(self, data: bytes) -> None:
        super().write(data)
        if data and (self.content_length or 0) <= LARGEST_ANSWER:
            self._parts.append(data)

    def finish(self) -> None:
        if self._handed_over:
            return
        super().finish()
        body = sum(map(len, self._parts[1:]))
        if not self.chunked_response and body == (self.content_length or 0 if self.has_body else 0):
            self._kept.answer = Answer(tuple(self._parts), self.close_on_finish)


class _Repetition(Task):  # type: ignore[misc]
    """The answer to another's request, sent to this one's connection."""

    def __init__(self, channel: _Channel, request: Any, answer: Answer) -> None:
        super().__init__(channel, request)
        self._answer = answer

    def execute(self) -> None:
        self.wrote_header = True
        for part in self._answer.parts:
            self.channel.write_soon(part)
        self.close_on_finish = self._answer.ends


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose request can be answered, or be given the answer to another one.

    Waitress's `service` makes its task first of all. Once it has answered, another thread may already have the
    connection's next request: nothing of the connection is touched after it.
    """

    def sameness(self) -> Hashable | None:
        return sameness(self.requests[0])

    def answer(self) -> Answer | None:
        kept = _Kept()
        self.task_class = partial(_Task, kept=kept)
        super().service()
        return kept.answer

    def repeat(self, answer: Answer) -> None:
        self.task_class = partial(_Repetition, answer=answer)
        super().service()


def make_server(
    app: WSGIApplication, listener: socket.socket, threads: int, max_body_bytes: int
) -> BaseWSGIServer:
    """A server on a socket that listens; not yet running."""
    server: BaseWSGIServer = create_server(
        app,
        sockets=[listener],
        ident="capstan",
        connection_limit=1000,
        max_request_body_size=max_body_bytes,
        _dispatcher=CollapsingDispatcher(threads),
        asyncore_use_poll=True,  # select() knows descriptors below 1024 only, and streams take many
    )
    server.channel_class = _Channel
    return server
