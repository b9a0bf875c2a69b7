"""Limits of a submission's processes together, with a control group where this machine has them, and without."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from classroom import marking, process_group, sandbox
from classroom.labs import LABS
from classroom.marking import Mark, mark_class
from classroom.process_group import Broken, ControlGroup, Most, Process, Session, Use, belonging, candidates
from classroom.submissions import read_submissions
from tests.greedy_submissions import BURNS, EATS, STAYS
from tests.waiting import eventually

MIB = 1024**2


def marked(directory: Path, text: str, limits: sandbox.Limits) -> Mark:
    """Mark the solution of lab 3 with *text* before it, without a sandbox."""
    file = directory / "class" / "ada" / "lab3.py"
    file.parent.mkdir(parents=True)
    file.write_text(text + LABS[3].solution.read_text())
    (mark,) = mark_class(
        read_submissions(directory / "class").submissions, 1, limits=limits, in_sandbox=False
    )
    return mark


@pytest.fixture(params=["group", "no group"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test on a machine that lets groups be made, if this one does, and on a machine that does not."""
    if request.param == "no group":
        monkeypatch.setattr(marking, "place_of_groups", lambda: None)


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_processor_time_of_all_processes_together_is_limited(tmp_path: Path) -> None:
    mark = marked(tmp_path, BURNS, sandbox.Limits(processor_s=3))
    assert mark.error == "takes more than 3 s of processor time: is there a loop without an end?"


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_memory_of_all_processes_together_is_limited(tmp_path: Path) -> None:
    mark = marked(tmp_path, EATS, sandbox.Limits(memory=512 * MIB))
    assert mark.error == "takes more than 0.5 GiB of memory"


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_what_keeps_to_the_limits_together_is_marked(tmp_path: Path) -> None:
    mark = marked(tmp_path, EATS.replace("150 <<", "1 <<"), sandbox.Limits(memory=1024 * MIB))
    assert mark.error is None
    assert mark.right == len(mark.findings) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("then", ["os._exit(0)", "time.sleep(300)"], ids=["end", "limit of time"])
def test_nothing_that_a_submission_started_outlives_it(tmp_path: Path, then: str) -> None:
    pid = tmp_path / "pid"
    text = STAYS.format(pid=str(pid), then=then)
    mark = marked(tmp_path, text, sandbox.Limits(wall_s=12 if "sleep" in then else 180))
    assert ("takes longer than 12 s" if "sleep" in then else "exit code 0") in str(mark.error)
    left = Path("/proc", pid.read_text(), "stat")
    assert not left.exists() or left.read_bytes().rpartition(b")")[2].split()[0] == b"Z"


def test_a_stop_ends_a_submission_early(tmp_path: Path) -> None:
    """Ctrl-C ends the marking, not the submission's session: a stop has to."""
    stopped = threading.Event()
    threading.Timer(0.5, stopped.set).start()
    begun = time.monotonic()
    command = [sys.executable, "-c", "import time; time.sleep(300)"]
    ending = sandbox.run(command, tmp_path / "out", limits=sandbox.LIMITS, group=Session(), stopped=stopped)
    assert ending is Broken.WALL_TIME
    assert time.monotonic() - begun < 60


def test_descendants_and_the_session_belong_together_and_others_do_not() -> None:
    def process(pid: int, parent: int, session: int) -> Process:
        return Process(pid, parent, session, 0.0, ended=False)

    table = [
        process(1, 0, 1),
        process(10, 1, 10),  # the first
        process(11, 10, 10),
        process(12, 11, 12),  # left the session
        process(13, 12, 12),
        process(14, 1, 10),  # its parent has ended
        process(20, 1, 20),
        process(21, 20, 20),
        process(2, 0, 0),  # a kernel's thread
    ]
    assert sorted(found.pid for found in belonging(10, table)) == [10, 11, 12, 13, 14]


def test_a_session_that_has_not_begun_has_nothing_to_count_or_kill() -> None:
    session = Session()
    assert session.use(Most(1, 1, 1)) == Use(0, 0, 0)
    session.end()


