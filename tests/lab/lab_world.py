"""A world of its own for programs of tests that compare everything before and after.

The world is a fresh pid, network and mount namespace with an empty /run and a control group of its own, so that
whatever else happens on the machine cannot be seen, and nothing here can be mistaken for another's.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import eventually
from topologies.cgroup import place_for

ROOT = Path(__file__).resolve().parents[2]
ENTER = ("unshare", "--pid", "--fork", "--kill-child", "--net", "--mount", "--mount-proc", "--")
PRIVATE = ("/run",) if ROOT.is_relative_to("/tmp") else ("/run", "/tmp")
"""Directories that are empty in the world: a checkout below one of them would be gone with it."""
PREPARE = (
    "".join(f"mount -t tmpfs tmpfs {path} && " for path in PRIVATE) + 'ip link set lo up && "$@"; exit $?'
)
VOLATILE = re.compile(r"conntrack_count|fastopen_key|/fs/(?!file-max|nr_open)|/pty/nr$")


def group_of_this() -> Path | None:
    """Return the directory of this process's control group, outside of labs' groups; None if it may make none."""
    place = place_for("world")
    return None if place is None else place.parent


@contextmanager
def group_for_world() -> Iterator[list[str]]:
    """Yield words that start a program in a control group of its own; fail if that cannot be removed then."""
    above = group_of_this()
    if above is None:
        yield []
        return
    group = above / f"world-{secrets.token_hex(6)}"
    group.mkdir()
    try:
        yield ["sh", "-c", f'echo 0 >{group}/cgroup.procs && exec "$@"', "in-group"]
    finally:
        deadline = time.monotonic() + 60  # the kernel has not done with those that ended just now
        while group.exists():
            with suppress(OSError):
                group.rmdir()
            left = sorted(str(path) for path in group.glob("*/")), read(f"{group}/cgroup.procs").split()
            if time.monotonic() > deadline:
                for path in (*group.glob("*/"), group):
                    path.rmdir()
                raise AssertionError(f"groups and processes left in {group}: {left}")
            time.sleep(0.02)


def run_in_world(*argv: str, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    """Run a program in a world of its own, return what it said and its exit code."""
    with group_for_world() as enter_group:
        done = subprocess.run(
            [*enter_group, *ENTER, "sh", "-c", PREPARE, "world", *argv],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        # Printed now: the end of this block reports groups that a failed scenario leaves, and not its output.
        print(done.stdout, done.stderr, sep="")
        return done


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def others() -> tuple[dict[str, str], dict[str, str]]:
    """Return the words and the network of each process but this one and zombies, both by PID."""
    processes, networks = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        state = read(f"/proc/{name}/stat").rpartition(")")[2].split()
        if int(name) != os.getpid() and state and state[0] != "Z":
            with suppress(OSError):  # it may end while we look
                networks[name] = os.readlink(f"/proc/{name}/ns/net")
                processes[name] = read(f"/proc/{name}/cmdline").replace("\0", " ")
    return processes, networks


def look() -> dict[str, Any]:
    """Return all that a lab could leave behind in this world, by kind."""
    processes, networks = others()
    descriptors = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if fd.isdigit() and os.path.lexists(f"/proc/self/fd/{fd}")
    ]
    sysctls = {}
    for folder in ("net", "fs", "kernel/pty"):
        for top, _, names in os.walk(f"/proc/sys/{folder}"):  # takes it easy when an interface goes meanwhile
            sysctls.update({f"{top}/{name}": read(f"{top}/{name}") for name in names})
    sysctls = {path: value for path, value in sysctls.items() if not VOLATILE.search(path)}
    return {
        "processes": processes,
        "networks": sorted({*networks.values(), os.readlink("/proc/self/ns/net")}),
        "held namespaces": sorted(entry for entry in descriptors if entry.startswith("net:")),
        "mounts": [line.split(" ", 1)[1] for line in read("/proc/self/mountinfo").splitlines()],
        "interfaces": output("ip", "-o", "link"),
        "addresses": output("ip", "-o", "addr"),
        "routes": output("ip", "route", "show", "table", "all"),
        "queueing": output("tc", "qdisc"),
        "groups": groups(),
        "files": sorted(path for top in PRIVATE for path in files_below(top)),
        "sysctls": sysctls,
    }


def groups() -> list[str]:
    """Return the names of the control groups below the world's."""
    top = group_of_this()
    return [] if top is None else sorted(path.name for path in top.iterdir() if path.is_dir())


def expect_group(lab_id: str) -> None:
    """Assert that a running lab has one group, with all processes in it but its reaper and this one.

    The launcher's own commands (tc, which looks at the queues of a switch that has come) are outside while they last.
    """
    top = group_of_this()
    if top is None or not Path("/proc/pressure/cpu").exists():
        return
    (name,) = groups()
    assert name.startswith(f"capstan-{lab_id}-")
    assert "some" in read(f"{top / name}/cpu.pressure")
    missing: set[str] = set()

    def all_inside() -> bool:
        nonlocal missing
        processes, _ = others()
        inside = read(f"{top / name}/cgroup.procs").split()
        missing = {words for pid, words in processes.items() if pid not in inside} - {processes.get("1", "")}
        switches = sum("ovs-vswitchd" in processes.get(pid, "") for pid in inside)
        return switches >= 2 and all("topologies.reaper" in words for words in missing)

    eventually(all_inside, lambda: f"all processes in {name}; outside: {missing}")


def files_below(top: str) -> Iterator[str]:
    """Yield the paths of all that is below *top*, also while some of it is being taken away."""
    for place, directories, names in os.walk(top):
        yield from (os.path.join(place, name) for name in (*directories, *names))


def look_since(before: dict[str, Any]) -> dict[str, Any]:
    """Return look(), as if no mount had vanished: those are copies, and go when their originals go elsewhere."""
    now = look()
    if set(now["mounts"]) <= set(before["mounts"]):
        now["mounts"] = before["mounts"]
    return now


def expect_same(before: dict[str, Any], seconds: float, what: str) -> None:
    """Assert that the world becomes as it was within so many seconds.

    A look reads thousands of files, so it waits until the processes are as they were: they go last.
    """
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() >= deadline
        if late or others()[0] == before["processes"]:
            now = look_since(before)
            if late or now == before:
                break
        time.sleep(0.05)
    for part, value in before.items():
        assert now[part] == value, f"{what}: {part} differ: {value!r} became {now[part]!r}"
