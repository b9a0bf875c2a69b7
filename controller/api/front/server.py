"""The HTTP server in one thread: connections, what they ask, and workers that have it answered."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Final

from controller.api.front.connection import Connection
from controller.api.front.questions import Questions
from controller.api.front.relay import Worker

MOST_CONNECTIONS: Final = 1000
STALLED_S: Final = 120.0
"""A client that neither asks nor takes its answer for so long is not waited for."""
LOOK_EVERY_S: Final = 10.0
AT_WORK: Final = 1
"""Answers that are being made at a time. Each that computes lets the controller's other threads wait for the
interpreter, and the control plane is one of them; a second one at a time makes no answer come earlier."""
TURN_S: Final = 0.02
"""After which an answer does not count as being made any more: it waits for something, or is large."""
BACKLOG: Final = 1024

_LOG: Final = logging.getLogger("capstan.api")


class HttpServer:
    """Answers clients of *listener*, which listens. Made and used in one event loop.

    connect: gives a connection to a thread of the controller's. workers: questions at a time, those that wait included.
    """

    def __init__(
        self,
        listener: socket.socket,
        connect: Callable[[], socket.socket],
        workers: int,
        max_body_bytes: int,
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self.questions: Questions[Connection] = Questions()
        self._listener = listener
        self._connections: set[Connection] = set()
        self._there = asyncio.Semaphore(0)
        """As many as there are questions that wait."""
        self._turns = asyncio.Semaphore(AT_WORK)
        self._workers = [Worker(connect) for _ in range(workers)]
        self._busy = 0

    async def serve(self, until: asyncio.Event, patience_s: float) -> None:
        """Until told to end; then answer what has been asked, if that takes no longer than *patience_s*."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), sock=self._listener, backlog=BACKLOG)
        tasks = [asyncio.create_task(self._work(one)) for one in self._workers]
        tasks.append(asyncio.create_task(self._look()))
        try:
            await until.wait()
            server.close()
            deadline = time.monotonic() + patience_s
            while self._owing() and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
        finally:
            for task in tasks:
                task.cancel()
            for connection in tuple(self._connections):
                connection.close()
            for worker in self._workers:
                worker.close()

    def _owing(self) -> bool:
        """Whether somebody waits for an answer, or for the rest of one."""
        for connection in tuple(self._connections):
            if not connection.answering and not connection.unsent:
                connection.close()
        return bool(len(self.questions) or self._busy or self._connections)

    # What connections tell

    def came(self, connection: Connection) -> bool:
        self._connections.add(connection)
        return len(self._connections) <= MOST_CONNECTIONS

    def asks(self, connection: Connection) -> None:
        self._add(connection, alone=False)

    def went(self, connection: Connection) -> None:
        self._connections.discard(connection)

    # Tasks

    def _add(self, connection: Connection, alone: bool = True) -> None:
        if self.questions.add(connection, None if alone else connection.same()):
            self._there.release()

    async def _work(self, worker: Worker) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._turns.acquire()
            await self._there.acquire()
            turn = _Turn(self._turns)
            timer = loop.call_later(TURN_S, turn.end)
            question = self.questions.next()
            assert question is not None
            self._busy += 1
            try:
                await worker.answer(question, self._add)
            except Exception:
                _LOG.exception("a fault while answering")
                for one in question.askers:
                    one.abort()
            finally:
                self._busy -= 1
                timer.cancel()
                turn.end()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            for connection in tuple(self._connections):
                if connection.stalled(now, STALLED_S):
                    connection.abort()


class _Turn:
    """One of those that are free, until it ends."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free: asyncio.Semaphore | None = free

    def end(self) -> None:
        if self._free is not None:
            self._free.release()
            self._free = None
