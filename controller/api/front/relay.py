"""Has questions answered by the controller, each over a connection to a thread there."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import h11

from controller.api.front.connection import Connection, Headers, TakeError
from controller.api.front.questions import Question
from controller.api.front.wire import HEADER, PIECE, Kind, WireError, frame, request_frame, send_taken

LARGEST_ANSWER: Final = 4 << 20
"""Bytes; what is larger goes to its reader as it is made, and is not kept for others."""
BROKEN: Final = "the answer broke off; the controller's log has the details"
GONE: Final = "the controller does not answer: it is ending; ask again"
LOST: Final = (OSError, asyncio.IncompleteReadError)

_LOG: Final = logging.getLogger("capstan.api")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole one. ``status``: as WSGI has it, "200 OK"."""

    status: str
    headers: Headers
    pieces: list[bytes]


class Worker:
    """Answers one question at a time. connect: gives a connection to a thread that serves nobody else."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._socket: socket.socket | None = None
        self._reader = asyncio.StreamReader()
        self._writer: asyncio.StreamWriter | None = None

    async def answer(self, question: Question[Connection], again: Callable[[Connection], None]) -> None:
        """Answer all who ask it. again: is given those who cannot have the same answer as the first."""
        askers = [one for one in question.askers if not one.gone]
        if not askers:
            return
        first, *others = askers
        answer = await self._made_for(first)
        for one in others:
            if answer is None:
                again(one)
            elif not one.gone:
                _give(one, answer)

    async def _made_for(self, asker: Connection) -> Answer | None:
        """Answer one; the result is what others may have too, None if they may not."""
        try:
            head, taken = await self._ask(asker)
        except LOST:
            self.close()
            asker.fail(503, GONE)
            return None
        status, pairs = json.loads(head)
        answer = Answer(status, [(name, value) for name, value in pairs], [])
        size = 0
        try:
            while size <= LARGEST_ANSWER:
                kind, payload = await self._read()
                if kind == Kind.END:
                    if taken or not _give(asker, answer):
                        return None
                    return answer
                answer.pieces.append(payload)
                size += len(payload)
        except LOST:
            self.close()
            if not taken:
                asker.fail(500, BROKEN)
            return None
        await self._stream(asker, answer)
        return None

    async def _stream(self, asker: Connection, begun: Answer) -> None:
        """Send what is there of an answer, and the rest as it comes."""
        try:
            asker.begin_answer(begun.status, begun.headers)
            kind, payload = Kind.DATA, b"".join(begun.pieces)
            while kind != Kind.END:
                await asker.continue_answer(payload)
                if asker.gone:
                    self.close()  # which ends what is made for nobody
                    return
                kind, payload = await self._read()
            asker.end_answer()
        except (*LOST, h11.LocalProtocolError) as error:
            _LOG.info("%s broke off: %s", asker.environ.get("REQUEST_URI"), error)
            self.close()
            asker.abort()

    async def _ask(self, asker: Connection) -> tuple[bytes, bool]:
        """The head of the answer, and whether the connection has been taken for it."""
        if self._writer is None:
            self._socket = self._connect()
            self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        self._writer.write(request_frame(asker.environ))
        while asker.body is not None and (part := asker.body.read(PIECE)):
            self._writer.write(part)
            await self._writer.drain()
        taken = False
        while True:
            kind, payload = await self._read()
            if kind == Kind.HEAD:
                return payload, taken
            if kind != Kind.TAKE or self._socket is None:
                raise WireError(f"{kind.name} came before HEAD")
            try:
                with asker.take() as connection:
                    taken = True
                    send_taken(self._socket, connection)
            except TakeError as error:
                self._writer.write(frame(Kind.KEPT, str(error).encode()))

    async def _read(self) -> tuple[Kind, bytes]:
        kind, size = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        return Kind(kind), await self._reader.readexactly(size) if size else b""

    def close(self) -> None:
        """What the connection would say next is not known, or not wanted, any more; a question gets another one."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._socket = self._writer = None


def _give(asker: Connection, answer: Answer) -> bool:
    """Whether it is an answer that HTTP has a form for."""
    try:
        asker.answer(answer.status, answer.headers, answer.pieces)
    except h11.LocalProtocolError as error:
        _LOG.error("%s: %s", asker.environ.get("REQUEST_URI"), error)
        asker.abort()
        return False
    return True
