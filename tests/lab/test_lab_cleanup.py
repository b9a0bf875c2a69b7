"""Whatever ends a lab, nothing of it is left and nothing of anybody else is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lab.lab_scenarios import run_scenario
from tests.waiting import eventually
from topologies.cgroup import members, place_for
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.processes import lab_networks, start_time
from topologies.registry import LabError, find_lab, labs

HERE = Path(__file__).parent


def test_start_and_stop_leave_the_world_as_it_was() -> None:
    run_scenario("start_stop")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_at_any_moment_leaves_nothing(name: str) -> None:
    run_scenario("interrupt", name)


def test_a_client_that_waits_for_a_switch_ends_with_its_lab() -> None:
    run_scenario("killed_while_a_client_waits")


def test_clean_ends_what_no_other_could() -> None:
    run_scenario("launcher_and_reaper_killed")


def test_foreign_switch_namespace_interface_and_processes_stay() -> None:
    run_scenario("foreign_things_stay")


def test_of_a_named_namespace_only_a_labs_own_program_ends_with_it() -> None:
    run_scenario("a_named_namespace_stays")


def test_two_labs_at_once_end_on_their_own() -> None:
    spec = FabricSpec(leaves=1, spines=1, hosts_per_leaf=2)
    with Lab(spec) as first, Lab(spec) as second:
        assert {first.lab_id, second.lab_id} <= {record.lab_id for record in labs() if record.alive}
        assert first.controller_endpoint[0] != second.controller_endpoint[0]
        for lab in (first, second):
            lab.switch("l1").ofctl("add-flow", "actions=flood")
            assert lab.popen("h1", ["ping", "-c", "1", "-W", "50", "10.0.1.2"], stdout=-3).wait(60) == 0
        first.stop()
        assert second.popen("h2", ["ping", "-c", "1", "-W", "50", "10.0.1.1"], stdout=-3).wait(60) == 0
        assert find_lab(second.lab_id).alive
        with pytest.raises(LabError, match="no lab"):
            find_lab(first.lab_id)


def test_each_lab_of_a_process_has_a_control_group_with_what_it_started() -> None:
    place = place_for("any")
    own = Path("/proc/self/cgroup").read_text()
    spec = FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)
    with Lab(spec) as first, Lab(spec) as second:
        groups = [lab.pressure_file.parent for lab in (first, second) if lab.pressure_file is not None]
        if place is None:  # no cgroup2, or none that may be changed: labs run all the same
            assert groups == []
            return
        assert [path.parent for path in groups] == [place.parent] * 2
        for lab, group in zip((first, second, first), (*groups, groups[0]), strict=True):
            lab.switch("s1").kill()
            lab.restart_switch("s1")
            started = [
                lab.popen("h1", ["sleep", "100"]),
                lab.switch("s1").daemon,
                lab.switch("l1").daemon,
                lab.switch("l1").database_server,
            ]
            pids = {process.pid for process in started if process is not None}
            assert len(pids) == len(started)
            assert pids <= set(members(group))
        assert os.getpid() in members(groups[0]), "where it started something last"
        first.stop()
        assert not groups[0].exists()
        assert second.switch("s1").daemon is not None
        assert "total=" in (groups[1] / "cpu.pressure").read_text()
    assert not groups[1].exists()
    assert Path("/proc/self/cgroup").read_text() == own


def test_stop_ends_programs_that_hide() -> None:
    """A program that wiped its environment and made a session of its own still lives in the lab's namespace."""
    with Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)) as lab:
        command = ["env", "-i", "setsid", "-f", "sh", "-c", "echo $$; exec sleep 1000"]
        hidden = lab.popen("h1", command, stdout=subprocess.PIPE)
        assert hidden.stdout is not None
        pid = int(hidden.stdout.readline())
        assert start_time(pid) is not None
    assert start_time(pid) is None


def test_a_namespace_is_known_by_its_mark_without_a_program_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"{shutil.which('ip')} link set dev lo up alias CAPSTAN_LAB=marked"
    command = ["unshare", "--net", "env", "-i", "/bin/sh", "-c", f"{mark}; echo there; exec sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as hidden:
        try:
            assert hidden.stdout is not None
            assert hidden.stdout.readline() == b"there\n"
            monkeypatch.setenv("PATH", "/nowhere")
            own = os.stat(f"/proc/{hidden.pid}/ns/net").st_ino
            assert lab_networks("marked", None) == {own}
            assert lab_networks("other", None) == set()
        finally:
            hidden.kill()


def test_a_program_ends_with_the_process_that_started_the_lab() -> None:
    code = (
        "import sys, time; from topologies.lab import Lab; from topologies.fabric_spec import FabricSpec\n"
        "lab = Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)).start()\n"
        "print(lab.lab_id, lab.popen('h1', ['sleep', '1000']).pid, flush=True); time.sleep(60)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1]
    )
    assert launcher.stdout is not None
    lab_id, pid = launcher.stdout.readline().split()
    handle = os.pidfd_open(int(pid))
    launcher.send_signal(signal.SIGKILL)
    launcher.wait()

    def ended() -> bool:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, 0)
            return False
        return True

    try:
        eventually(ended, f"process {pid} ends with its launcher")
    finally:
        os.close(handle)
    eventually(lambda: not Path("/run/capstan", lab_id).exists(), "the reaper has cleaned up")


def test_a_lab_that_cannot_start_leaves_nothing_and_says_why() -> None:
    with Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=1), "twice"):
        with pytest.raises(LabError, match="'twice' is registered"):
            Lab(FabricSpec(), "twice").start()
        assert find_lab("twice").alive
    with pytest.raises(RuntimeError, match="nosuchcc"):
        Lab(FabricSpec(leaves=1, spines=1), "badcc", congestion_control="nosuchcc").start()
    assert not Path("/run/capstan/badcc").exists()
