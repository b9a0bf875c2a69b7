"""One client's connection: HTTP/1.1 by h11, one request at a time, at a pace that lets others live."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Hashable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol

import h11

from capstan_client.errors import CapstanError
from controller.api.front.body import Body, BodyError, BodyRoom
from controller.api.front.environ import environ_of, set_length
from controller.api.front.handed_over import HandedOver
from controller.api.front.limits import Limits
from controller.api.front.pace import Pace, kernel_queue_bytes
from controller.api.problems import MEDIA, ProblemError, problem_document
from controller.process.tls_layer import TlsError, TlsLayer

MOST_HEAD_BYTES: Final = 1 << 16
_PASS_OVER_S: Final = 0.02
"""Between two reads, of 256 KiB at most, of what is thrown away."""
_RESET: Final = struct.pack("ii", 1, 0)
Headers = list[tuple[str, str]]


class TakeError(CapstanError, RuntimeError):
    """The connection cannot be taken now; the text says why."""


class Listener(Protocol):
    """What a connection asks of the server, and says to it."""

    limits: Limits
    body_room: BodyRoom

    def came(self, connection: Connection) -> None:
        """It is there. Raises ProblemError if there is no room for it."""

    def check(self, environ: dict[str, str]) -> None:
        """Raises ProblemError for a request that may not be."""

    def most_body_bytes(self, environ: dict[str, str]) -> int:
        """Return how long the body of such a request may be."""

    def asks(self, connection: Connection) -> None:
        """It has a whole request."""

    def wrote(self, connection: Connection) -> None:
        """Its client has more to take than it should."""

    def went(self, connection: Connection) -> None:
        """It is closed."""


class Connection(asyncio.Protocol):
    """``environ`` and ``body`` are of the request that comes in, waits or is being answered.

    tls: between HTTP and the wire; None: HTTP in clear.
    """

    def __init__(self, server: Listener, tls: TlsLayer | None = None) -> None:
        now = time.monotonic()
        self._server = server
        self._tls = tls
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._transport: asyncio.Transport | None = None
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
        self._given = 0
        self._taken = 0
        self._received = 0
        limits = server.limits
        self._taking = Pace(limits.window_s, limits.least_bytes_per_s)
        self._sending = Pace(limits.window_s, limits.least_bytes_per_s)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._server.limits.unsent_bytes)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        try:
            self._server.came(self)
        except ProblemError as error:
            self._refuse(error.status, error.detail)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
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
        if self._tls is not None:
            data = self._decrypted(data)
        if self._refused_at is not None:
            self._pass_over()
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
        return self._transport is None or self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Bytes of answers that are still here."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def waiting_since(self) -> float | None:
        """When it began to wait for a request; None if it has one, or has something to take."""
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
        elif untaken := self._untaken():
            self._look_at_taking(now, self._given - untaken)
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
        if self._transport is None or self.unsent:
            raise TakeError(
                "answers to earlier requests on this connection are still on their way: use a new one"
            )
        if self._tls is not None:
            ours, theirs = socket.socketpair()
            transport, self._transport = self._transport, None
            self._forget_body()
            self._server.went(self)
            HandedOver(transport, self._tls, ours)
            return theirs
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

    def fail(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        """Answer that there is no answer."""
        body = json.dumps(problem_document(status, detail)).encode()
        lines = [("Content-Type", MEDIA), ("Content-Length", str(len(body))), *headers]
        if status == 401:
            lines.append(("WWW-Authenticate", "Bearer"))
        asked_for_head = self._request is not None and self._request.method == b"HEAD"
        self.answer(f"{status} {HTTPStatus(status).phrase}", lines, [] if asked_for_head else [body])

    def close(self) -> None:
        if self._transport is not None:
            if self._tls is not None:
                self._tls.end()
                self._transport.write(self._tls.data_to_send())
            self._transport.close()

    def abort(self) -> None:
        """Reset it without sending what is left: what was sent is no whole answer, and the kernel keeps none of it."""
        if self._transport is not None:
            with suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _RESET
                )
            self._transport.abort()

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
            self._refuse(error.error_status_hint, str(error))
        finally:
            self._listening = False

    def _need_data(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._write(self._http.send(go_on) or b"")
        if self._head_since is None and self._http.their_state is h11.IDLE and self._http.trailing_data[0]:
            self._head_since = time.monotonic()

    def _begin(self, request: h11.Request) -> None:
        """A head is here: all but the body's own bytes is decided by it."""
        assert self._transport is not None
        self._request = request
        self._head_since = None
        self._sending.rest()
        extra = self._transport.get_extra_info
        scheme = "http" if self._tls is None else "https"
        self.environ = environ_of(request, extra("peername"), extra("sockname"), scheme)
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
        assert self._transport is not None
        if self._forbidden is not None:
            error, self._forbidden = self._forbidden, None
            self.fail(error.status, error.detail)
            return
        if self.body is not None:
            self.body.rewind()
        set_length(self.environ, 0 if self.body is None else self.body.size)
        self.answering = True
        self._transport.pause_reading()
        self._server.asks(self)

    def _next(self) -> None:
        """The answer is on its way; the next request may have come with the last."""
        self._forget_body()
        self.answering = False
        self._idle_since = time.monotonic()
        if self.gone:
            return
        assert self._transport is not None
        if self._refused_at is not None:
            if self._tls is None:  # by TLS the answer's length says where it ends
                self._transport.write_eof()
            return
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self.close()
            return
        self._http.start_next_cycle()
        if self._writable.is_set():
            self._go_on()
        else:
            self._transport.pause_reading()
            self._held = True

    def _go_on(self) -> None:
        """Listen for the next request."""
        if not self.gone:
            assert self._transport is not None
            self._transport.resume_reading()
            self._listen()

    def _end_head(self) -> None:
        if not self._http.trailing_data[0]:  # as browsers connect ahead of what they may want to ask
            self.close()
            return
        self._refuse(
            408, f"the head of a request must be whole within {self._server.limits.head_s:g} s: ask again"
        )

    def _refuse(self, status: int, detail: str) -> None:
        """The request is not read to its end, so where the next one would begin is not known."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refused_at = time.monotonic()
            self.fail(status, detail, ("Connection", "close"))
        else:
            self.close()

    def _forget_body(self) -> None:
        if self.body is not None:
            self.body.close()
            self.body = None

    def _pass_over(self) -> None:
        """Read on after a refusal, slowly: closed over unread data, the client would lose the refusal."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(_PASS_OVER_S, self._resume_reading)

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _decrypted(self, data: bytes) -> bytes:
        """Return what the client says; its handshake is answered."""
        assert self._tls is not None
        assert self._transport is not None
        try:
            clear = self._tls.receive(data)
        except TlsError:
            self._transport.write(self._tls.data_to_send())  # an alert says why
            self._transport.close()
            return b""
        if answer := self._tls.data_to_send():
            self._given += len(answer)
            self._transport.write(answer)
        if self._tls.closed:
            self.close()
        return clear

    def _untaken(self) -> int:
        """Return bytes of answers that the client has not taken: those here, and those that the kernel keeps for it."""
        if self._transport is None:
            return 0
        return self.unsent + kernel_queue_bytes(self._transport.get_extra_info("socket"))

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
            if not self.unsent:
                self.moved_at = time.monotonic()
            if self._tls is not None:
                self._tls.send(data)
                data = self._tls.data_to_send()
            self._given += len(data)
            self._transport.write(data)
            if not self._writable.is_set():
                self._server.wrote(self)