@pytest.mark.parametrize(
    ("use", "broken"),
    [
        (Use(15.0, 2048, 64), None),
        (Use(15.1, 2048, 64), Broken.PROCESSOR_TIME),
        (Use(0, 2049, 64), Broken.MEMORY),
        (Use(0, 0, 64 + process_group.OWN_PROCESSES + 1), Broken.PROCESSES),
    ],
)
def test_limits_are_what_may_be_used(use: Use, broken: Broken | None) -> None:
    assert Most(15, 2048, 64).broken_by(use) is broken


def test_memory_that_processes_share_counts_once() -> None:
    held = bytearray(os.urandom(64)) * (4 * MIB)  # 256 MiB, which the child shares as long as neither writes
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    forked = os.fork()
    if forked == 0:
        time.sleep(300)
    try:
        alone = process_group.memory_of([os.getpid()], 10**12)
        assert alone > len(held)
        assert process_group.memory_of([os.getpid(), forked], 10**12) > 1.8 * len(held)
        assert process_group.memory_of([os.getpid(), forked, child.pid], 0) < 1.2 * alone
    finally:
        process_group.kill([forked])
        os.waitpid(forked, 0)
        child.communicate()


def tree(top: Path, **controllers: str) -> None:
    """Make cgroup2 directories by their paths, ``_`` for a slash, each with the controllers of its children."""
    for name, words in controllers.items():
        directory = top.joinpath(*name.split("_"))
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cgroup.procs").touch()
        (directory / "cgroup.subtree_control").write_text(words + "\n")


def test_a_group_is_made_where_the_kernel_limits_memory_if_there_is_such_a_place(tmp_path: Path) -> None:
    tree(tmp_path, a="memory pids cpu", a_b="cpu", a_b_c="")
    own = tmp_path / "a" / "b" / "c"
    assert candidates([own]) == [tmp_path / "a", own, tmp_path / "a" / "b"]


def test_no_group_is_made_in_a_labs_group(tmp_path: Path) -> None:
    tree(tmp_path, a="cpu")
    tree(tmp_path / "a", **{"capstan-ab12-0123abcd": "memory pids"})
    assert candidates([tmp_path / "a" / "capstan-ab12-0123abcd"]) == [tmp_path / "a"]


def test_the_kernel_is_given_the_limits_where_it_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, a="memory pids")
    group = ControlGroup(tmp_path / "a", Most(15, 2048, 64))
    (made,) = [path for path in (tmp_path / "a").iterdir() if path.is_dir()]
    assert (made / "memory.max").read_text() == "2048"
    assert (made / "memory.oom.group").read_text() == "1"
    assert int((made / "pids.max").read_text()) == 64 + process_group.OWN_PROCESSES
    (made / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group.use(Most(15, 2048, 64)) == Use(2.5, 0, 0)
    assert not group.out_of_memory()
    (made / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert group.out_of_memory()


def test_a_group_is_gone_after_its_end() -> None:
    place = process_group.place_of_groups()
    if place is None:
        pytest.skip("no control group can be made here")
    group = ControlGroup(place, Most(15, 64 * MIB, 8))
    process = subprocess.Popen(group.entering(["/bin/sleep", "300"]), start_new_session=True)
    try:
        eventually(lambda: group.use(Most(15, 64 * MIB, 8)).processes == 1)
    finally:
        group.end()
        process.wait()
    assert not [path for path in place.glob(f"capstan-submission-{os.getpid()}-*") if path.is_dir()]


def test_it_is_imported_where_there_is_no_proc() -> None:
    """`lab-check` without --batch runs on Windows, whose `os` has no sysconf() and whose `signal` has no SIGKILL."""
    code = "import os, signal; del os.sysconf, signal.SIGKILL; import cli.commands.lab_check"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_in_memory_count_once_however_many_hold_them() -> None:
    """They are in no process's resident pages: 64 processes with 250 of them held 16 GB that nothing counted."""
    before = process_group.memory_of([os.getpid()], 10**12)
    file = os.memfd_create("held")
    again = os.dup(file)
    try:
        for _ in range(64):
            os.write(file, b"x" * (1 << 20))
        more = process_group.memory_of([os.getpid()], 10**12) - before
    finally:
        os.close(file)
        os.close(again)
    assert 60 << 20 < more < 80 << 20
