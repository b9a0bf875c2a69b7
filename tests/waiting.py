"""How tests wait for what a machine that may be busy does in its own time."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

PATIENCE_S: Final = 180.0
"""Long beside anything that is waited for, also where many other things run: only a defect takes that long."""
LOOK_EVERY_S: Final = 0.02

T = TypeVar("T")


def eventually(
    condition: Callable[[], T], what: str | Callable[[], object] = "", seconds: float = PATIENCE_S
) -> T:
    """Wait until *condition* gives something true, and return that.

    what: for the error; called if it can be. Without it, the error shows the line of *condition*.
    Raises AssertionError, which says what was waited for, after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds:g} s: {what() if callable(what) else what or _source(condition)}"
            )
        time.sleep(LOOK_EVERY_S)
    return found


def _source(condition: Callable[[], object]) -> str:
    """Return where *condition* is written, and its first line."""
    code = getattr(condition, "__code__", None)
    if code is None:
        return repr(condition)
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}: {line}"
