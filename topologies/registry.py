"""The labs of this machine, under /run/capstan: which run, which died, and ending what the dead ones left.

Each lab has a directory there, with `state.json`. A lab is alive while the process that started it is. What
a lab leaves outside of its own namespaces is little, and all of it is found from its id: marked processes
(see processes), this directory, its control group (see cgroup), and one interface in the namespace that it was
started from.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError
from topologies.cgroup import dissolve, lab_of_group
from topologies.namespaces import CommandError, run
from topologies.processes import EndedProcess, end_processes, lab_networks, own_network, start_time

RUN_ROOT: Final = Path("/run/capstan")
STATE_FILE: Final = "state.json"
MANAGEMENT_RANGE: Final = ipaddress.IPv4Network("198.18.0.0/15")
"""Set aside for benchmarks of network devices (RFC 2544): no real network."""
MANAGEMENT_PREFIX: Final = 22

LOOK_AGAIN_S: Final = 0.3
LOCK_S: Final = 30.0
"""The lock is held for milliseconds, unless its holder hangs."""
_LOCK_AGAIN_S: Final = 0.01


class LabError(CapstanError, RuntimeError):
    """A lab cannot be made, found or used; the text says what to do."""


@dataclass(frozen=True)
class LabRecord:
    """What is registered of one lab."""

    lab_id: str
    launcher_pid: int
    launcher_start: int
    home_network: int | None
    subnet: str
    group: Path | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def run_dir(self) -> Path:
        """Return the lab's directory for sockets, logs and databases."""
        return RUN_ROOT / self.lab_id

    @property
    def interface(self) -> str:
        """Return the lab's one interface in the namespace that it was started from."""
        return interface_name(self.lab_id)

    @property
    def alive(self) -> bool:
        """Return whether the process that started the lab is still there (the same one, not only its pid)."""
        return start_time(self.launcher_pid) == self.launcher_start

    def save(self, directory: Path | None = None) -> None:
        """Write state.json, whole or not at all; into the lab's directory if no other is given."""
        directory = directory or self.run_dir
        data = {
            "lab_id": self.lab_id,
            "launcher": {"pid": self.launcher_pid, "start": self.launcher_start},
            "home_network": self.home_network,
            "subnet": self.subnet,
            "group": None if self.group is None else str(self.group),
            "details": self.details,
        }
        draft = directory / f"{STATE_FILE}.new"
        draft.write_text(json.dumps(data, indent=1), encoding="utf-8")
        draft.replace(directory / STATE_FILE)


@dataclass(frozen=True)
class Ended:
    """What was ended of one dead lab."""

    lab_id: str
    processes: tuple[EndedProcess, ...] = ()
    interfaces: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{len(self.processes)} process{'' if len(self.processes) == 1 else 'es'}"]
        parts += [f"interface {name}" for name in self.interfaces]
        parts += [*self.directories, *(f"control group {path}" for path in self.groups)]
        return f"lab {self.lab_id}: ended {', '.join(parts)}"


def interface_name(lab_id: str) -> str:
    """Return the name of a lab's interface in the namespace that it was started from."""
    return f"cap-{lab_id}"


def check_lab_id(lab_id: str) -> str:
    """Return the id itself. Raises LabError unless it can be part of an interface's name (15 characters)."""
    if not re.fullmatch(r"[a-z0-9]{1,11}", lab_id):
        raise LabError(f"lab id {lab_id!r} must be 1 to 11 characters a-z, 0-9")
    return lab_id


