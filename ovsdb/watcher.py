"""The thread that keeps connections to many OVSDB servers: dials, keeps up with their tables, sends transactions."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from loops.thread import LoopThread, MakeThread, daemon_thread
from ovsdb.session import Done, OvsdbError, OvsdbSession, TableRoom, Tables

LOG: Final = logging.getLogger(__name__)
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0
CONNECT_S: Final = 2.0
RECEIVE_BYTES: Final = 1 << 18
MOST_UNSENT_BYTES: Final = 8 << 20
"""Of what waits for a server to read it: its own questions are answered with what they carry."""
RESTS: Final = 4.0
"""A server is not read for so many times as long as its last message took: a fifth of a processor is its share."""

Place = Path | tuple[str, int]
"""Where a server is: a Unix socket, or address and TCP port."""


class _Server:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.session: OvsdbSession | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.task: asyncio.Task[None] | None = None
        self.again = asyncio.Event()
        """Dial at once."""
        self.wait_s = FIRST_WAIT_S
        self.problem = "not connected yet"

    def flush(self) -> None:
        """Send what the session has to say. Raise OvsdbError if too much of it is left unread."""
        if self.session is not None and self.writer is not None:
            self.writer.write(self.session.data_to_send())
            if self.writer.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
                raise OvsdbError(
                    f"it asks, and leaves more than {MOST_UNSENT_BYTES >> 20} MiB of answers unread"
                )


class OvsdbWatcher:
    """Servers by name. All callbacks come from its one thread, which must not be held up for long.

    columns: as for `OvsdbSession`. on_tables: gets a server's tables whenever they have changed (the same object
    each time: read it there and then) and which of them have, and with None when it is lost. on_done: gets
    transactions' outcomes: name, ticket, error.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[str]],
        on_tables: Callable[[str, Tables | None, frozenset[str]], None],
        on_done: Callable[[str, int, str], None] = lambda name, ticket, error: None,
        make_thread: MakeThread = daemon_thread,
    ) -> None:
        self._columns = columns
        self._on_tables = on_tables
        self._on_done = on_done
        self._servers: dict[str, _Server] = {}
        self._room = TableRoom()
        self._thread = LoopThread(
            "ovsdb",
            self._open,
            self._close,
            subject="the databases' watcher",
            errors_end=True,
            make_thread=make_thread,
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and all connections; harmless if it does not run."""
        self._thread.stop()

    def watch(self, name: str, place: Place | None) -> None:
        """Keep a connection to a server, from now on at *place*; None: no more."""
        self.post(lambda: self._watch(name, place))

    def post(self, work: Callable[[], None]) -> None:
        """Have *work* done in the watcher's thread."""
        self._thread.post(work)

    def problem(self, name: str) -> str:
        """Return why there is no connection to a server; "" if there is one."""
        server = self._servers.get(name)
        return "not looked for" if server is None else server.problem

    def transact(self, name: str, operations: Sequence[Mapping[str, Any]]) -> int | None:
        """Send a transaction; only in the watcher's thread (callbacks, `post`).

        Return its ticket, None if there is no connection.
        """
        server = self._servers.get(name)
        if server is None or server.session is None or not server.session.known or server.writer is None:
            return None
        ticket = server.session.transact(operations)
        server.writer.write(server.session.data_to_send())
        return ticket

    # The thread

    async def _open(self) -> None:
        pass

    async def _close(self) -> None:
        tasks = [server.task for server in self._servers.values() if server.task is not None]
        for name in tuple(self._servers):
            self._forget(name, "the watcher ends")
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch(self, name: str, place: Place | None) -> None:
        server = self._servers.get(name)
        if server is not None and server.place == place:
            server.wait_s = FIRST_WAIT_S
            server.again.set()
            return
        if server is not None:
            self._forget(name, "no longer looked for")
        if place is not None:
            self._servers[name] = server = _Server(place)
            server.task = asyncio.create_task(self._keep(name, server))
            server.task.add_done_callback(_raise_its_error)

    def _forget(self, name: str, problem: str) -> None:
        server = self._servers[name]
        if server.task is not None:
            server.task.cancel()
        self._lose(name, server, problem)
        del self._servers[name]

    async def _keep(self, name: str, server: _Server) -> None:
        """Dial, and talk, again and again."""
        while True:
            server.again.clear()
            try:
                await self._talk(name, server)
            except (OvsdbError, OSError) as error:
                self._lose(name, server, getattr(error, "strerror", None) or str(error))
            except Exception:
                LOG.exception("fault while handling the database of %s", name)
                self._lose(name, server, "a fault in this program")
            wait_s, server.wait_s = server.wait_s, min(2 * server.wait_s, LONGEST_WAIT_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await server.again.wait()

    async def _talk(self, name: str, server: _Server) -> None:
        """Keep up with a server until it is lost. Raise OvsdbError, OSError: why."""
        try:
            async with asyncio.timeout(CONNECT_S) as patience:
                reader, server.writer = await _connect(server.place)
        except TimeoutError:
            if not patience.expired():
                raise
            raise OvsdbError(f"it does not answer within {CONNECT_S:g} s") from None
        session = server.session = OvsdbSession(self._columns, time.monotonic(), self._room)
        while True:
            server.flush()
            try:
                async with asyncio.timeout_at(session.deadline()) as patience:
                    data = await reader.read(RECEIVE_BYTES)
            except TimeoutError:
                if not patience.expired():
                    raise
                session.timer(time.monotonic())
                continue
            if not data:
                raise OvsdbError("it has closed the connection")
            began = time.monotonic()
            self._received(name, server, session, data)
            server.flush()
            await asyncio.sleep(RESTS * (time.monotonic() - began))

    def _received(self, name: str, server: _Server, session: OvsdbSession, data: bytes) -> None:
        changed: frozenset[str] = frozenset()
        for event in session.receive(data, time.monotonic()):
            if isinstance(event, Done):
                self._on_done(name, event.ticket, event.error)
            else:
                changed |= event.tables
        if changed:
            server.problem = ""
            self._on_tables(name, session.tables, changed)
            server.wait_s = FIRST_WAIT_S  # not before: one that makes faults here is dialled seldom

    def _lose(self, name: str, server: _Server, problem: str) -> None:
        known = server.session is not None and server.session.known
        if server.session is not None:
            server.session.close()
        if server.writer is not None:
            server.writer.transport.abort()
        server.session = server.writer = None
        server.problem = problem
        if known:
            self._on_tables(name, None, frozenset())


async def _connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection. Raise OSError with the system's words for why there is none."""
    try:
        if isinstance(place, Path):
            return await asyncio.open_unix_connection(place)
        return await asyncio.open_connection(*place)
    except OSError as error:
        if error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno)) from None
        raise


def _raise_its_error(task: asyncio.Task[None]) -> None:
    """Let an error of *task* end the thread."""
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
