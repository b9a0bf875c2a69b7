"""The thread that keeps connections to many OVSDB servers: dials, keeps up with their tables, sends transactions."""

from __future__ import annotations

import logging
import os
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ovsdb.session import Done, OvsdbError, OvsdbSession, Tables

LOG: Final = logging.getLogger(__name__)
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0
CONNECT_S: Final = 2.0
RECEIVE_BYTES: Final = 1 << 18
MOST_UNSENT_BYTES: Final = 8 << 20
"""Of what waits for a server to read it: its own questions are answered with what they carry."""

Place = Path | tuple[str, int]
"""Where a server is: a Unix socket, or address and TCP port."""


class _Server:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.sock: socket.socket | None = None
        self.session: OvsdbSession | None = None
        self.unsent = bytearray()
        self.connecting_until: float | None = None
        self.dial_at = 0.0
        self.wait_s = FIRST_WAIT_S
        self.problem = "not connected yet"


def _daemon_thread(work: Callable[[], None], name: str) -> threading.Thread:
    return threading.Thread(target=work, name=name, daemon=True)


class OvsdbWatcher:
    """Servers by name. All callbacks come from its one thread, which must not be held up for long.

    columns: as for `OvsdbSession`. on_tables: gets a server's tables whenever they have changed (the same object
    each time: read it there and then) and which of them have, and with None when it is lost. on_done: gets
    transactions' outcomes: name, ticket, error. make_thread: of what to do and a name, the thread, not started.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[str]],
        on_tables: Callable[[str, Tables | None, frozenset[str]], None],
        on_done: Callable[[str, int, str], None] = lambda name, ticket, error: None,
        make_thread: Callable[[Callable[[], None], str], threading.Thread] = _daemon_thread,
    ) -> None:
        self._columns = columns
        self._on_tables = on_tables
        self._on_done = on_done
        self._servers: dict[str, _Server] = {}
        self._selector = selectors.DefaultSelector()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = self._closed = False
        self._waking = threading.Lock()
        self._thread = make_thread(self._run, "ovsdb")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and all connections; harmless if it does not run."""
        if self._thread.is_alive():
            self.post(self._stop)
            self._thread.join()

    def watch(self, name: str, place: Place | None) -> None:
        """Keep a connection to a server, from now on at *place*; None: no more."""
        self.post(lambda: self._watch(name, place))

    def post(self, work: Callable[[], None]) -> None:
        """Have *work* done in the watcher's thread."""
        self._posted.put(work)
        with self._waking:  # a number that was closed may be another file's by now
            if not self._closed:
                os.eventfd_write(self._wake, 1)

    def problem(self, name: str) -> str:
        """Return why there is no connection to a server; "" if there is one."""
        server = self._servers.get(name)
        return "not looked for" if server is None else server.problem

    def transact(self, name: str, operations: Sequence[Mapping[str, Any]]) -> int | None:
        """Only in the watcher's thread (callbacks, `post`). The ticket; None if there is no connection."""
        server = self._servers.get(name)
        if server is None or server.session is None or not server.session.known:
            return None
        return server.session.transact(operations)

    # The thread

    def _run(self) -> None:
        while not self._stopping:
            for key, mask in self._selector.select(self._patience()):
                if key.data is None:
                    os.eventfd_read(self._wake)
                else:
                    self._guarded(key.data, lambda name, mask=mask: self._ready(name, mask))  # type: ignore[misc]
            while not self._posted.empty():
                self._posted.get()()
            for name in tuple(self._servers):
                self._guarded(name, self._tick)
        for name in tuple(self._servers):
            self._drop(name, "the watcher ends")
        self._selector.close()
        with self._waking:
            self._closed = True
            os.close(self._wake)

    def _stop(self) -> None:
        self._stopping = True

    def _patience(self) -> float:
        times = [
            server.connecting_until or (server.session.deadline() if server.session else server.dial_at)
            for server in self._servers.values()
        ]
        return max(0.0, min([*times, time.monotonic() + 60.0]) - time.monotonic())

    def _guarded(self, name: str, work: Callable[[str], None]) -> None:
        try:
            work(name)
        except (OvsdbError, OSError) as error:
            self._drop(name, getattr(error, "strerror", None) or str(error))
        except Exception:
            LOG.exception("fault while handling the database of %s", name)
            self._drop(name, "a fault in this program")

    def _watch(self, name: str, place: Place | None) -> None:
        server = self._servers.get(name)
        if server is not None and server.place == place:
            server.dial_at, server.wait_s = min(server.dial_at, time.monotonic()), FIRST_WAIT_S
            return
        if server is not None:
            self._drop(name, "no longer looked for")
            del self._servers[name]
        if place is not None:
            self._servers[name] = _Server(place)

    def _tick(self, name: str) -> None:
        server, now = self._servers[name], time.monotonic()
        if server.sock is None:
            if now >= server.dial_at:
                self._dial(name, server, now)
        elif server.session is None:
            if server.connecting_until is not None and now >= server.connecting_until:
                raise OvsdbError(f"it does not answer within {CONNECT_S:g} s")
        else:
            server.session.timer(now)
            self._flush(name, server)

    def _dial(self, name: str, server: _Server, now: float) -> None:
        place = server.place
        if isinstance(place, Path):
            family, address = socket.AF_UNIX, str(place)
        else:
            family, address = socket.AF_INET6 if ":" in place[0] else socket.AF_INET, place  # type: ignore[assignment]
        server.sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        server.sock.setblocking(False)
        server.connecting_until = now + CONNECT_S
        self._selector.register(server.sock, selectors.EVENT_WRITE, name)
        try:
            server.sock.connect(address)
        except BlockingIOError:
            return

    def _ready(self, name: str, mask: int) -> None:
        server = self._servers[name]
        assert server.sock is not None
        if server.session is None:
            code = server.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OvsdbError(os.strerror(code))
            server.session, server.connecting_until = OvsdbSession(self._columns, time.monotonic()), None
        if mask & selectors.EVENT_READ:
            self._read(name, server, server.sock, server.session)
        if server.sock is not None:
            self._flush(name, server)

    def _read(self, name: str, server: _Server, sock: socket.socket, session: OvsdbSession) -> None:
        try:
            data = sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise OvsdbError("it has closed the connection")
        changed: frozenset[str] = frozenset()
        for event in session.receive(data, time.monotonic()):
            if isinstance(event, Done):
                self._on_done(name, event.ticket, event.error)
            else:
                changed |= event.tables
        if changed:
            server.problem, server.wait_s = "", FIRST_WAIT_S
            self._on_tables(name, session.tables, changed)

    def _flush(self, name: str, server: _Server) -> None:
        assert server.sock is not None
        assert server.session is not None
        server.unsent += server.session.data_to_send()
        if len(server.unsent) > MOST_UNSENT_BYTES:
            raise OvsdbError(f"it asks, and leaves more than {MOST_UNSENT_BYTES >> 20} MiB of answers unread")
        if server.unsent:
            with suppress(BlockingIOError):
                del server.unsent[: server.sock.send(server.unsent)]
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if server.unsent else 0)
        if self._selector.get_key(server.sock).events != mask:
            self._selector.modify(server.sock, mask, name)

    def _drop(self, name: str, problem: str) -> None:
        server = self._servers[name]
        known = server.session is not None and server.session.known
        if server.sock is not None:
            self._selector.unregister(server.sock)
            server.sock.close()
        server.sock = server.session = server.connecting_until = None
        server.unsent.clear()
        server.problem = problem
        server.dial_at = time.monotonic() + server.wait_s
        server.wait_s = min(2 * server.wait_s, LONGEST_WAIT_S)
        if known:
            self._on_tables(name, None, frozenset())