@contextmanager
def _locked(patience_s: float = math.inf) -> Iterator[None]:
    """Hold the one lock over /run/capstan, which a user who can open it could hold; empty, it is removed at the end.

    Raises LabError if another process holds it for longer than *patience_s* seconds.
    """
    deadline = time.monotonic() + patience_s
    while True:
        RUN_ROOT.mkdir(mode=0o711, parents=True, exist_ok=True)
        try:
            handle = os.open(RUN_ROOT, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            _lock(handle, deadline)
        except BaseException:
            os.close(handle)
            raise
        # The process that held the lock before may have removed the directory that we now hold.
        with suppress(FileNotFoundError):
            if os.stat(RUN_ROOT).st_ino == os.fstat(handle).st_ino:
                break
        os.close(handle)
    try:
        yield
    finally:
        with suppress(OSError):
            RUN_ROOT.rmdir()
        os.close(handle)


def _lock(handle: int, deadline: float) -> None:
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            raise LabError(
                f"another process holds the lock on {RUN_ROOT} for more than {LOCK_S:g} s: "
                f"`fuser -v {RUN_ROOT}` names it",
                remedy="end it",
            )
        time.sleep(_LOCK_AGAIN_S)


def _load(directory: Path) -> LabRecord | None:
    try:
        data = json.loads((directory / STATE_FILE).read_text(encoding="utf-8"))
        return LabRecord(
            lab_id=check_lab_id(data["lab_id"]),
            launcher_pid=int(data["launcher"]["pid"]),
            launcher_start=int(data["launcher"]["start"]),
            home_network=data["home_network"],
            subnet=data["subnet"],
            group=Path(data["group"]) if data.get("group") is not None else None,
            details=data["details"],
        )
    except (OSError, ValueError, KeyError, TypeError, LabError):
        return None


def labs() -> list[LabRecord]:
    """Return all registered labs, alive or dead, by id."""
    try:
        directories = sorted(
            path for path in RUN_ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")
        )
    except FileNotFoundError:
        return []
    records = [_load(path) for path in directories]
    return [record for record in records if record is not None and record.lab_id == record.run_dir.name]


def find_lab(lab_id: str | None = None) -> LabRecord:
    """Return the running lab with this id, or the only one that runs. Raises LabError otherwise."""
    running = [record for record in labs() if record.alive]
    if lab_id is not None:
        for record in running:
            if record.lab_id == lab_id:
                return record
        raise LabError(f"no lab {lab_id!r} runs", remedy=_list(running))
    if not running:
        raise LabError("no lab runs", remedy="start one with `capstan lab SPEC`")
    if len(running) > 1:
        raise LabError("several labs run: say which one", remedy=_list(running))
    return running[0]


def _list(running: list[LabRecord]) -> str:
    return "running: " + (", ".join(record.lab_id for record in running) or "none")


def new_lab_id() -> str:
    """Return an id that no lab has."""
    while True:
        lab_id = secrets.token_hex(3)
        if not (RUN_ROOT / lab_id).exists() and not _interface_exists(interface_name(lab_id)):
            return lab_id


def _interface_exists(name: str) -> bool:
    return os.path.exists(f"/proc/sys/net/ipv4/conf/{name}")


def register(lab_id: str, group: Path | None = None) -> LabRecord:
    """Return the record of an id and a subnet claimed for a lab of this process. Raises LabError if the id is taken.

    group: the control group that it is going to make.
    """
    check_lab_id(lab_id)
    start = start_time(os.getpid())
    assert start is not None
    with _locked(LOCK_S):
        directory = RUN_ROOT / lab_id
        if directory.exists():
            known = _load(directory)
            hint = "give another id" if known and known.alive else "`capstan clean` ends what it left"
            raise LabError(f"lab {lab_id!r} is registered in {directory} already", remedy=hint)
        if _interface_exists(interface_name(lab_id)):
            raise LabError(
                f"there is an interface {interface_name(lab_id)!r} that is not ours", remedy="give another id"
            )
        subnet = _free_subnet([record.subnet for record in labs()])
        record = LabRecord(lab_id, os.getpid(), start, own_network(), subnet, group)
        draft = _draft(lab_id, os.getpid())
        draft.mkdir(mode=0o755)
        record.save(draft)
        draft.rename(
            directory
        )  # a directory that is there has its state: a process that is killed now leaves a draft
    return record


def _draft(lab_id: str, launcher_pid: int) -> Path:
    return RUN_ROOT / f".{lab_id}-{launcher_pid}"


def _free_subnet(claimed: Iterable[str]) -> str:
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]")
    taken = [ipaddress.IPv4Network(name) for name in claimed]
    for route in routes:
        with suppress(ValueError):  # "default"
            taken.append(ipaddress.IPv4Network(route["dst"], strict=False))
    for subnet in MANAGEMENT_RANGE.subnets(new_prefix=MANAGEMENT_PREFIX):
        if not any(subnet.overlaps(other) for other in taken):
            return str(subnet)
    raise LabError(
        f"no free management network in {MANAGEMENT_RANGE}", remedy="`ip route` shows who has them"
    )


