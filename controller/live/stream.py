"""The stream of events and samples: one thread writes to all readers, and waits for none of them.

Other threads hand over events and go on (`note`, `sample`). The thread turns each into bytes once, however many
read, and gives every reader's socket what it takes; what a reader does not take in time waits in its `Backlog`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from capstan_client.errors import CapstanError
from controller.live.backlog import Backlog
from controller.live.event_log import EventLog, Logged
from controller.live.reader import Reader
from controller.live.topics import LOG_TOPICS, event_object, frame, topic_of
from controller.plane.naming import FabricNames
from controller.process.control_thread import ControlThread
from loops.thread import LoopThread

LOG: Final = logging.getLogger("capstan.stream")
GATHER_S: Final = 0.02
"""What happens within this time goes out at once: one write a reader, not one an event."""
BEAT_S: Final = 10.0
NAMES_AGAIN_S: Final = 10.0
"""After an attempt to get names that failed, which may take as long: meanwhile events have old ones."""
MOST_READERS: Final = 1000


class StreamError(CapstanError, RuntimeError):
    """No more readers can be served, or the stream has ended."""


class EventStream:
    """``start`` it, then `add` readers. *names*: of the fabric now; called from the stream's thread, may be slow."""

    def __init__(
        self,
        log: EventLog,
        names: Callable[[], FabricNames],
        version: str,
        on_reader: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a stream. *on_reader* is called when another reader has come: something may be `watched` that
        was not.
        """
        self._on_reader = on_reader
        self._log = log
        self._names_now = names
        self._names = FabricNames.empty()
        self._names_stale = True
        self._names_wanted_at = 0.0
        """After an attempt that failed."""
        self._names_kept = False
        self._version = version
        self._epoch = format(int(log.wall(0.0) * 1000) & 0xFFFFFFFFFF, "x")
        self._incoming: deque[Logged | tuple[str, Any]] = deque()
        self._joining: deque[tuple[Reader, str | None]] = deque()
        self._readers: set[Reader] = set()
        self._wanted: dict[str, int] = {}
        self._thread = LoopThread(
            "stream",
            self._open,
            self._close,
            subject="the stream of events",
            error=StreamError,
            errors_end=True,
            make_thread=ControlThread,
        )
        self._waking = False
        """The loop has been asked to give readers what is new, and has not begun yet."""
        self._running = False
        names_of_totals = (
            "readers_served",
            "events",
            "samples",
            "bytes",
            "dropped_events",
            "dropped_samples",
        )
        self._totals = dict.fromkeys(names_of_totals, 0)

    # For other threads

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and all streams; what is noted afterwards is dropped. Harmless if it does not run."""
        self._names_kept, self._running = True, False
        self._thread.stop()

    def keep_names(self) -> None:
        """Ask for no names any more: who knows them is about to end."""
        self._names_kept = True

    def note(self, logged: Logged) -> None:
        """Take an event that has been logged. Returns at once."""
        self._incoming.append(logged)
        self._wake_up()

    def sample(self, topic: str, data: Any) -> None:
        """Take a new sample of a topic; *data* is turned into JSON later. Returns at once."""
        self._incoming.append((topic, data))
        self._wake_up()

    def _wake_up(self) -> None:
        if self._running and not self._waking:  # once for all that happens until it begins
            self._waking = True
            self._thread.post(self._loop.call_later, GATHER_S, self._spread)

    def watched(self, topic: str) -> bool:
        """Return True if a client reads a topic."""
        return self._wanted.get(topic, 0) > 0

    def check_room(self) -> None:
        """Raise StreamError if another reader cannot be served."""
        if not self._running:
            raise StreamError("the stream of events does not run")
        if len(self._readers) + len(self._joining) >= MOST_READERS:
            raise StreamError(f"{MOST_READERS} readers are served already", remedy="try again later")

    def add(self, connection: socket.socket, head: bytes, topics: frozenset[str], since: str | None) -> None:
        """Stream to *connection* from here on, which is the stream's now; *head* goes out first.

        since: the ``id`` of the last event that the reader has; None: from now on.
        Raises StreamError; the connection is still the caller's then.
        """
        self.check_room()
        self._joining.append((Reader(connection, head, Backlog(topics), time.monotonic()), since))
        self._wake_up()

    def counters(self) -> dict[str, int]:
        """Return the totals since the start, and how many readers there are now."""
        readers = tuple(self._readers)
        return {
            **self._totals,
            "dropped_events": self._totals["dropped_events"]
            + sum(reader.backlog.dropped_events for reader in readers),
            "dropped_samples": self._totals["dropped_samples"]
            + sum(reader.backlog.dropped_samples for reader in readers),
            "readers": len(readers),
        }

    # The thread

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running = True
        self._spread()
        self._loop.call_later(BEAT_S, self._beat)

    async def _close(self) -> None:
        self._spread()  # the end of what was noted
        for reader in tuple(self._readers):
            self._drop(reader, "the controller ends")

    def _beat(self) -> None:
        self._loop.call_later(BEAT_S, self._beat)
        for reader in self._readers:
            reader.beat()
        self._flush_all()

    def _guarded(self, reader: Reader, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self._drop(reader, str(error))

    def _spread(self) -> None:
        """Give all readers what is new, and welcome those who are."""
        self._waking = False
        while self._joining:
            self._welcome(*self._joining.popleft())
        samples: dict[str, Any] = {}
        self._names_stale |= any(
            isinstance(item, Logged) and topic_of(item.data) == "fabric" for item in tuple(self._incoming)
        )
        while self._incoming:
            item = self._incoming.popleft()
            if not isinstance(item, Logged):
                samples[item[0]] = item[1]
                continue
            topic = topic_of(item.data)
            listeners = [
                reader
                for reader in self._readers
                if topic in reader.backlog.topics and reader.cursor < item.cursor
            ]
            if listeners and (data := self._event_frame(item)):
                for reader in listeners:
                    reader.backlog.event(topic, data)
                    reader.cursor = item.cursor
                self._totals["events"] += len(listeners)
        for topic, sample in samples.items():
            readers = [reader for reader in self._readers if topic in reader.backlog.topics]
            if readers and (data := self._frame(topic, sample)):
                for reader in readers:
                    reader.backlog.sample(topic, data)
                self._totals["samples"] += len(readers)
        self._flush_all()

    def _welcome(self, reader: Reader, identity: str | None) -> None:
        backlog = reader.backlog
        newest = self._log.cursor
        since = self._cursor_of(identity)
        resumed = since is not None
        if since is not None and backlog.topics & {*LOG_TOPICS}:
            missed = self._log.since(since)
            lost = (missed[0].cursor if missed else newest + 1) - since - 1
            resumed = lost <= 0
            newest = max(newest, missed[-1].cursor if missed else 0)
            for logged in missed:
                topic = topic_of(logged.data)
                if topic in backlog.topics and (data := self._event_frame(logged)):
                    backlog.event(topic, data)
        hello = {
            "id": f"{self._epoch}-{newest}",
            "cursor": newest,
            "version": self._version,
            "at": time.time(),
            "topics": sorted(backlog.topics),
            "resumed": resumed,
        }
        # An event that a reader has yet to get must not be behind the id that it comes back with: no id if it resumes.
        backlog.greet(frame("hello", hello, None if resumed else f"{self._epoch}-{newest}"))
        reader.cursor = newest
        self._readers.add(reader)
        for topic in backlog.topics:
            self._wanted[topic] = self._wanted.get(topic, 0) + 1
        self._on_reader()
        self._totals["readers_served"] += 1
        self._loop.add_reader(reader.connection, self._guarded, reader, reader.read)

    def _cursor_of(self, identity: str | None) -> int | None:
        """Return what a reader has seen of this controller's events; None: nothing, or of another life."""
        epoch, _, cursor = (identity or "").rpartition("-")
        epoch = epoch or self._epoch  # a bare cursor, as the API's other routes take it
        if (
            epoch != self._epoch
            or not cursor.isdecimal()
            or len(cursor) > 19
            or int(cursor) > self._log.cursor
        ):
            return None
        return int(cursor)

    def _event_frame(self, logged: Logged) -> bytes:
        if self._names_stale and not self._names_kept and time.monotonic() >= self._names_wanted_at:
            try:
                self._names = self._names_now()
                self._names_stale = False
            except (
                Exception
            ) as error:  # the control plane is busy or ends: old names are better than no events
                self._names_wanted_at = time.monotonic() + NAMES_AGAIN_S
                LOG.warning("names of switches are not to be had: %s", error)
        identity = f"{self._epoch}-{logged.cursor}"
        return self._frame(topic_of(logged.data), event_object(logged, self._names), identity)

    def _frame(self, topic: str, data: Any, identity: str | None = None) -> bytes:
        """Return the frame; b"" for what has none, which must not end the stream of all that has one."""
        try:
            return frame(topic, data, identity)
        except (ValueError, RecursionError) as error:
            LOG.error(
                "an event of topic %r was left out of the stream: it has no form in JSON: %s", topic, error
            )
            return b""

    def _flush_all(self) -> None:
        for reader in tuple(self._readers):
            self._flush(reader)

    def _flush(self, reader: Reader) -> None:
        before, blocked = reader.sent_bytes, reader.blocked
        self._guarded(reader, lambda: reader.flush(time.monotonic()))
        self._totals["bytes"] += reader.sent_bytes - before
        if reader not in self._readers:
            return
        if reader.blocked:
            self._loop.add_writer(reader.connection, self._flush, reader)
        elif blocked:
            self._loop.remove_writer(reader.connection)

    def _drop(self, reader: Reader, why: str) -> None:
        if reader not in self._readers:
            return
        LOG.debug("a reader of the stream is gone: %s", why)
        self._readers.discard(reader)
        self._loop.remove_reader(reader.connection)
        self._loop.remove_writer(reader.connection)
        reader.connection.close()
        backlog = reader.backlog
        self._totals["dropped_events"] += backlog.dropped_events
        self._totals["dropped_samples"] += backlog.dropped_samples
        for topic in backlog.topics:
            self._wanted[topic] -= 1


def stream_head() -> bytes:
    """Return the head of the answer that a stream is."""
    headers = (
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
        ("X-Accel-Buffering", "no"),
    )
    return ("HTTP/1.1 200 OK\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers) + "\r\n").encode()
