"""Which labs are registered, which are alive, and that only marked processes are ever ended."""

from __future__ import annotations

import fcntl
import gc
import os
import secrets
import stat
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from topologies import reaper, registry
from topologies.exec import exec_in_lab, host_command
from topologies.processes import (
    Spawner,
    end_processes,
    find_processes,
    is_marked,
    lab_environment,
    start_time,
)
from topologies.registry import LabError, LabRecord

TAG = secrets.token_hex(4)
"""Of this file's marks: they are looked for among all processes of the machine, and what has them is ended."""
ABC, XYZ = f"abc{TAG}", f"xyz{TAG}"


@pytest.fixture
def run_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "capstan"
    monkeypatch.setattr(registry, "RUN_ROOT", root)
    return root


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_register_find_and_forget(run_root: Path) -> None:
    record = registry.register(ABC)
    assert record.alive
    assert registry.find_lab() == registry.find_lab(ABC) == record
    other = registry.register(XYZ)
    assert other.subnet != record.subnet
    with pytest.raises(LabError, match=rf"several labs run.*{ABC}, {XYZ}"):
        registry.find_lab()
    with pytest.raises(LabError, match=f"no lab 'nope' runs; running: {ABC}, {XYZ}"):
        registry.find_lab("nope")
    for lab_id in (ABC, XYZ):
        assert registry.end_lab(lab_id, None).directories == (str(run_root / lab_id),)
    assert not run_root.exists(), "the last lab takes the directory with it"
    with pytest.raises(LabError, match="capstan lab"):
        registry.find_lab()


def test_an_id_is_taken_once(run_root: Path) -> None:
    registry.register(ABC)
    with pytest.raises(LabError, match="another id"):
        registry.register(ABC)
    assert registry.find_lab(ABC).lab_id == ABC


def test_another_user_cannot_open_what_the_lock_is_on(run_root: Path) -> None:
    registry.register(ABC)
    assert stat.S_IMODE(run_root.stat().st_mode) & 0o066 == 0


@pytest.mark.parametrize("lab_id", ["", "UPPER", "a/b", "..", "twelve-chars", "abcdefghijkl"])
def test_an_id_must_fit_an_interface_name(run_root: Path, lab_id: str) -> None:
    with pytest.raises(LabError, match="1 to 11 characters"):
        registry.register(lab_id)
    assert not run_root.exists()


def test_details_are_kept(run_root: Path) -> None:
    record = replace(registry.register(ABC), details={"hosts": {"h1": {"pid": 1}}})
    record.save()
    assert registry.find_lab(ABC) == record


def test_a_lab_dies_with_its_launcher_not_with_a_pid(run_root: Path) -> None:
    record = registry.register(ABC)
    assert record.alive
    assert not replace(record, launcher_pid=ended_process()).alive
    assert not replace(record, launcher_start=record.launcher_start - 1).alive, "the pid was given anew"


def test_clean_ends_dead_labs_only(run_root: Path, sleeper: subprocess.Popen[bytes]) -> None:
    alive, dead = f"on{TAG}", f"off{TAG}"
    registry.register(alive)
    replace(registry.register(dead), launcher_pid=ended_process()).save()
    marked = subprocess.Popen(["sleep", "60"], env=lab_environment(dead))
    spared = subprocess.Popen(["sleep", "60"], env=lab_environment(alive))
    try:
        ended = registry.clean()
        assert [entry.lab_id for entry in ended] == [dead]
        assert [(entry.pid, entry.command) for entry in ended[0].processes] == [(marked.pid, "sleep 60")]
        assert "ended 1 process" in str(ended[0])
        assert marked.wait(60) == -9
        assert spared.poll() is None
        assert sleeper.poll() is None
        assert sorted(os.listdir(run_root)) == [alive]
        assert registry.clean() == []
    finally:
        for process in (marked, spared):
            process.kill()
            process.wait()


def test_what_is_not_a_lab_is_left_alone(run_root: Path) -> None:
    (run_root / "notes").mkdir(parents=True)
    (run_root / "broken").mkdir()
    (run_root / "broken" / "state.json").write_text("{")
    assert registry.labs() == []
    assert registry.clean() == []
    assert sorted(os.listdir(run_root)) == ["broken", "notes"]