def end_lab(lab_id: str, home: int | None, look_again_s: float = 0.0) -> Ended:
    """End whatever there is of one lab: processes, interface, control group, directory; return what was ended.

    Harmless when there is nothing.

    home: inode of the network namespace that it was started from. look_again_s: if above 0, look a second time after
    so many seconds: a program that a killed launcher had just started may still have made something.
    """
    record = _load(RUN_ROOT / lab_id)
    processes, interfaces = _end_once(lab_id, home)
    if look_again_s:
        time.sleep(look_again_s)
        late = _end_once(lab_id, home)
        processes, interfaces = processes + late[0], interfaces + late[1]
    groups: tuple[str, ...] = ()
    if record is not None and record.group is not None and lab_of_group(record.group.name) == lab_id:
        groups = (str(record.group),) if record.group.exists() and dissolve(record.group) else ()
    directories: tuple[str, ...] = ()
    # Behind a process that hangs with the lock the directory stays: the lab's reaper removes it, or `clean`.
    with suppress(LabError), _locked(LOCK_S):
        # Last: until it is gone, no other lab takes the id. It may be gone, and another's: several may end one lab.
        directory = RUN_ROOT / lab_id
        if directory.exists() and _launcher(_load(directory)) == _launcher(record):
            _remove(directory)
            directories = (str(directory),)
    return Ended(lab_id, processes, interfaces, directories, groups)


def _launcher(record: LabRecord | None) -> tuple[int, int] | None:
    return None if record is None else (record.launcher_pid, record.launcher_start)


def _remove(directory: Path) -> None:
    """Remove a lab's directory. A process that is killed meanwhile leaves a draft, as one that registers does.

    A directory without its state is no lab, so that `clean` would leave it where it is, in the way of the next one.
    """
    leaving = _draft(directory.name, os.getpid())
    with suppress(OSError):  # one of that name is there, and could not be emptied
        directory.rename(leaving)
    for path in (leaving, directory):
        shutil.rmtree(path, ignore_errors=True)


def _end_once(lab_id: str, home: int | None) -> tuple[tuple[EndedProcess, ...], tuple[str, ...]]:
    processes = end_processes(lab_id, lab_networks(lab_id, home))
    interface = interface_name(check_lab_id(lab_id))
    if not _interface_exists(interface):
        return tuple(processes), ()
    with suppress(CommandError):
        run(["ip", "link", "delete", "dev", interface])
        return tuple(processes), (interface,)
    return tuple(processes), ()


def end_lab_of(lab_id: str, launcher_pid: int, home: int | None) -> None:
    """End what a launcher that is gone left of its lab; a lab of the same name that is another's stays."""
    if not RUN_ROOT.exists():
        return  # and need not be made: who may run no labs may not
    with _locked():
        shutil.rmtree(_draft(lab_id, launcher_pid), ignore_errors=True)
        record = _load(RUN_ROOT / lab_id)
    if record is not None and record.launcher_pid == launcher_pid:
        end_lab(lab_id, home, LOOK_AGAIN_S)


def clean() -> list[Ended]:
    """End what dead labs left, and only that. Returns what was ended, one entry a lab.

    Raises LabError if another process holds the lock over the labs for longer than LOCK_S.
    """
    ended = []
    for record in labs():
        # Looked at anew: to end the labs before took its time, in which this one may have become another of its name.
        if not record.alive and _launcher(_load(record.run_dir)) == _launcher(record):
            ended.append(end_lab(record.lab_id, record.home_network))
    if RUN_ROOT.exists():
        with _locked(LOCK_S):  # which removes an empty /run/capstan
            for draft in RUN_ROOT.glob(".*-*"):  # no lab is registering now
                shutil.rmtree(draft, ignore_errors=True)
    return ended
