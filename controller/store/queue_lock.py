"""Which of several controllers runs the queue of a database that they share: the first, for as long as it lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

SUFFIX: Final = "-queue"
"""Of the file beside an SQLite database that its queue's controller holds."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class QueueLock:
    """Held by a process until `give_up`, or its end. Databases other than SQLite have none: each takes it."""

    def __init__(self, engine: Engine) -> None:
        name = engine.url.database if engine.dialect.name == "sqlite" else None
        self._file = None if not name or name == ":memory:" else Path(f"{name}{SUFFIX}")
        self._handle: int | None = None

    def take(self) -> bool:
        """Return whether this process has it from now on, or had it."""
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
        """Let another process have it. Harmless if this one does not have it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


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
