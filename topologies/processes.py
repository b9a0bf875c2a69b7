"""Processes of a lab: how they are started, found by their mark, and ended.

Every process carries CAPSTAN_LAB=<lab id> in its environment. Nothing is ever ended by its name.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from topologies.cgroup import born_in
from topologies.children import start_child
from topologies.namespaces import Namespace, ProgramMissingError, loopback_alias

LAB_VARIABLE: Final = "CAPSTAN_LAB"
_PF_KTHREAD: Final = 0x00200000
_EXECVE_TRIES: Final = 5
_EXECVE_S: Final = 0.001


def lab_environment(lab_id: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return *env* (this process's by default) with the mark of a lab."""
    return {**(os.environ if env is None else env), LAB_VARIABLE: lab_id}


class Spawner:
    """Starts a lab's processes, all from one thread that lives as long as the lab.

    The kernel sends a child's parent-death signal when the *thread* that started it ends, so a child must
    not be started from a thread that comes and goes. group: the lab's control group, where they are born.
    """

    def __init__(self, lab_id: str, group: Path | None = None) -> None:
        self.lab_id = lab_id
        self.group = group
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"capstan-{lab_id}-spawner")
        self._started: list[subprocess.Popen[Any]] = []

    def popen(
        self,
        namespace: Namespace | None,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[Any] | None = subprocess.DEVNULL,
        start_new_session: bool = True,
        **options: Any,
    ) -> subprocess.Popen[Any]:
        """Return *argv*'s process, started in a network namespace (None: this one), killed when this process dies.

        A session of its own keeps a terminal's Ctrl-C from it. An exception that a signal's handler raises meanwhile
        ends the process: the caller would not know of it. Raise ProgramMissingError.
        """
        marked = lab_environment(self.lab_id, env)
        program = shutil.which(argv[0], path=marked.get("PATH"))
        if program is None:
            raise ProgramMissingError(
                f"cannot start {argv[0]!r}: no such program on PATH",
                remedy="install it, or give its whole path",
            )
        command = ["setpriv", "--pdeathsig", "KILL", "--", program, *argv[1:]]
        options.update(env=marked, stdin=stdin, start_new_session=start_new_session)

        def start() -> subprocess.Popen[Any]:
            with born_in(self.group), nullcontext() if namespace is None else namespace.entered():
                process = subprocess.Popen(command, **options)
            # What has been collected is nothing to wait for, and a lab that is held starts programs for weeks.
            self._started = [other for other in self._started if other.returncode is None] + [process]
            return process

        return start_child(start, self._thread)

    def reap(self, timeout: float = 10.0) -> None:
        """Collect what has ended, so that no zombie is left. Waits up to *timeout* seconds in all."""
        deadline = time.monotonic() + timeout
        for process in self._started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        self._started = [process for process in self._started if process.returncode is None]

    def close(self) -> None:
        """End the thread. Whatever it started and still runs is killed by the kernel."""
        self._thread.shutdown(wait=True)


@dataclass(frozen=True)
class EndedProcess:
    """A process that was ended."""

    pid: int
    command: str


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name, from the state on; none if there is no such process."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is none or it is a zombie."""
    after_name = _stat(pid)
    if len(after_name) < 20 or after_name[0] in (b"Z", b"X"):
        return None
    return int(after_name[19])


def cpu_s(pid: int) -> float:
    """Return the processor time of a process's threads in seconds, in user space and in the kernel.

    Raises ProcessLookupError if it has ended.
    """
    spent = []
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile
            spent.append(int(task.read_text(encoding="ascii").split()[0]))
    if not spent:
        raise ProcessLookupError(f"process {pid} has ended")
    return sum(spent) / 1e9


def _environment(pid: int) -> bytes:
    """Return a process's environment by /proc; during execve(), once that is done.

    Meanwhile the new program's environment reads as empty, though its parent already runs again.
    """
    for _ in range(_EXECVE_TRIES):
        environment = _read(f"/proc/{pid}/environ")
        if environment or _is_kernel_thread(pid) or start_time(pid) is None:
            return environment
        time.sleep(_EXECVE_S)
    return b""


