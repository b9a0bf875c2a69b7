"""Children of this process: started so that an interrupt leaves none behind, and ended whatever state they are in."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, TypeVar

P = TypeVar("P", bound="subprocess.Popen[Any]")


def start_child(start: Callable[[], P], thread: Executor) -> P:
    """Return the child that *start* makes in *thread*; where an exception interrupts that, end it, or start none.

    Signals' handlers run in the main thread. One that raises within `Popen()` there, after the fork, would leave a
    child that no variable holds; one that raises within `submit()`, a thread that no variable holds, and its future.
    """
    started: Future[P] = Future()

    def run() -> None:
        if started.set_running_or_notify_cancel():
            try:
                started.set_result(start())
            except BaseException as error:
                started.set_exception(error)

    try:
        thread.submit(run)
        return started.result()
    except BaseException:
        if not started.cancel():
            with suppress(Exception):
                end_child(started.result())
        raise


def end_child(process: subprocess.Popen[Any]) -> None:
    """Kill a child of ours and collect it; harmless if it has been collected.

    An interrupt in the middle of `Popen.poll()` may leave the lock of that object taken, and `Popen.wait()` then never
    returns: this takes none.
    """
    if process.returncode is not None:
        return
    with suppress(ChildProcessError):  # another thread has collected it
        collected, status = os.waitpid(process.pid, os.WNOHANG)
        if not collected:
            os.kill(process.pid, signal.SIGKILL)
            _, status = os.waitpid(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
