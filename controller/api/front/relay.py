"""Has questions answered by the controller, each over a connection to a thread there."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from typing import Final

import h11

from controller.api.front.connection import Connection, TakeError
from controller.api.front.large_answers import LOST, Answer, LargeAnswers
from controller.api.front.questions import Question
from controller.api.front.wire import PIECE, Kind, WireError, frame, next_frame, request_frame, send_taken

BROKEN: Final = "the answer broke off; the controller's log has the details"
GONE: Final = "the controller does not answer: it is ending; ask again"

_LOG: Final = logging.getLogger("capstan.api")


class Worker:
    """Answers one question at a time. connect: gives a connection to a thread that serves no other worker.

    large: takes over answers that are too large to be kept whole, each with its connection to a thread.
    """

    def __init__(self, connect: Callable[[], socket.socket], large: LargeAnswers) -> None:
        self._connect = connect
        self._large = large
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
            while size <= self._large.above_bytes:
                kind, payload = await next_frame(self._reader)
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
        self._hand_on(asker, answer)
        return None

    def _hand_on(self, asker: Connection, begun: Answer) -> None:
        """A large answer takes as long as its reader likes: others get another thread."""
        assert self._writer is not None
        if not self._large.begin(asker, begun, self._reader, self._writer):
            self.close()  # which ends what is made
            asker.fail(
                503, f"{self._large.most} large answers are on their way: ask again once one has been read"
            )
        self._socket = self._writer = None

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
            kind, payload = await next_frame(self._reader)
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
