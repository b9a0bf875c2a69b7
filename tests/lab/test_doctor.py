"""`capstan doctor` as root: it tries the real things and leaves nothing, and sees what a container lacks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab_scenarios import run_scenario

ROOT = Path(__file__).resolve().parents[2]
DOCTOR = [str(ROOT / "capstan"), "doctor", "--json", "-"]


def findings(*before: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = subprocess.run([*before, *DOCTOR], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.returncode, {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def test_a_machine_on_which_labs_run_passes() -> None:
    code, found = findings()
    assert code == 0
    assert {one["state"] for one in found.values() if one["part"] == "lab"} == {"ok"}
    assert found["u32 filters"]["state"] == "ok"


def test_the_world_is_as_before() -> None:
    run_scenario("doctor_leaves_nothing")


def test_without_a_capability_it_is_named_with_what_to_do() -> None:
    code, found = findings("setpriv", "--bounding-set", "-sys_admin")
    assert code == 1
    assert found["CAP_SYS_ADMIN"]["state"] == "lacks"
    assert found["network namespaces"]["state"] == "lacks"
    assert "--cap-add SYS_ADMIN" in found["network namespaces"]["advice"]
    assert found["htb"]["state"] == "unknown", "never tried outside of a namespace of its own"


def test_a_cause_that_takes_others_with_it_is_advised_on_once() -> None:
    code, found = findings("setpriv", "--bounding-set", "-net_admin")
    assert code == 1
    assert found["veth"]["state"] == "lacks"
    assert "--cap-add NET_ADMIN" in found["veth"]["advice"]
    assert "--cap-add NET_ADMIN" in found["tun"]["advice"]
    assert found["htb"]["state"] == "unknown", "there is no port to try it on"


@pytest.mark.parametrize("capability", ["sys_admin", "net_admin", "net_raw"])
@pytest.mark.parametrize("command", [["run", "small"], ["demo"]])
def test_commands_that_need_a_lab_say_what_is_lacking(command: list[str], capability: str) -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set", f"-{capability}", ROOT / "capstan", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert f"'{command[0]}' cannot build a lab" in done.stderr
    assert f"--cap-add {capability.upper()}" in done.stderr
    assert done.stdout == ""
