"""Steps of a test run, as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.steps import Step, beside, check
from tests.waiting import eventually

TWO_THAT_STAY = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(other.pid))
time.sleep(600)
"""


def step(name: str, program: str, *arguments: object) -> Step:
    return Step((name,), (sys.executable, "-c", program, *map(str, arguments)))


def test_what_runs_beside_is_printed_after_the_block_in_order(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The first waits for a file of the block's, so both ran while the block did."""
    wait = "import os, sys\nwhile not os.path.exists(sys.argv[1]): pass\nprint('first')"
    steps = [step("one", wait, tmp_path / "go"), step("two", "print('second')")]
    with beside(steps, tmp_path):
        check(step("three", "open('go', 'w'); print('block')"), tmp_path)
    out, err = capfdbinary.readouterr()
    assert out.split() == [b"block", b"first", b"second"]
    assert err.split() == [b"$", b"three", b"$", b"one", b"$", b"two"]


def test_a_step_that_fails_ends_the_program_with_its_code(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended, beside([step("one", "raise SystemExit(7)")], tmp_path):
        check(step("two", "pass"), tmp_path)
    assert ended.value.code == 7


def test_what_had_ended_is_printed_where_the_block_fails(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The block cannot see the end of what runs beside it: it waits for its last act, and fails some time later."""
    note = tmp_path / "ended"

    def failing() -> None:
        with beside([step("one", f"print('first')\nopen({str(note)!r}, 'w')")], tmp_path):
            eventually(note.exists)
            check(step("two", "import time; time.sleep(0.5); raise SystemExit(3)"), tmp_path)

    with pytest.raises(SystemExit):
        failing()
    assert capfdbinary.readouterr().out.split() == [b"first"]


def test_nothing_runs_on_where_the_block_fails(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def failing() -> None:
        with beside([step("one", TWO_THAT_STAY, note)], tmp_path):
            eventually(lambda: note.exists() and note.read_text())
            check(step("two", "raise SystemExit(3)"), tmp_path)

    with pytest.raises(SystemExit) as ended:
        failing()
    assert ended.value.code == 3
    eventually(lambda: not running(note.read_text()))


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
from cli.steps import Step, check

program = '''
import sys, time
from pathlib import Path
try:
    Path(sys.argv[1]).touch()
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(0.5)  # labs are taken down; another interrupt would end that
    sys.exit(5)
'''
check(Step(("waits",), (sys.executable, "-c", program, sys.argv[1])), Path("."))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_a_step_once_and_its_end_is_waited_for(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Sent twice, as by `timeout`, which signals its child and then the group."""
    note = tmp_path / "up"
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(note)],
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # these tests may run under nohup
    )
    eventually(note.exists)
    program.send_signal(number)
    time.sleep(0.1)
    program.send_signal(number)
    assert program.wait(60) == 5


def test_a_step_that_takes_no_notice_of_a_signal_is_the_last_one(tmp_path: Path) -> None:
    busy = "trap 'exit 0' INT; kill -TERM $PPID; while :; do sleep 0.05; done"
    with pytest.raises(SystemExit) as ended:
        check(Step(("one",), ("sh", "-c", busy)), tmp_path)
    assert ended.value.code == 128 + signal.SIGINT


def test_a_signal_that_the_program_ignores_interrupts_no_step(tmp_path: Path) -> None:
    """As SIGHUP under `nohup`: the terminal may go."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        check(Step(("one",), ("sh", "-c", "kill -HUP $PPID; exec sleep 0.5")), tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_comes_while_a_step_is_made_interrupts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the program, and the step went on."""
    make, made = subprocess.Popen, list[subprocess.Popen[bytes]]()

    def and_be_signalled(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(make(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return made[-1]

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    monkeypatch.setattr("cli.steps.subprocess.Popen", and_be_signalled)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit) as ended:
            check(Step(("one",), ("sleep", "600")), tmp_path)
        assert ended.value.code == 128 + signal.SIGINT
        assert made[0].poll() == -signal.SIGINT, "it has ended"
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in made:
            process.kill()
            process.wait()


def test_what_takes_only_idle_time_passes_that_on_to_what_it_starts(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    policy = "import os; print(os.sched_getscheduler(0) == os.SCHED_IDLE)"
    wait = "import os, subprocess, sys\nwhile not os.path.exists('go'): pass\n"
    wait += f"subprocess.run([sys.executable, '-c', {policy!r}])"
    idle = Step(("one",), (sys.executable, "-c", wait), only_idle=True)
    with beside([idle], tmp_path):
        check(step("two", "open('go', 'w')"), tmp_path)
    assert capfdbinary.readouterr().out.split() == [b"True"]


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="this kernel shares by process, not by session"
)
def test_what_takes_only_idle_time_does_so_among_sessions_too(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    show = "from pathlib import Path; print(Path('/proc/self/autogroup').read_text().split()[-1])"
    wait = f"import os\nwhile not os.path.exists('go'): pass\n{show}"
    idle = Step(("one",), (sys.executable, "-c", wait), only_idle=True)
    with beside([idle], tmp_path):
        check(step("two", "open('go', 'w')"), tmp_path)
    assert capfdbinary.readouterr().out.split() == [b"19"]


def running(pid: str) -> bool:
    """Return whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
