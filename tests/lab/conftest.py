"""What every lab test has to leave behind: nothing."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from topologies.cgroup import lab_of_group, members, place_for
from topologies.registry import RUN_ROOT, labs

OURS = "CAPSTAN_TESTS"
os.environ[OURS] = f"{os.getpid()}.{secrets.token_hex(4)}"
"""All that these tests start inherits it: what lacks it is another user's, who may run labs here meanwhile."""
_foreign: set[str] = set()
"""Labs that were seen alive and are not ours: whatever becomes of them is not ours to judge."""


def _variables(pid: str | int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _is_ours(variables: list[str]) -> bool:
    return f"{OURS}={os.environ[OURS]}" in variables


def _orphans() -> set[str]:
    """Return our processes, directories, interfaces and control groups that carry the id of a lab that does not run."""
    running = [record for record in labs() if record.alive]
    _foreign.update(
        record.lab_id
        for record in running
        if record.launcher_pid != os.getpid() and not _is_ours(_variables(record.launcher_pid))
    )
    known = {record.lab_id for record in running} | _foreign
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        variables = _variables(name)
        marks = [
            entry.removeprefix("CAPSTAN_LAB=") for entry in variables if entry.startswith("CAPSTAN_LAB=")
        ]
        if _is_ours(variables):
            found |= {f"process {name} of lab {mark}" for mark in marks if mark not in known}
    with suppress(FileNotFoundError):  # it goes with the last lab
        found |= {f"{path}" for path in RUN_ROOT.iterdir() if path.name not in known}
    for name in os.listdir("/proc/sys/net/ipv4/conf"):
        if name.startswith("cap-") and name.removeprefix("cap-") not in known:
            found.add(f"interface {name}")
    groups = place_for("any")
    for path in groups.parent.iterdir() if groups is not None else ():
        lab = lab_of_group(path.name)
        # another program's lab may be registered in another /run: its processes are not ours
        ours = all(pid == os.getpid() or _is_ours(_variables(pid)) for pid in members(path))
        if lab is not None and lab not in known and ours:
            found.add(f"control group {path}")
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fail the test if it leaves a process, directory, interface or control group of a lab of ours that has ended."""
    before = _orphans()
    yield
    deadline = time.monotonic() + 60
    while (left := _orphans() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
