"""Programs on a host of a running lab: names, exit codes, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, eventually
from topologies.exec import exec_in_lab
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.processes import start_time
from topologies.registry import LabError

ROOT = Path(__file__).resolve().parents[2]
EXEC = (
    "import sys; from topologies.exec import exec_in_lab\n"
    "sys.exit(exec_in_lab(sys.argv[1], sys.argv[3:], sys.argv[2]))"
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=2)) as lab:
        lab.switch("l1").ofctl("add-flow", "actions=flood")
        yield lab


def start(lab: Lab, host: str, *argv: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", EXEC, host, lab.lab_id, *argv]
    env = {**os.environ, **variables}
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def run(lab: Lab, host: str, *argv: str) -> tuple[int, str]:
    process = start(lab, host, *argv)
    out, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out


def test_hosts_are_known_by_name(lab: Lab) -> None:
    assert run(lab, "h1", "getent", "ahostsv4", "h2")[1].startswith("10.128.1.2")
    assert run(lab, "h1", "getent", "hosts", "h2-v6")[1].startswith("fd00:ca::1:2")
    code, out = run(lab, "h1", "ping", "-c", "1", "-W", "60", "h2-underlay")
    assert code == 0, out
    names = Path("/etc/hosts").read_text()
    assert "10.128.1.2" not in names, "no other program sees the names"
    machine = run(lab, "h1", "cat", "/etc/hosts")[1]
    assert all(line in machine for line in names.splitlines())
    left = [path.name for path in lab.run_dir.iterdir() if path.name.startswith("hosts-")]
    assert left == []


def test_programs_that_are_not_roots_know_hosts_by_name_too(lab: Lab) -> None:
    as_a_user = ("setpriv", "--reuid=65534", "--clear-groups", "--")
    code, out = run(lab, "h1", *as_a_user, "getent", "ahostsv4", "h2")
    assert (code, out.split(" ")[0]) == (0, "10.128.1.2")


def test_it_runs_in_the_host(lab: Lab) -> None:
    assert "h2-eth0" in run(lab, "h2", "ip", "-o", "link")[1]
    assert run(lab, "h2", "printenv", "CAPSTAN_LAB") == (0, f"{lab.lab_id}\n")
    assert run(lab, "h1", "pwd") == (0, f"{ROOT}\n")
    assert run(lab, "h1", "echo", "a  b", "$HOME", "'") == (0, "a  b $HOME '\n")


@pytest.mark.parametrize(
    ("given", "seen"), [(f"{ROOT}", None), (f"{ROOT}:/own/modules", "/own/modules"), ("/a:/b", "/a:/b")]
)
def test_programs_do_not_see_where_capstan_has_its_modules(lab: Lab, given: str, seen: str | None) -> None:
    prefix = "/root/.cache/capstan/pycache"
    launchers = {"PYTHONPATH": given, "PYTHONPYCACHEPREFIX": prefix, "PYTHONNOUSERSITE": "1"}
    process = start(lab, "h1", "env", **launchers, OTHER="kept")
    out, _ = process.communicate(timeout=PATIENCE_S)
    variables = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    assert variables.get("PYTHONPATH") == seen
    assert not {"PYTHONPYCACHEPREFIX", "PYTHONNOUSERSITE"} & variables.keys()
    assert variables["OTHER"] == "kept"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-program"], 127),
    ],
)
def test_exit_codes_are_passed_on(lab: Lab, argv: list[str], code: int) -> None:
    assert run(lab, "h1", *argv)[0] == code


def test_a_signal_reaches_the_program(lab: Lab) -> None:
    process = start(
        lab, "h1", "sh", "-c", "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "caught\n"
    assert process.wait(60) == 3


def test_the_program_ends_with_exec(lab: Lab) -> None:
    process = start(lab, "h1", "sh", "-c", "echo $$; exec sleep 1000")
    assert process.stdout is not None
    program = int(process.stdout.readline())  # a host has no process ids of its own
    began = start_time(program)
    assert began is not None
    process.kill()
    process.wait()
    eventually(lambda: start_time(program) != began, "its end")


def test_what_is_wrong_is_said(lab: Lab) -> None:
    with pytest.raises(LabError, match="no host 'h9'; there are h1, h2"):
        exec_in_lab("h9", ["true"], lab.lab_id)
    with pytest.raises(LabError, match="no lab 'nope'"):
        exec_in_lab("h1", ["true"], "nope")
    with pytest.raises(LabError, match="give a command"):
        exec_in_lab("h1", [], lab.lab_id)
