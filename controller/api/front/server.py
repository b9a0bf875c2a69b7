"""The HTTP server in one thread: connections, what they ask, and workers that have it answered."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from controller.api.access import Access
from controller.api.front.body import BodyRoom
from controller.api.front.coalescing import RequestQueue
from controller.api.front.connection import Connection
from controller.api.front.frames import send_taken
from controller.api.front.large_responses import LargeResponses
from controller.api.front.limits import BACKLOG, FrontSettings, TlsFiles
from controller.api.front.places import Places, Waiting, group_of
from controller.api.front.relay import Worker
from controller.api.problems import ProblemError
from controller.process.renewed_context import RenewedContext
from controller.process.server_tls import server_context
from controller.process.tls_layer import TlsLayer

AT_WORK: Final = 1
"""Answers that are being made at a time. Each that computes lets the controller's other threads wait for the
interpreter, and the control plane is one of them; a second one at a time makes no answer come earlier."""
TURN_S: Final = 0.02
"""After which an answer does not count as being made any more: it waits for something, or is large."""
REFUSED: Final = "CAPSTAN_REFUSED"
"""In the environment of a request for metrics: what this process has refused. Clients' headers begin with HTTP_."""
MOST_REFUSED: Final = 100
"""Connections without a place that are answered why, at a time."""

_LOG: Final = logging.getLogger("capstan.api")