def _is_kernel_thread(pid: int) -> bool:
    after_name = _stat(pid)
    return len(after_name) > 6 and bool(int(after_name[6]) & _PF_KTHREAD)


def is_marked(pid: int, lab_id: str) -> bool:
    """Return whether the process carries this lab's mark."""
    return f"{LAB_VARIABLE}={lab_id}".encode() in _environment(pid).split(b"\0")


def _network(pid: int | str) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def own_network() -> int | None:
    """Return the inode of this thread's network namespace."""
    return _network("thread-self")


def _belongs(pid: int, lab_id: str, networks: Collection[int]) -> bool:
    return is_marked(pid, lab_id) or (bool(networks) and (_network(pid) or 0) in networks)


def find_processes(lab_id: str, networks: Collection[int] = ()) -> list[int]:
    """Return the pids (but this process's) that carry the lab's mark or live in one of the namespaces (inodes)."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [
        pid
        for pid in pids
        if pid != os.getpid() and _belongs(pid, lab_id, networks) and start_time(pid) is not None
    ]


def network_mark_line(lab_id: str) -> str:
    """Return the `ip -batch` line that marks the namespace it is run in as a lab's."""
    return f"link set dev lo up alias {LAB_VARIABLE}={lab_id}"


def _network_mark(pid: int) -> str | None:
    """Return the mark of the namespace that a process is in. Only a worker thread may ask."""
    try:
        with closing(Namespace(pid)) as namespace, namespace.entered():
            alias = loopback_alias()
    except OSError:  # the process has ended
        return None
    return alias.removeprefix(f"{LAB_VARIABLE}=") if alias.startswith(f"{LAB_VARIABLE}=") else None


def _pinned_networks() -> set[int]:
    """Return the inodes of the network namespaces that a mount keeps (`ip netns`, containers): a lab makes none."""
    return {int(inode) for inode in re.findall(rb" net:\[(\d+)\] /", _read("/proc/self/mountinfo"))}


def lab_networks(lab_id: str, home: int | None) -> set[int]:
    """Return the inodes of a lab's network namespaces: those marked as such, and those that its processes are in.

    A program may wipe its own environment (some write a title over it), so what lives in a lab's namespace
    is the lab's too. *home* is the namespace that the lab was started from: never the lab's. Nor is one that a mount
    keeps, though a program of the lab's has entered it, unless it is marked: others live there.
    """
    others = {network for network in (home, _network(1), own_network()) if network is not None}
    pinned = _pinned_networks()
    networks: set[int] = set()
    unknown: dict[int, int] = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        network = _network(pid)
        if network is None or network in others:
            continue
        if network not in pinned and is_marked(pid, lab_id):
            networks.add(network)
        else:
            unknown[network] = pid
    asked = {network: pid for network, pid in unknown.items() if network not in networks}
    if asked:
        with ThreadPoolExecutor(1) as thread:
            marks = thread.map(_network_mark, asked.values())
            networks |= {network for network, mark in zip(asked, marks, strict=True) if mark == lab_id}
    return networks


def end_processes(lab_id: str, networks: Iterable[int] = (), timeout: float = 30.0) -> list[EndedProcess]:
    """Kill the lab's processes until there are none, at most *timeout* seconds; return those that ended."""
    networks = set(networks)
    ended: dict[int, str] = {}
    deadline = time.monotonic() + timeout
    while pids := find_processes(lab_id, networks):
        waiting = []
        for pid in pids:
            try:
                handle = os.pidfd_open(pid)
            except OSError:
                continue
            # The mark is read after the handle was taken: a pid given anew in between is not hit.
            command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            if not _belongs(pid, lab_id, networks):
                os.close(handle)
                continue
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                ended.setdefault(pid, command)
            waiting.append(handle)
        for handle in waiting:
            poller = select.poll()  # select() cannot take descriptors above 1023
            poller.register(handle, select.POLLIN)
            poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
            os.close(handle)
        if time.monotonic() > deadline:
            break
    return [EndedProcess(pid, command) for pid, command in sorted(ended.items())]
