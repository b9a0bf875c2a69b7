"""What every lab test has to leave behind: nothing."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from topologies.registry import RUN_ROOT, labs


def _orphans() -> set[str]:
    """Processes, directories and interfaces that carry the id of a lab that does not run."""
    alive = {record.lab_id for record in labs() if record.alive}
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        marks = [
            entry.removeprefix(b"CAPSTAN_LAB=") for entry in variables if entry.startswith(b"CAPSTAN_LAB=")
        ]
        found |= {f"process {name} of lab {mark.decode()}" for mark in marks if mark.decode() not in alive}
    if RUN_ROOT.exists():
        found |= {f"{path}" for path in RUN_ROOT.iterdir() if path.name not in alive}
    for name in os.listdir("/proc/sys/net/ipv4/conf"):
        if name.startswith("cap-") and name.removeprefix("cap-") not in alive:
            found.add(f"interface {name}")
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fail the test if it leaves a process, directory or interface of a lab that has ended."""
    before = _orphans()
    yield
    deadline = time.monotonic() + 5
    while (left := _orphans() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """The module lab_world: programs in a world of their own."""
    spec = importlib.util.spec_from_file_location("lab_world", Path(__file__).with_name("lab_world.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
