"""Children that are ended, whatever state their `Popen` is in."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from topologies.children import end_child
from topologies.namespaces import complete
from topologies.processes import Spawner, find_processes

MARK = f"interrupted-{secrets.token_hex(4)}"
"""Of a lab that does not exist; random, since all processes of the machine are searched for it."""
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


class Interrupted(BaseException):
    pass


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have SIGUSR1 raise in the main thread, as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("interruptible")
def test_a_start_that_is_interrupted_leaves_no_process() -> None:
    """A cancelled experiment's: its traffic generator would keep the port that the next one's needs."""
    spawner = Spawner(MARK)
    with pytest.raises(Interrupted):
        # in the child, and so while the caller waits for it
        spawner.popen(None, LASTS, preexec_fn=lambda: os.kill(os.getppid(), signal.SIGUSR1))
    assert find_processes(MARK) == []
    spawner.close()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("interruptible")
def test_a_command_that_is_interrupted_while_it_starts_leaves_no_process() -> None:
    """The child looks for its program in 40 000 directories first; the interrupt comes meanwhile."""
    environment = {**os.environ, "PATH": "/-:" * 40_000 + os.environ["PATH"], "CAPSTAN_LAB": MARK}
    interrupt = f"read line; sleep 0.02; kill -USR1 {os.getpid()}"
    with subprocess.Popen(["sh", "-c", interrupt], stdin=subprocess.PIPE, bufsize=0) as shell:

        def write_and_start() -> None:
            assert shell.stdin is not None
            shell.stdin.write(b"now\n")
            complete(["sleep", "1000"], environment)

        with pytest.raises(Interrupted):
            write_and_start()
    assert find_processes(MARK) == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("threading.py", "Event.wait"),  # a thread begins
        ("namespaces.py", "_completed"),
        ("subprocess.py", "Popen.__enter__"),
        ("subprocess.py", "Popen.communicate"),
    ],
)
def test_a_command_that_is_interrupted_between_two_calls_leaves_no_process(file: str, function: str) -> None:
    """Python looks for signals where a function begins: the caller may have let go of the child by then."""

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_qualname == function and frame.f_code.co_filename.endswith(f"/{file}"):
            sys.settrace(None)
            raise Interrupted

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(Interrupted):
            complete(["sleep", "1000"], {**os.environ, "CAPSTAN_LAB": MARK})
    finally:
        sys.settrace(before)
    assert find_processes(MARK) == []
