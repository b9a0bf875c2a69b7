"""Which of several controllers runs the queue of a database that they share: the first, for as long as it lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

SUFFIX: Final = "-queue"
"""Of the file beside an SQLite database that its queue's controller holds."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


_KEY: Final = int.from_bytes(b"capstanq")
"""Of the advisory lock that a PostgreSQL database's queue has: a number that no other program is likely to use."""
_SOON_NOTICED: Final = (("idle", 10), ("interval", 5), ("count", 3))
"""After how many seconds the server notices that the machine of a session is gone (25); its default is two hours."""


class _Lock(Protocol):
    def take(self) -> bool: ...

    def give_up(self) -> None: ...


class QueueLock:
    """Held by a process until `give_up`, or its end: a locked file beside SQLite's, a session of its own of PostgreSQL.

    Databases in memory have none: each process takes it.
    """

    def __init__(self, engine: Engine) -> None:
        name = engine.url.database if engine.dialect.name == "sqlite" else None
        file = None if not name or name == ":memory:" else Path(f"{name}{SUFFIX}")
        self._lock: _Lock = _Session(engine) if engine.dialect.name == "postgresql" else _File(file)

    def take(self) -> bool:
        """Return whether this process has it from now on, or had it. Raises SQLAlchemyError if PostgreSQL is away."""
        return self._lock.take()

    def give_up(self) -> None:
        """Let another process have it. Harmless if this one does not have it."""
        self._lock.give_up()


class _File:
    """None: there is no file, and every process has the lock."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._handle: int | None = None

    def take(self) -> bool:
        if self._file is None or self._handle is not None:
            return True
        try:
            handle = os.open(self._file, _FLAGS, 0o644)
        except OSError:
            return True  # a directory that cannot be written: its database says so
        if _is_free(handle):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def give_up(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class _Session:
    """An advisory lock lasts as long as its session, which therefore is not one of the pool's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Connection | None = None

    def take(self) -> bool:
        if self._session is not None:
            try:
                self._session.execute(text("SELECT 1"))
            except DBAPIError:
                self.give_up()  # the server was started again, or has ended the session: another may have the lock
            else:
                return True
        session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            session.detach()
            for name, value in _SOON_NOTICED:
                session.execute(text(f"SET tcp_keepalives_{name} = {value}"))
            free = session.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}).scalar_one()
        except BaseException:
            session.close()
            raise
        if free:
            self._session = session
        else:
            session.close()
        return bool(free)

    def give_up(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _is_free(handle: int) -> bool:
    """Return whether an open file is locked by us from now on, until it is closed."""
    try:
        import fcntl
    except ImportError:
        return _is_free_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_free_on_windows(handle: int) -> bool:
    try:
        import msvcrt
    except ImportError:  # a system that has neither
        return True
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
