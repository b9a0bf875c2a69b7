"""Passes requests to the controller, each over a connection to a thread there, and responses back."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from typing import Final

import h11

from controller.api.front.client_transport import TakeError
from controller.api.front.coalescing import CoalescedRequest
from controller.api.front.connection import Connection
from controller.api.front.frames import PIECE, Kind, WireError, frame, next_frame, request_frame, send_taken
from controller.api.front.large_responses import LOST, LargeResponses, Response

BROKEN: Final = "the answer broke off; the controller's log has the details"
GONE: Final = "the controller does not answer: it is ending; ask again"

_LOG: Final = logging.getLogger("capstan.api")


class Worker:
    """Passes one request at a time. connect: gives a connection to a thread that serves no other worker.

    large: takes over responses that are too large to be kept whole, each with its connection to a thread.
    hand_over: gives such a thread a client's connection.
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        large: LargeResponses,
        hand_over: Callable[[socket.socket, socket.socket], None] = send_taken,
    ) -> None:
        self._connect = connect
        self._hand_over = hand_over
        self._large = large
        self._socket: socket.socket | None = None
        self._reader = asyncio.StreamReader()
        self._writer: asyncio.StreamWriter | None = None

    async def answer(
        self, request: CoalescedRequest[Connection], again: Callable[[Connection], None]
    ) -> None:
        """Answer all waiters. again: gets those that cannot have the same response as the first."""
        waiters = [waiter for waiter in request.waiters if not waiter.gone]
        if not waiters:
            return
        first, *others = waiters
        response = await self._response_for(first)
        for waiter in others:
            if response is None:
                again(waiter)
            elif not waiter.gone:
                _give(waiter, response)

    async def _response_for(self, waiter: Connection) -> Response | None:
        """Have one waiter answered. Return the response if others may have it, too; else None."""
        try:
            head, taken = await self._ask(waiter)
        except LOST:
            self.close()
            waiter.fail(503, GONE)
            return None
        status, pairs = json.loads(head)
        response = Response(status, [(name, value) for name, value in pairs], [])
        size = 0
        try:
            while size <= self._large.above_bytes:
                kind, payload = await next_frame(self._reader)
                if kind == Kind.END:
                    if taken or not _give(waiter, response):
                        return None
                    return response
                response.pieces.append(payload)
                size += len(payload)
        except LOST:
            self.close()
            if not taken:
                waiter.fail(500, BROKEN)
            return None
        self._hand_on(waiter, response)
        return None

    def _hand_on(self, waiter: Connection, begun: Response) -> None:
        """Leave a large response, and the connection to its thread, to `LargeResponses`: its reader may be slow."""
        assert self._writer is not None
        if not self._large.begin(waiter, begun, self._reader, self._writer):
            self.close()  # which ends what is made
            waiter.fail(
                503, f"{self._large.most} large answers are on their way: ask again once one has been read"
            )
        self._socket = self._writer = None

    async def _ask(self, waiter: Connection) -> tuple[bytes, bool]:
        """Return the head of the response, and whether the connection was handed over for it."""
        if self._writer is None:
            self._socket = self._connect()
            self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        self._writer.write(request_frame(waiter.environ))
        while waiter.body is not None and (part := waiter.body.read(PIECE)):
            self._writer.write(part)
            await self._writer.drain()
        taken = False
        while True:
            kind, payload = await next_frame(self._reader)
            if kind == Kind.HEAD:
                return payload, taken
            if kind != Kind.HANDOVER or self._socket is None:
                raise WireError(f"{kind.name} came before HEAD")
            try:
                with waiter.take() as connection:
                    taken = True
                    self._hand_over(self._socket, connection)
            except TakeError as error:
                self._writer.write(frame(Kind.DECLINED, str(error).encode()))

    def close(self) -> None:
        """End the connection to the thread; the next request gets another one."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._socket = self._writer = None


def _give(waiter: Connection, response: Response) -> bool:
    """Send a response. Return False if HTTP has no form for it."""
    try:
        waiter.answer(response.status, response.headers, response.pieces)
    except h11.LocalProtocolError as error:
        _LOG.error("%s: %s", waiter.environ.get("REQUEST_URI"), error)
        waiter.abort()
        return False
    return True
