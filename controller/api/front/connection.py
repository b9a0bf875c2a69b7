"""One client's connection: HTTP/1.1 by h11, one request at a time."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import time
from collections.abc import Hashable
from email.utils import formatdate
from http import HTTPStatus
from typing import IO, Final, Protocol

import h11

from controller.api.front.environ import environ_of

MOST_HEAD_BYTES: Final = 1 << 16
IN_MEMORY: Final = 1 << 20
"""Bytes of a body that are kept in memory; what is longer waits in a file."""
WAITING_BYTES: Final = 1 << 20
"""Of an answer that its client has not taken yet; who makes more waits until it has."""
Headers = list[tuple[str, str]]


class TakeError(RuntimeError):
    """The connection cannot be taken now; the text says why."""


class Listener(Protocol):
    """What a connection tells the server."""

    max_body_bytes: int

    def came(self, connection: Connection) -> bool:
        """It is there; False: there is no room for it."""

    def asks(self, connection: Connection) -> None:
        """It has a whole request."""

    def went(self, connection: Connection) -> None:
        """It is closed."""


class Connection(asyncio.Protocol):
    """``environ``, ``body`` and ``body_bytes`` are of the request that waits or is being answered."""

    def __init__(self, server: Listener) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.environ: dict[str, str] = {}
        self.body: IO[bytes] | None = None
        self.body_bytes = 0
        self.answering = False
        self._refused = False
        self.moved_at = time.monotonic()
        """When the client last sent or took something."""
        self._unsent = 0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WAITING_BYTES)
        if not self._server.came(self):
            self._refuse(503, "too many connections: try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._forget_body()
        self._server.went(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._refused:  # read all the same: closed over unread data, the connection would lose the refusal
            return
        self.moved_at = time.monotonic()
        self._http.receive_data(data)
        self._listen()

    def eof_received(self) -> bool:
        if self._refused:
            return False
        self._http.receive_data(b"")
        self._listen()
        return self.answering  # it may have said all that it wants to say, and wait for the answer

    # What the server asks and does

    @property
    def gone(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Bytes of answers that the client has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def same(self) -> Hashable | None:
        """Equal for requests that may have one answer; None: this one's answer is for nobody else."""
        assert self._request is not None
        if self._request.method != b"GET" or self.body_bytes:
            return None
        return self._request.target, self._request.http_version, tuple(sorted(self._request.headers))

    def stalled(self, now: float, seconds: float) -> bool:
        """Whether the client has neither sent nor taken anything for so long, although it is its turn."""
        unsent = self.unsent
        if unsent != self._unsent or (self.answering and not unsent):
            self._unsent, self.moved_at = unsent, now
        return now - self.moved_at > seconds

    def take(self) -> socket.socket:
        """A duplicate of the connection, which is nobody else's from now on. Raises TakeError."""
        if self._transport is None or self.unsent:
            raise TakeError(
                "answers to earlier requests on this connection are still on their way: use a new one"
            )
        taken: socket.socket = self._transport.get_extra_info("socket").dup()
        self._transport.abort()  # closes the server's descriptor; the connection lives on in the other
        return taken

    def answer(self, status: str, headers: Headers, pieces: list[bytes]) -> None:
        """All of an answer at once. status: as WSGI has it, "200 OK"."""
        self._write(self._head(status, headers) + self._data(b"".join(pieces)) + self._end())
        self._next()

    def begin_answer(self, status: str, headers: Headers) -> None:
        """The head of an answer whose data come later."""
        self._write(self._head(status, headers))

    async def continue_answer(self, data: bytes) -> None:
        """Send data; returns when there is room for more, or the client has gone."""
        self._write(self._data(data))
        await self._writable.wait()

    def end_answer(self) -> None:
        self._write(self._end())
        self._next()

    def fail(self, status: int, detail: str) -> None:
        """Answer that there is no answer."""
        title = HTTPStatus(status).phrase
        body = json.dumps(
            {"type": "about:blank", "title": title, "status": status, "detail": detail}
        ).encode()
        headers = [("Content-Type", "application/problem+json"), ("Content-Length", str(len(body)))]
        self.answer(f"{status} {title}", headers, [body])

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it without sending what is left: what was sent is no whole answer."""
        if self._transport is not None:
            self._transport.abort()

    # Between requests

    def _listen(self) -> None:
        """Make of what was heard all that can be made of it now."""
        try:
            while not (self.answering or self._refused or self.gone):
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                        self._write(self._http.send(go_on) or b"")
                    return
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._keep(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self._whole()
                else:  # the client has closed
                    self.close()
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))

    def _begin(self, request: h11.Request) -> None:
        self._request = request
        self.body_bytes = 0
        length = next((int(value) for name, value in request.headers if name == b"content-length"), 0)
        if length > self._server.max_body_bytes:
            self._too_large()

    def _keep(self, data: bytes) -> None:
        self.body_bytes += len(data)
        if self.body_bytes > self._server.max_body_bytes:
            self._too_large()
            return
        if self.body is None:
            self.body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 open until it is answered
        self.body.write(data)

    def _too_large(self) -> None:
        self._refuse(413, f"a request's body may have {self._server.max_body_bytes} B")

    def _whole(self) -> None:
        assert self._request is not None
        assert self._transport is not None
        if self.body is not None:
            self.body.seek(0)
        self.environ = environ_of(
            self._request,
            self.body_bytes,
            self._transport.get_extra_info("peername"),
            self._transport.get_extra_info("sockname"),
        )
        self.answering = True
        self._transport.pause_reading()
        self._server.asks(self)

    def _next(self) -> None:
        """The answer is on its way; the next request may have come with the last."""
        self._forget_body()
        self.answering = False
        self.moved_at = time.monotonic()
        if self.gone:
            return
        assert self._transport is not None
        if self._refused:
            self._transport.write_eof()
            return
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self.close()
            return
        self._http.start_next_cycle()
        self._transport.resume_reading()
        self._listen()

    def _refuse(self, status: int, detail: str) -> None:
        """The request is wrong, and where the next one would begin is not known."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refused = True
            self.fail(status, detail)
        else:
            self.close()

    def _forget_body(self) -> None:
        if self.body is not None:
            self.body.close()
            self.body = None

    # To the client

    def _head(self, status: str, headers: Headers) -> bytes:
        code, _, reason = status.partition(" ")
        head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        head += [(b"Date", formatdate(usegmt=True).encode()), (b"Server", b"capstan")]
        return self._http.send(
            h11.Response(status_code=int(code), headers=head, reason=reason.encode("latin-1"))
        ) or b""  # fmt: skip

    def _data(self, data: bytes) -> bytes:
        return (self._http.send(h11.Data(data=data)) or b"") if data else b""

    def _end(self) -> bytes:
        return self._http.send(h11.EndOfMessage()) or b""

    def _write(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)
