"""All processes of a submission together: a control group of its own, or else its session and descendants in /proc.

Limits of a process (`prlimit`) hold for each that a submission forks. What all of them take is limited here: by the
kernel where a cgroup2 group has the controllers ``memory`` and ``pids``, and by a look some times a second elsewhere.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from topologies.cgroup import lab_of_group, members, own_directories

EVERY_S: Final = 0.1
"""Between two looks at what a submission takes: at 2 GB/s it may take 0.2 GB past a limit that is not the kernel's."""
OWN_PROCESSES: Final = 8
"""Processes that start and hold a submission: bwrap, its init, setpriv."""
_CONTROLLERS: Final = frozenset({"memory", "pids"})
_REMOVED_S: Final = 5.0


class Broken(Enum):
    """The limit for which a submission was ended."""

    WALL_TIME = "wall time"
    PROCESSOR_TIME = "processor time"
    MEMORY = "memory"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Use:
    """What all processes take together. processor_s: since they began; memory: bytes; processes: that live."""

    processor_s: float
    memory: int
    processes: int


@dataclass(frozen=True, slots=True)
class Most:
    """What all processes of a submission may take together. processor_s: seconds; memory: bytes."""

    processor_s: float
    memory: int
    processes: int

    def broken_by(self, use: Use) -> Broken | None:
        """Return the limit that *use* is above, None if it is within all."""
        if use.processor_s > self.processor_s:
            return Broken.PROCESSOR_TIME
        if use.memory > self.memory:
            return Broken.MEMORY
        return Broken.PROCESSES if use.processes > self.processes + OWN_PROCESSES else None


class ProcessGroup(Protocol):
    """The processes of a submission."""

    def entering(self, command: list[str]) -> list[str]:
        """Return *command* as it is started, in a session of its own, to be in the group."""
        ...

    def begun(self, pid: int) -> None:
        """Note the first process."""
        ...

    def use(self, most: Most) -> Use:
        """Return what all take now; memory exactly only above *most*."""
        ...

    def out_of_memory(self) -> bool:
        """Return whether the kernel has ended a process that went beyond the group's memory."""
        ...

    def end(self) -> None:
        """Kill all that are left, and remove the group. Before the first process, whose number it needs, is reaped."""
        ...


class ControlGroup:
    """A cgroup2 group, which no process leaves by itself; its processor time counts those that have ended, too."""

    def __init__(self, parent: Path, most: Most) -> None:
        """Make the group below *parent*. Raises OSError."""
        self._directory = parent / f"capstan-submission-{os.getpid()}-{secrets.token_hex(4)}"
        self._directory.mkdir(mode=0o755)
        self._kernel_counts = has_controllers(parent)
        if self._kernel_counts:
            self._write("memory.max", str(most.memory))
            self._write("memory.oom.group", "1")
            self._write("pids.max", str(most.processes + OWN_PROCESSES))
            with suppress(OSError):  # a kernel without swap
                self._write("memory.swap.max", "0")

    def entering(self, command: list[str]) -> list[str]:
        """Return *command*, started by a shell that enters the group first."""
        return [
            "/bin/sh",
            "-c",
            'echo 0 > "$0" && exec "$@"',
            str(self._directory / "cgroup.procs"),
            *command,
        ]

    def begun(self, pid: int) -> None:
        """Do nothing: the kernel knows the group's processes."""

    def use(self, most: Most) -> Use:
        """Return what the group takes; its memory is the kernel's to limit where it does."""
        pids = members(self._directory)
        memory = 0 if self._kernel_counts else memory_of(pids, most.memory)
        return Use(self._number("cpu.stat", "usage_usec") / 1e6, memory, len(pids))

    def out_of_memory(self) -> bool:
        """Return whether the kernel has ended a process of the group for its memory."""
        return self._kernel_counts and self._number("memory.events", "oom_kill") > 0

    def end(self) -> None:
        """Kill all in the group, and remove it when the kernel has done with them."""
        deadline = time.monotonic() + _REMOVED_S
        while self._directory.exists() and time.monotonic() < deadline:
            kill(members(self._directory))
            try:
                self._directory.rmdir()
            except OSError:
                time.sleep(EVERY_S / 10)

    def _write(self, name: str, text: str) -> None:
        (self._directory / name).write_text(text, encoding="ascii")

    def _number(self, name: str, key: str) -> int:
        try:
            lines = (self._directory / name).read_text(encoding="ascii").splitlines()
        except OSError:
            return 0
        return next((int(value) for word, value in map(str.split, lines) if word == key), 0)


