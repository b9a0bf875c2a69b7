"""One client's connection: HTTP/1.1 by h11, one request at a time, at a pace that lets others live."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Hashable
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol

import h11

from controller.api.front.body import Body, BodyError, BodyRoom
from controller.api.front.client_transport import ClientTransport
from controller.api.front.environ import head_bytes, set_length
from controller.api.front.limits import Limits
from controller.api.front.pace import Pace
from controller.api.problems import MEDIA, ProblemError, problem_document
from controller.process.tls_layer import TlsLayer

MOST_HEAD_BYTES: Final = 1 << 16
_HEAD_TOO_LONG: Final = f"the head of a request has at most {MOST_HEAD_BYTES >> 10} KiB: leave headers out"
Headers = list[tuple[str, str]]


class Listener(Protocol):
    """What a connection asks of the server, and says to it."""

    limits: Limits
    body_room: BodyRoom
    refused: Counter[str]
    """Requests that were refused, by status."""

    def came(self, connection: Connection) -> None:
        """Note that it is there. Raise ProblemError if there is no room for it."""

    def check(self, environ: dict[str, str]) -> None:
        """Raise ProblemError for a request that may not be."""

    def most_body_bytes(self, environ: dict[str, str]) -> int:
        """Return how long the body of such a request may be."""

    def asks(self, connection: Connection) -> None:
        """Note that it has a whole request."""

    def wrote(self, connection: Connection) -> None:
        """Note that its client has more to take than it should."""

    def went(self, connection: Connection) -> None:
        """Note that it is closed."""


class Connection(asyncio.Protocol):
    """``environ`` and ``body`` are of the request that comes in, waits or is being answered.

    tls: between HTTP and the wire; None: HTTP in clear.
    """

    def __init__(self, server: Listener, tls: TlsLayer | None = None) -> None:
        now = time.monotonic()
        self._server = server
        self._client = ClientTransport(tls)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._request: h11.Request | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.environ: dict[str, str] = {}
        self.body: Body | None = None
        self.host = ""
        """The client's address, without its port."""
        self.answering = False
        self.moved_at = now  # when the client last took something of an answer, or there was nothing to take
        self._forbidden: ProblemError | None = None  # why the request that comes in will be refused
        self._held = False  # whether the next request waits until more of the answers before has been taken
        self._listening = False
        self._head_since: float | None = now
        self._idle_since = now
        self._refused_at: float | None = None
        self._taken = 0
        self._received = 0
        limits = server.limits
        self._taking = Pace(limits.window_s, limits.least_bytes_per_s)
        self._sending = Pace(limits.window_s, limits.least_bytes_per_s)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client.open(transport, self._server.limits.unsent_bytes)
        self.host = self._client.host
        try:
            self._server.came(self)
        except ProblemError as error:
            self._refuse(error.status, error.detail)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.lost()
        self._writable.set()
        self._forget_body()
        self._server.went(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._held:
            self._held = False
            self._go_on()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        data = self._client.receive(data)
        if self._refused_at is not None:
            self._client.pass_over()
        if self._refused_at is not None or not data:
            return
        self._http.receive_data(data)
        self._listen()

    def eof_received(self) -> bool:
        if self._refused_at is not None or self.gone:
            return False
        self._http.receive_data(b"")
        self._listen()
        return (
            self.answering or self._held
        )  # it may have said all that it wants to say, and wait for the answer

    # What the server asks and does

    @property
    def gone(self) -> bool:
        """Return whether the client is no more."""
        return self._client.gone

    @property
    def unsent(self) -> int:
        """Return the bytes of answers that are still here."""
        return self._client.unsent

    @property
    def waiting_since(self) -> float | None:
        """Return since when it waits for a request, seconds; None if it has one, or has something to take."""
        if self.gone or self.answering or self._held or self.unsent or self._http.their_state is not h11.IDLE:
            return None
        return self._idle_since

    def same(self) -> Hashable | None:
        """Return what is equal for requests that may share a response; None if this one's is for its client alone."""
        assert self._request is not None
        if self._request.method != b"GET" or (self.body is not None and self.body.size):
            return None
        return self._request.target, self._request.http_version, tuple(sorted(self._request.headers))

    def look(self, now: float) -> None:
        """End the connection, or refuse its request, if the client is slower than it may be."""
        limits = self._server.limits
        if self._refused_at is not None:
            if now - self._refused_at > limits.linger_s:
                self.abort()
        elif untaken := self._client.untaken():
            self._look_at_taking(now, self._client.given - untaken)
            return
        elif self.answering or self.gone:
            pass
        elif self._http.their_state is h11.SEND_BODY:
            if self._sending.too_slow(now, self._received):
                self._refuse(
                    408,
                    f"the body came more slowly than {limits.least_bytes_per_s:g} B/s for {limits.window_s:g} s: "
                    "send it again over a better connection",
                )
        elif self._head_since is not None:
            if now - self._head_since > limits.head_s:
                self._end_head()
        elif now - self._idle_since > limits.idle_s:
            self.close()
        self._taking.rest()
        self.moved_at = now

    def _look_at_taking(self, now: float, taken: int) -> None:
        if taken > self._taken:
            self._taken, self.moved_at = taken, now
        if self._taking.too_slow(now, taken):
            self.abort()

    def take(self) -> socket.socket:
        """Return a duplicate of the connection, which belongs to the caller from now on. Raises TakeError."""
        taken = self._client.take()
        if self._client.encrypted:  # its transport is another protocol's now, which is not ended here
            self._forget_body()
            self._server.went(self)
        return taken

    def answer(self, status: str, headers: Headers, pieces: list[bytes]) -> None:
        """Send all of an answer at once. status: as WSGI has it, "200 OK"."""
        self._write(self._head(status, headers) + self._data(b"".join(pieces)) + self._end())
        self._next()

    def begin_answer(self, status: str, headers: Headers) -> None:
        """Send the head of an answer whose data come later."""
        self._write(self._head(status, headers))

    async def continue_answer(self, data: bytes) -> None:
        """Send data; returns when there is room for more, or the client has gone."""
        self._write(self._data(data))
        await self._writable.wait()

    def end_answer(self) -> None:
        """Send the end of the answer, and take the next request."""
        self._write(self._end())
        self._next()

    def fail(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        """Answer that there is no answer."""
        self._server.refused[str(status)] += 1
        body = json.dumps(problem_document(status, detail)).encode()
        lines = [("Content-Type", MEDIA), ("Content-Length", str(len(body))), *headers]
        if status == 401:
            lines.append(("WWW-Authenticate", "Bearer"))
        asked_for_head = self._request is not None and self._request.method == b"HEAD"
        self.answer(f"{status} {HTTPStatus(status).phrase}", lines, [] if asked_for_head else [body])

    def close(self) -> None:
        """End the connection once all is sent."""
        self._client.close()

    def abort(self) -> None:
        """Reset it without sending what is left: what was sent is no whole answer."""
        self._client.abort()

    # Between requests

    def _listen(self) -> None:
        """Make of what was received all that can be made of it now."""
        if self._listening:  # an answer within: the loop goes on with what comes after it
            return
        self._listening = True
        try:
            while not (self.answering or self._held or self._refused_at is not None or self.gone):
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._need_data()
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
            too_long = error.error_status_hint == 431
            self._refuse(error.error_status_hint, _HEAD_TOO_LONG if too_long else str(error))
        finally:
            self._listening = False

    def _need_data(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._write(self._http.send(go_on) or b"")
        if self._head_since is None and self._http.their_state is h11.IDLE and self._http.trailing_data[0]:
            self._head_since = time.monotonic()

    def _begin(self, request: h11.Request) -> None:
        """Decide by a head all but the body's own bytes."""
        self._request = request
        self._head_since = None
        if head_bytes(request) > MOST_HEAD_BYTES:  # h11 bounds a head only while it is not whole
            self._refuse(431, _HEAD_TOO_LONG)
            return
        self._sending.rest()
        self.environ = self._client.environ(request)
        headers = dict(request.headers)
        length = int(headers.get(b"content-length", b"0"))
        has_body = length > 0 or b"transfer-encoding" in headers
        try:
            self._server.check(self.environ)
        except ProblemError as error:
            if has_body:
                self._refuse(error.status, error.detail)
            else:
                self._forbidden = error
            return
        if has_body:
            self.body = Body(self._server.body_room, self._server.most_body_bytes(self.environ))
            try:
                self.body.expect(length)
            except BodyError as error:
                self._refuse(error.status, str(error))

    def _keep(self, data: bytes) -> None:
        try:
            if self.body is not None:
                self.body.add(data)
        except BodyError as error:
            self._refuse(error.status, str(error))
        except OSError as error:
            self._refuse(503, f"the body cannot be kept until it is whole: {error.strerror or error}")

    def _whole(self) -> None:
        if self._forbidden is not None:
            error, self._forbidden = self._forbidden, None
            self.fail(error.status, error.detail)
            return
        if self.body is not None:
            self.body.rewind()
        set_length(self.environ, 0 if self.body is None else self.body.size)
        self.answering = True
        self._client.pause_reading()
        self._server.asks(self)

    def _next(self) -> None:
        """Go on with the next request, which may have come with the last: the answer is on its way."""
        self._forget_body()
        self.answering = False
        self._idle_since = time.monotonic()
        if self.gone:
            return
        if self._refused_at is not None:
            self._client.write_eof()
            return
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self.close()
            return
        self._http.start_next_cycle()
        self._request = None  # a refusal of what comes next is no answer to it
        if self._writable.is_set():
            self._go_on()
        else:
            self._client.pause_reading()
            self._held = True

    def _go_on(self) -> None:
        """Listen for the next request."""
        if not self.gone:
            self._client.resume_reading()
            self._listen()

    def _end_head(self) -> None:
        if not self._http.trailing_data[0]:  # as browsers connect ahead of what they may want to ask
            self.close()
            return
        self._refuse(
            408, f"the head of a request must be whole within {self._server.limits.head_s:g} s: ask again"
        )

    def _refuse(self, status: int, detail: str) -> None:
        """Refuse a request that is not read to its end, so where the next one would begin is not known."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refused_at = time.monotonic()
            self.fail(status, detail, ("Connection", "close"))
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
        if data:
            if not self.unsent:
                self.moved_at = time.monotonic()
            self._client.write(data)
            if not self._writable.is_set():
                self._server.wrote(self)
