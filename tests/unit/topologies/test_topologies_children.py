"""Children that are ended, whatever state their `Popen` is in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from topologies.processes import Spawner, end_child, find_processes

LASTS = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.mark.timeout(60)
def test_a_child_ends_also_where_an_interrupt_left_its_lock_taken() -> None:
    """`Popen.poll()` takes the lock and begins to look after it: an interrupt in between leaves it taken for good."""
    process = subprocess.Popen(LASTS)
    process._waitpid_lock.acquire()  # type: ignore[attr-defined]
    end_child(process)
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)


def test_what_has_ended_keeps_its_exit_code() -> None:
    known, not_asked = (subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) for _ in range(2))
    known.wait()
    os.waitid(os.P_PID, not_asked.pid, os.WEXITED | os.WNOWAIT)
    for process in (known, not_asked):
        end_child(process)
        assert process.returncode == 3


@pytest.mark.timeout(60)
def test_a_start_that_is_interrupted_leaves_no_process() -> None:
    """A cancelled experiment's: its traffic generator would keep the port that the next one's needs."""

    class Interrupted(BaseException):
        pass

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    spawner = Spawner("interrupted")
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interrupted):
            # in the child, and so while the caller waits for it
            spawner.popen(None, LASTS, preexec_fn=lambda: os.kill(os.getppid(), signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert find_processes("interrupted") == []
    spawner.close()