class HttpServer:
    """Answers clients of *listener*, which listens. Made and used in one event loop.

    connect: gives a connection to a thread of the controller's. hand_over: gives it a client's connection.
    """

    def __init__(
        self,
        listener: socket.socket,
        connect: Callable[[], socket.socket],
        settings: FrontSettings,
        hand_over: Callable[[socket.socket, socket.socket], None] = send_taken,
    ) -> None:
        limits = settings.limits
        self.limits = limits
        self.body_room = BodyRoom(limits.all_body_bytes)
        self.refused: Counter[str] = Counter()
        """Requests and connections without an answer of the API, by status, or "cut-off"."""
        self.requests: RequestQueue[Connection] = RequestQueue()
        self._settings = settings
        self._access = (
            None if settings.tokens is None else Access(settings.tokens.operate, settings.tokens.read)
        )
        self._listener = listener
        self._connections: set[Connection] = set()
        self._refused: set[Connection] = set()
        """Those that had no place, until they have taken in why."""
        self._tls = None if settings.tls is None else _context(settings.tls)
        self._places: Places[Connection] = Places(
            limits.connections, limits.connections_per_address, self._waiting
        )
        self._there = asyncio.Semaphore(0)
        """As many as there are requests that wait."""
        self._turns = asyncio.Semaphore(AT_WORK)
        self._large = LargeResponses(limits.large_answers, limits.large_answer_bytes)
        self._workers = [Worker(connect, self._large, hand_over) for _ in range(settings.workers)]
        self._busy = 0

    async def serve(self, until: asyncio.Event) -> None:
        """Serve until *until* is set; then answer what has been asked, for as long as the settings say."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connection, sock=self._listener, backlog=BACKLOG)
        tasks = [asyncio.create_task(self._work(worker)) for worker in self._workers]
        tasks.append(asyncio.create_task(self._look()))
        try:
            await until.wait()
            server.close()
            deadline = time.monotonic() + self._settings.patience_s
            while self._owing() and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
        finally:
            for task in tasks:
                task.cancel()
            self._large.close()
            for connection in (*self._connections, *self._refused):
                connection.close()
            for worker in self._workers:
                worker.close()

    def _connection(self) -> Connection:
        return Connection(self, None if self._tls is None else TlsLayer(self._tls.current()))

    def _owing(self) -> bool:
        """Return True if a client waits for a response, or for the rest of one."""
        for connection in tuple(self._connections):
            if not connection.answering and not connection.unsent:
                connection.close()
        return bool(len(self.requests) or self._busy or self._connections)

    # What connections ask and say

    def came(self, connection: Connection) -> None:
        """Note a connection; where there are too many, cut off another that only waits. Raises ProblemError (503)."""
        group = group_of(connection.host)
        if not self._places.has_share(group):
            most = self.limits.connections_per_address
            self._refuse(
                connection, f"{most} connections from your address are open: close some, or use one again"
            )
            return
        if self._places.add(group):
            last = self._places.to_close(
                time.monotonic(), lambda waiter: waiter.connection.waiting_since == waiter.since
            )
            if last is None:
                self._places.remove(group)
                self._refuse(connection, "too many connections: try again later")
                return
            self.refused["cut-off"] += 1
            last.abort()
        self._connections.add(connection)

    def check(self, environ: dict[str, str]) -> None:
        """Raise ProblemError for a request that may not be, by its head."""
        if self._access is not None:
            self._access.check(environ)

    def most_body_bytes(self, environ: dict[str, str]) -> int:
        """Return how long the body of a request to this route may be."""
        return self._settings.most_body_bytes(environ["REQUEST_METHOD"], environ["PATH_INFO"])

    def asks(self, connection: Connection) -> None:
        """Queue the request that a connection has read; the one for metrics with those of this process."""
        if connection.environ["PATH_INFO"].endswith("/metrics"):
            connection.environ[REFUSED] = json.dumps(self.refused)
        self._add(connection, alone=False)

    def wrote(self, connection: Connection) -> None:
        """Cut off readers that take nothing, before they fill the memory together."""
        readers = [connection for connection in self._connections if connection.unsent]
        unsent = sum(reader.unsent for reader in readers)
        readers.sort(key=lambda reader: reader.moved_at)
        for reader in readers:
            if unsent <= self.limits.all_unsent_bytes:
                return
            unsent -= reader.unsent
            self.refused["cut-off"] += 1
            reader.abort()

    def went(self, connection: Connection) -> None:
        """Note that a connection has ended: its place is free."""
        if connection in self._refused:
            self._refused.remove(connection)
        elif connection in self._connections:
            self._connections.remove(connection)
            self._places.remove(group_of(connection.host))

    def _refuse(self, connection: Connection, why: str) -> None:
        """Raise ProblemError (503), so that the client learns why; where many linger who did, cut it off."""
        if len(self._refused) >= MOST_REFUSED:
            self.refused["cut-off"] += 1
            connection.abort()
            return
        self._refused.add(connection)
        raise ProblemError(503, why)

    def _waiting(self) -> Iterator[Waiting[Connection]]:
        for connection in self._connections:
            since = connection.waiting_since
            if since is not None:
                yield Waiting(connection, group_of(connection.host), since)

    # Tasks

    def _add(self, connection: Connection, alone: bool = True) -> None:
        if self.requests.add(connection, None if alone else connection.same()):
            self._there.release()

    async def _work(self, worker: Worker) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._turns.acquire()
            await self._there.acquire()
            turn = _Turn(self._turns)
            timer = loop.call_later(TURN_S, turn.end)
            request = self.requests.next()
            assert request is not None
            self._busy += 1
            try:
                await worker.answer(request, self._add)
            except Exception:
                _LOG.exception("a fault while answering")
                for waiter in request.waiters:
                    waiter.abort()
            finally:
                self._busy -= 1
                timer.cancel()
                turn.end()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self.limits.look_every_s)
            now = time.monotonic()
            for connection in (*self._connections, *self._refused):
                try:
                    connection.look(now)
                except Exception:  # the others' limits hold
                    _LOG.exception("a fault while a connection was looked at")
                    connection.abort()


def _context(files: TlsFiles) -> RenewedContext:
    certificate, key = Path(files.certificate), Path(files.key)
    return RenewedContext("the API", (certificate, key), lambda: server_context(certificate, key))


class _Turn:
    """One of those that are free, until it ends."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free: asyncio.Semaphore | None = free

    def end(self) -> None:
        if self._free is not None:
            self._free.release()
            self._free = None
