"""No step of a lab's start waits for ever: programs that die or never answer end it with the cause; nothing is left."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.lab.lab_scenarios import HUNG_S, run_scenario
from topologies import registry
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.registry import LabError, LabRecord

SPEC = FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)
DIES = "echo 'unshare: No space left on device' >&2; exit 1"
"""A cause that no check beforehand sees: the limit of namespaces is reached while they are made."""


def test_a_shell_that_dies_is_an_error_with_its_last_words() -> None:
    run_scenario(
        "a_program_that",
        DIES,
        "mnexec",
        r"LabError mgmt's shell ended with exit code 1 \(mnexec: unshare: No space left on device\): .*seccomp",
    )


FEW_FILES: Final = """
import resource
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
resource.setrlimit(resource.RLIMIT_NOFILE, (24, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)) as lab:
    print(lab.popen("h1", ["sh", "-c", "ulimit -n"], stdout=-1).communicate()[0].decode())
"""


def test_a_lab_has_the_files_that_it_needs_where_programs_get_few() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FEW_FILES],
        cwd=Path(registry.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 24


HANGS: Final = {
    "mnexec": f"LabError mgmt's shell did not answer within {HUNG_S:g} s",
    "ovsdb-tool": f"CommandError `ovsdb-tool create .*` did not end within {HUNG_S:g} s",
    "genl": f"CommandError `genl .*` did not end within {HUNG_S:g} s",
    "ip": f"CommandError `ip .*` did not end within {HUNG_S:g} s",
    "tc": f"CommandError `tc .*` did not end within {HUNG_S:g} s",
    "ovsdb-server": f"CommandError ovsdb-server of switch l1 was not ready in {HUNG_S:g} s",
    "ovs-vswitchd": f"CommandError ovs-vswitchd of switch l1 was not ready in {HUNG_S:g} s",
    "ovs-vsctl": f"CommandError `ovs-vsctl .*` did not end within {HUNG_S:g} s",
}
"""The error of a lab's start, by the program that never answers."""
AT_ONCE: Final = 8
"""Labs that wait for a program that never answers: each is in a world of its own, and none takes the processor."""


@pytest.fixture(scope="module")
def waited() -> dict[str, Future[None]]:
    """Return how the scenario of each program ended."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {
            name: pool.submit(run_scenario, "a_program_that", "hangs", name, expected)
            for name, expected in HANGS.items()
        }


@pytest.mark.parametrize("name", HANGS)
def test_a_program_that_never_answers_is_named(name: str, waited: dict[str, Future[None]]) -> None:
    waited[name].result()


def test_an_interrupt_before_workers_ask_a_program_that_hangs_leaves_nothing() -> None:
    run_scenario("interrupted_before_it_asks_for_tc")


@pytest.mark.parametrize("name", ["mnexec", "ovsdb-tool", "tc"])
def test_an_interrupt_while_a_program_does_not_answer_leaves_nothing(name: str) -> None:
    run_scenario("interrupted_while_waiting_for", name)


def test_a_command_is_waited_for_without_looking_all_the_time_and_refused_by_a_shell_that_has_died() -> None:
    with Lab(SPEC) as lab:
        host = lab.net["h1"]
        before = time.thread_time()
        assert host.cmd("sleep 1; echo there").strip() == "there"
        assert time.thread_time() - before < 0.5
        host.shell.kill()
        host.shell.wait()
        with pytest.raises(LabError, match="h1's shell has ended with exit code -9"):
            host.cmd("true")


def test_an_interrupt_between_draft_and_registration_leaves_no_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    save = LabRecord.save

    def interrupted(record: LabRecord, directory: Path | None = None) -> None:
        save(record, directory)
        raise KeyboardInterrupt

    monkeypatch.setattr(LabRecord, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Lab(SPEC, "draft").start()
    assert not registry.RUN_ROOT.exists() or not [
        path for path in registry.RUN_ROOT.iterdir() if "draft" in path.name
    ]


def test_an_interrupt_while_a_taken_id_is_registered_ends_nothing_of_the_other_lab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with Lab(SPEC, "other") as lab:
        sleeper = lab.popen("h1", ["sleep", "1000"])
        monkeypatch.setattr("topologies.lab.register", interrupted)
        monkeypatch.setattr("topologies.lab.start_reaper", lambda lab_id: _reaper_of_another_process(lab_id))
        with pytest.raises(KeyboardInterrupt):
            Lab(SPEC, "other").start()
        assert sleeper.poll() is None
        assert registry.find_lab("other").alive


def _reaper_of_another_process(lab_id: str) -> object:
    """Start a reaper whose launcher is not the process that has the other lab."""
    argv = [sys.executable, "-m", "topologies.reaper", lab_id, str(os.getppid())]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=Path(registry.__file__).parents[1])


def test_a_lock_that_another_process_keeps_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LOCK_S", 0.2)
    with Lab(SPEC):  # /run/capstan stays while this one runs
        handle = os.open(registry.RUN_ROOT, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            with pytest.raises(LabError, match=r"holds the lock on /run/capstan for more than 0.2 s: `fuser"):
                registry.register("waits")
        finally:
            os.close(handle)
        registry.register("waits")
        registry.end_lab("waits", None)
