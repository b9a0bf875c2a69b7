"""Ending a lab is not to be cut short by a person who is in a hurry."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Let no second Ctrl-C, or SIGTERM, cut the clean-up short; signals reach the main thread only.

    A handler of the process's own gets what came meanwhile at the end: a process that holds another lab, or works on,
    is asked to end by the first Ctrl-C, whatever it takes down just then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = signal.getsignal(number) or signal.SIG_DFL
        own = callable(handler) and handler is not signal.default_int_handler
        before[number] = handler
        signal.signal(number, keep if own else signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in dict.fromkeys(came):
            signal.raise_signal(late)
