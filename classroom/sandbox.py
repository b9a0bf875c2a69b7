"""A sandbox for a submission: bubblewrap, with limits of time, memory, files and processes.

What runs inside sees the system's programs, the packages of Capstan that checks import, and the submission: read-only,
without network or privileges, and without what else a checkout holds (solutions are in `docs/` and in Git's objects),
other students' folders and home directories. The submission and its check share a process, so one that is written to
cheat can write its own verdict: read what is surprisingly good.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from classroom.process_group import EVERY_S, Broken, Most, ProcessGroup

CAPSTAN: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = (
    "capstan_client",
    "classroom",
    "controller",
    "figures",
    "host_agent",
    "loops",
    "ovsdb",
    "plain",
    "protocol",
)
"""What checks import. Not all of a checkout: a class may lie in it, and solutions do."""
PYTHON: Final = sys.executable
FIRST_USER: Final = 61184
"""Root's sandboxes become users from here on, each its own: a limit on processes counts all that a user has."""
USERS: Final = 4096
SCRATCH_BYTES: Final = 16 << 20
"""Of a sandbox's /tmp, which is in memory; where root marks, its user may not write there."""
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class SandboxError(CapstanError, RuntimeError):
    """No sandbox can be made on this machine; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a submission may take. processor_s, wall_s: seconds; memory, file_size: bytes.

    processor_s, memory, processes: of all its processes together; open_files: of each.
    """

    processor_s: int = 15
    wall_s: float = 180.0
    memory: int = 2 * 1024**3
    file_size: int = 1024**2
    processes: int = 64
    open_files: int = 256

    @property
    def together(self) -> Most:
        """Return what all processes may take together."""
        return Most(self.processor_s, self.memory, self.processes)


LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a submission, its student's results and its verdict lie; results may not exist.

    verdict: a file that is there, of the user that writes it. filter: the file of what may not be asked of the kernel,
    if there is one. user: the id that a sandbox of root becomes.
    """

    file: Path
    results: Path
    verdict: Path
    filter: Path | None = None
    user: int = FIRST_USER


def limited(limits: Limits, command: list[str]) -> list[str]:
    """Return *command* with *limits* on each of its processes: what no process may take alone."""
    return [
        *("prlimit", f"--cpu={limits.processor_s}", f"--as={limits.memory}", f"--fsize={limits.file_size}"),
        *(f"--nproc={limits.processes}", f"--nofile={limits.open_files}", "--core=0", "--"),
        *command,
    ]


def inside(place: Place) -> Place:
    """Return *place* as a sandbox sees it."""
    return Place(
        Path("/submission") / place.file.name,
        Path("/submission/results"),
        Path("/verdict"),
        user=place.user,
    )


def sandboxed(place: Place, arguments: list[str], limits: Limits, *, root: bool) -> list[str]:
    """Return the command that runs ``python ARGUMENTS`` in a sandbox with *place*.

    root: this process is root; the sandbox then becomes an ordinary user by itself instead of by a user namespace.
    """
    within = inside(place)
    command = [] if place.filter is None else ["/bin/sh", "-c", 'exec 9<"$0" && exec "$@"', str(place.filter)]
    command += [
        "bwrap",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    command += ["--die-with-parent", "--new-session", "--clearenv"]
    command += [] if place.filter is None else ["--seccomp", "9"]
    if not root:
        command.append("--unshare-user")
    else:
        # A plain user: root is exempt from limits on processes, and reads every file. A namespace would map it to root.
        command += ["--cap-drop", "ALL"]
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    for path in SYSTEM:
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    command += ["--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]
    command += ["--ro-bind", sys.prefix, "/environment"]
    command += ["--perms", "0755", "--dir", "/capstan", "--tmpfs", "/capstan/docs"]
    for package in PACKAGES:
        command += ["--ro-bind", str(CAPSTAN / package), f"/capstan/{package}"]
    command += ["--perms", "0755", "--dir", "/submission"]
    command += ["--ro-bind", str(place.file), str(within.file)]
    command += ["--ro-bind-try", str(place.results), str(within.results)]
    # The one file of this machine that can be written: its size has a limit, and nothing can be made beside it.
    command += ["--bind", str(place.verdict), str(within.verdict), "--remount-ro", "/capstan/docs"]
    command += ["--remount-ro", "/"]
    for name, value in _environment("/tmp").items():
        command += ["--setenv", name, value]
    command += ["--chdir", "/capstan", "--"]
    if root:
        command += ["setpriv", f"--reuid={place.user}", f"--regid={place.user}", "--clear-groups"]
        command += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
    return [*command, *limited(limits, ["/environment/bin/python", *arguments])]


def check_sandbox() -> None:
    """Raise SandboxError if this machine cannot make a sandbox."""
    remedy = "mark in a container or virtual machine of its own with --without-sandbox (limits stay)"
    if shutil.which("bwrap") is None:
        raise SandboxError(f"'bwrap' is not installed: install Debian's package bubblewrap, or {remedy}")
    tried = subprocess.run(
        ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if tried.returncode:
        last_lines = tried.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
        raise SandboxError(f"no sandbox can be made here ({last_lines[0]}): {remedy}")


def run(
    command: list[str],
    output: Path,
    *,
    limits: Limits,
    group: ProcessGroup,
    environment: dict[str, str] | None = None,
    stopped: threading.Event | None = None,
) -> int | Broken:
    """Run *command* in *group*, write what it prints to *output*, and return its exit code, or the limit it broke.

    All that it started has ended then. Its limit of file size holds for *output* too. stopped: set to end it early.
    """
    deadline = time.monotonic() + limits.wall_s
    with output.open("wb") as printed:
        try:
            process = subprocess.Popen(
                group.entering(command),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=CAPSTAN,
                start_new_session=True,
            )
        except OSError:
            group.end()
            raise
    group.begun(process.pid)
    try:
        broken = _watch(process, limits, group=group, deadline=deadline, stopped=stopped or threading.Event())
    finally:
        os.kill(process.pid, signal.SIGKILL)  # `process.kill()` would reap it first
        group.end()
        code = process.wait()
    return code if broken is None else broken


def _watch(
    process: subprocess.Popen[bytes],
    limits: Limits,
    *,
    group: ProcessGroup,
    deadline: float,
    stopped: threading.Event,
) -> Broken | None:
    """Return the limit that *group* broke before *process* ended, None if it kept to all."""
    ended = os.pidfd_open(process.pid)
    try:
        waiting = select.poll()  # select() cannot take descriptors above 1023
        waiting.register(ended, select.POLLIN)
        while not waiting.poll(EVERY_S * 1000):
            broken = limits.together.broken_by(group.use(limits.together))
            if time.monotonic() > deadline or stopped.is_set():
                broken = broken or Broken.WALL_TIME
            if broken is not None:
                return broken
    finally:
        os.close(ended)
    return Broken.MEMORY if group.out_of_memory() else None


def plain_environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a check without a sandbox."""
    return _environment(str(scratch))


def _environment(scratch: str) -> dict[str, str]:
    # One thread each: numeric libraries would start one a core, each with an address space that counts.
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        "PATH": os.defpath,
        "HOME": scratch,
        "TMPDIR": scratch,
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    } | single