def test_clean_spares_a_lab_that_took_the_name_of_a_dead_one_meanwhile(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = f"a{TAG}", f"b{TAG}"
    for lab_id in (first, second):
        replace(registry.register(lab_id), launcher_pid=ended_process()).save()
    end_lab = registry.end_lab

    def end_both(lab_id: str, home: int | None) -> registry.Ended:
        ended = end_lab(lab_id, home)
        end_lab(second, home)  # as its reaper does
        registry.register(second)
        return ended

    monkeypatch.setattr(registry, "end_lab", end_both)
    assert [ended.lab_id for ended in registry.clean()] == [first]
    assert registry.find_lab().lab_id == second


def test_the_end_of_a_lab_leaves_the_directory_to_another_that_took_its_name_meanwhile(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = registry.register(ABC)
    replace(record, launcher_pid=ended_process()).save()

    def become_another(*_: object) -> tuple[tuple[()], tuple[()]]:
        record.save()
        return (), ()

    monkeypatch.setattr(registry, "_end_once", become_another)
    assert registry.end_lab(ABC, None).directories == ()
    assert registry.find_lab(ABC) == record


def test_no_end_of_a_lab_waits_for_ever_for_a_process_that_hangs_with_the_lock(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LOCK_S", 0.1)
    record = registry.register(ABC)
    replace(record, launcher_pid=ended_process()).save()
    handle = os.open(run_root, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert registry.end_lab(ABC, None).directories == ()
        with pytest.raises(LabError, match=r"holds the lock on .* for more than 0.1 s: `fuser"):
            registry.clean()
    finally:
        os.close(handle)
    assert [ended.directories for ended in registry.clean()] == [(str(record.run_dir),)]
    assert not run_root.exists()


def test_marks_are_whole_variables() -> None:
    cases = {
        f"CAPSTAN_LAB={ABC}": True,
        f"CAPSTAN_LAB={ABC}d": False,
        f"XCAPSTAN_LAB={ABC}": False,
        f"NOTE=CAPSTAN_LAB={ABC}": False,
    }
    for variable, expected in cases.items():
        name, _, value = variable.partition("=")
        with subprocess.Popen(["sleep", "60"], env={**os.environ, name: value}) as process:
            deadline = time.monotonic() + 60
            while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                assert time.monotonic() < deadline
            assert is_marked(process.pid, ABC) is expected, variable
            assert (process.pid in find_processes(ABC)) is expected
            process.kill()


def test_children_of_what_is_ended_are_ended_too() -> None:
    brood = f"brood{TAG}"
    # a shell that starts a new child as soon as one dies
    code = "while :; do sleep 60; done"
    with subprocess.Popen(["sh", "-c", code], env=lab_environment(brood), start_new_session=True) as shell:
        ended = end_processes(brood)
        assert shell.pid in [entry.pid for entry in ended]
    assert find_processes(brood) == []


def test_a_zombie_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        deadline = time.monotonic() + 60
        while start_time(process.pid) is not None:
            assert time.monotonic() < deadline
    assert start_time(process.pid) is None
    assert start_time(os.getpid()) is not None


def test_spawner_marks_and_outlives_the_thread_that_asked() -> None:
    from threading import Thread

    spawner = Spawner(ABC)
    processes: list[subprocess.Popen[bytes]] = []
    thread = Thread(target=lambda: processes.append(spawner.popen(None, ["sleep", "60"])))
    thread.start()
    thread.join()
    (process,) = processes
    time.sleep(0.1)
    assert process.poll() is None, "the parent-death signal must not come from the thread that asked"
    assert os.getsid(process.pid) == process.pid
    spawner.close()
    assert process.wait(60) == -9
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        Spawner(ABC).popen(None, ["no-such-program"])


def test_a_spawner_keeps_nothing_of_what_has_been_collected() -> None:
    """`show` starts a generator a host for every round, for as long as it is up."""
    spawner = Spawner(ABC)
    first = spawner.popen(None, ["true"])
    assert first.wait(60) == 0
    kept = weakref.ref(first)
    del first
    assert spawner.popen(None, ["true"]).wait(60) == 0
    gc.collect()
    assert kept() is None
    spawner.close()


def test_exec_says_what_is_wrong() -> None:
    record = LabRecord(ABC, os.getpid(), 0, None, "198.18.0.0/22")
    with pytest.raises(LabError, match="still starting"):
        host_command(record, "h1", ["true"], Path("/etc/hosts"))
    hosts = {"h1": {"pid": os.getpid(), "start": start_time(os.getpid())}, "h2": {"pid": 1, "start": -1}}
    record = replace(record, details={"hosts": hosts})
    with pytest.raises(LabError, match="no host 'h9'; there are h1, h2"):
        host_command(record, "h9", ["true"], Path("/etc/hosts"))
    with pytest.raises(LabError, match="has ended"):
        host_command(record, "h2", ["true"], Path("/etc/hosts"))
    assert host_command(record, "h1", ["echo", "a b"], Path("/x"))[-2:] == ["echo", "a b"]
    assert f"--net=/proc/{os.getpid()}/ns/net" in host_command(record, "h1", ["true"], Path("/x"))


def test_a_program_for_a_lab_that_is_still_starting_has_to_wait(run_root: Path) -> None:
    registry.register(ABC)
    with pytest.raises(LabError, match="still starting"):
        exec_in_lab("h1", ["true"], ABC)
    assert [path.name for path in (run_root / ABC).iterdir()] == ["state.json"]


def test_a_program_whose_lab_ends_meanwhile_has_its_own_exit_code(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = registry.register(ABC)
    (record.run_dir / "hosts").write_text("")
    ends = ["sh", "-c", 'rm -r "$0"; exit 7', str(record.run_dir)]
    monkeypatch.setattr("topologies.exec.host_command", lambda *_: ends)
    assert exec_in_lab("h1", ["true"], ABC) == 7


def test_the_reaper_ends_when_asked(run_root: Path) -> None:
    """Without a lab there is nothing to end; it must still go when its launcher's pipe closes."""
    done = subprocess.run(
        [sys.executable, "-m", "topologies.reaper", f"not{TAG}", str(os.getpid())],
        input=b"",
        capture_output=True,
        cwd=Path(registry.__file__).parents[1],
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reaper_ends_only_the_lab_of_its_own_launcher(run_root: Path) -> None:
    mine = registry.register(ABC)
    registry.end_lab_of(ABC, mine.launcher_pid + 1, None)
    assert registry.find_lab(ABC) == mine
    registry.end_lab_of(ABC, mine.launcher_pid, None)
    assert not run_root.exists()


def test_a_reaper_waits_for_children_of_a_launcher_that_left_its_lab_only(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(reaper, "sleep", waited.append)
    monkeypatch.setattr(registry, "LOOK_AGAIN_S", 0.0)
    reaper.end_what_is_left(ABC, os.getpid(), None)
    assert waited == []
    registry.register(ABC)
    reaper.end_what_is_left(ABC, os.getpid(), None)
    assert waited == [reaper.SETTLE_SECONDS]
    assert not run_root.exists()


def test_a_launcher_killed_while_it_registers_leaves_no_lab(run_root: Path) -> None:
    """What it leaves is a draft: no lab, in no other's way, and gone with the reaper or `clean`."""
    for end in (lambda: registry.end_lab_of(ABC, 77, None), registry.clean):
        draft = run_root / f".{ABC}-77"
        draft.mkdir(parents=True)
        assert registry.labs() == []
        end()
        assert not run_root.exists()
    (run_root / f".{ABC}-77").mkdir(parents=True)
    assert registry.register(ABC).alive


def test_a_process_killed_while_it_removes_a_directory_leaves_what_clean_removes(
    run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(path: Path, **_: object) -> None:
        (path / "state.json").unlink(missing_ok=True)
        raise KeyboardInterrupt

    registry.register(ABC)
    with monkeypatch.context() as patch:
        patch.setattr("topologies.registry.shutil.rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            registry.end_lab(ABC, None)
    assert registry.labs() == []
    assert registry.clean() == []
    assert not run_root.exists()
