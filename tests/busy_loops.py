"""Processes that keep the processors busy, for tests of what others do to a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def busy_loops(a_core: int = 1) -> Iterator[Callable[[], None]]:
    """Keep each processor busy with so many loops, until the end of the block or until what it gets is called."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(a_core * len(os.sched_getaffinity(0)))
    ]

    def end() -> None:
        while loops:
            loop = loops.pop()
            loop.kill()
            loop.wait()

    try:
        yield end
    finally:
        end()
