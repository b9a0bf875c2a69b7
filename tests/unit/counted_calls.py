"""How much Python does, without a clock: on a machine that has other work, time says nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(work: Callable[[], object], compiled: bool = False) -> int:
    """Return how many functions of Python's *work* calls, a generator's each time that it goes on.

    compiled: count functions that are written in C, too.
    """
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" or (compiled and event == "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