class Session:
    """The descendants of a first process, and all of its session, as /proc has them.

    Where there is no sandbox, a process that leaves both, and whose parent ends, is no longer counted: limits of a
    process hold for it.
    """

    def __init__(self) -> None:
        self._first: int | None = None

    def entering(self, command: list[str]) -> list[str]:
        """Return *command* as it is."""
        return command

    def begun(self, pid: int) -> None:
        """Note the first process, which has the session's number."""
        self._first = pid

    def use(self, most: Most) -> Use:
        """Return what the processes take, with the time of those that have ended and were waited for."""
        members = [] if self._first is None else belonging(self._first, processes())
        pids = [process.pid for process in members if not process.ended]
        return Use(sum(process.processor_s for process in members), memory_of(pids, most.memory), len(pids))

    def out_of_memory(self) -> bool:
        """Return False: the kernel limits nothing here."""
        return False

    def end(self) -> None:
        """Kill what is left until there is nothing, for what is killed may have just forked."""
        deadline = time.monotonic() + _REMOVED_S
        while self._first is not None and time.monotonic() < deadline:
            pids = [process.pid for process in belonging(self._first, processes()) if not process.ended]
            if not pids:
                return
            kill(pids)
            time.sleep(EVERY_S / 10)


@dataclass(frozen=True, slots=True)
class Process:
    """A process. processor_s: its own, and its children's for which it has waited; ended: its parent has not."""

    pid: int
    parent: int
    session: int
    processor_s: float
    ended: bool


def parsed(pid: int, stat: bytes) -> Process:
    """Return what a text of /proc/PID/stat says."""
    fields = stat.rpartition(b")")[2].split()  # a name may hold spaces and brackets
    processor_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return Process(pid, int(fields[1]), int(fields[3]), processor_s, fields[0] in (b"Z", b"X"))


def processes() -> list[Process]:
    """Return all processes that /proc shows."""
    shown = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            shown.append(parsed(int(name), Path("/proc", name, "stat").read_bytes()))
    return shown


def belonging(first: int, all_processes: Iterable[Process]) -> list[Process]:
    """Return the first process, those of its session, and the descendants of any of them."""
    listed = list(all_processes)
    members = [process for process in listed if first in (process.pid, process.session)]
    known = {process.pid for process in members}
    while more := [process for process in listed if process.parent in known and process.pid not in known]:
        members += more
        known |= {process.pid for process in more}
    return members


def memory_of(pids: Iterable[int], limit: int) -> int:
    """Return the resident bytes of processes, and of the files in memory that they hold open (memfd_create); where that
    is above *limit*, pages that several share count once.
    """
    pids = list(pids)
    files = _files_in_memory(pids)
    resident = sum(_resident(pid) for pid in pids) + files
    return resident if resident <= limit else sum(_proportional(pid) for pid in pids) + files


def _files_in_memory(pids: Iterable[int]) -> int:
    """Return the bytes of files in memory that descriptors hold, each once; what is mapped of them counts again."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        directory = f"/proc/{pid}/fd"
        with suppress(OSError):
            for name in os.listdir(directory):
                with suppress(OSError):
                    if os.readlink(f"{directory}/{name}").startswith("/memfd:"):
                        status = os.stat(f"{directory}/{name}")
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:  # it has ended, or is another user's
        return _resident(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to processes; those that have ended are passed over."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def has_controllers(directory: Path) -> bool:
    """Return whether groups below a cgroup2 directory limit memory and processes."""
    try:
        return set((directory / "cgroup.subtree_control").read_text(encoding="ascii").split()) >= _CONTROLLERS
    except OSError:
        return False


def candidates(own: Iterable[Path]) -> list[Path]:
    """Return cgroup2 directories that this process may write, from its own up: first those that limit memory.

    own: where this process finds its group. A lab's group is none, for its end must not wait for a submission's.
    """
    writable = [
        directory
        for start in own
        for directory in _upwards(start)
        if lab_of_group(directory.name) is None and os.access(directory, os.W_OK)
    ]
    return sorted(writable, key=lambda directory: not has_controllers(directory))


def _upwards(directory: Path) -> Iterator[Path]:
    while (directory / "cgroup.procs").exists():
        yield directory
        directory = directory.parent


def place_of_groups() -> Path | None:
    """Return the cgroup2 directory below which groups of submissions can be made and entered; None: there is none."""
    try:
        texts = [Path("/proc/self", name).read_text(encoding="utf-8") for name in ("mountinfo", "cgroup")]
    except OSError:
        return None
    return next(filter(_can_be_entered, candidates(own_directories(*texts))), None)


def _can_be_entered(parent: Path) -> bool:
    try:
        group = ControlGroup(parent, Most(1.0, 64 << 20, 8))
    except OSError:
        return False
    try:
        tried = subprocess.run(
            group.entering(["/bin/true"]), stderr=subprocess.DEVNULL, timeout=30, check=False
        )
        return tried.returncode == 0
    finally:
        group.end()


def new_group(place: Path | None, most: Most) -> ProcessGroup:
    """Return a control group below *place*, and without that what /proc shows."""
    if place is not None:
        with suppress(OSError):
            return ControlGroup(place, most)
    return Session()
