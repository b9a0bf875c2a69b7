"""A control group for each lab, so that the kernel counts how long *its* processes wait for a CPU.

`cpu.pressure` is there in every directory of the cgroup2 file system, whatever controllers are on; nothing is
limited by the group. The launcher enters it before it starts anything, so what it starts is born there. A process that
ends the lab moves what is left to the directory above, and removes the group.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

PRESSURE_FILE: Final = "cpu.pressure"
_MEMBERS: Final = "cgroup.procs"
_NAME: Final = re.compile(r"capstan-[a-z0-9]{1,11}-[0-9a-f]{8}")
_SELF: Final = "0"
_AGAIN_S: Final = 0.005
_births = threading.Lock()
"""A process is in one group at a time: of several labs of one process, one starts a child at a time."""


def lab_of_group(name: str) -> str | None:
    """Return the lab's id in the name of its group; None for any other group."""
    return name.split("-")[1] if _NAME.fullmatch(name) else None


def own_directories(mountinfo: str, cgroup: str) -> list[Path]:
    """Return where a process finds its cgroup2 group; none where that is not mounted, or only a part of it that is
    not ours.

    mountinfo, cgroup: the text of its /proc/PID/mountinfo and /proc/PID/cgroup.
    """
    own = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::")), "..")
    directories = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ")[0] != "cgroup2":
            continue
        root, mount = (PurePosixPath(_unescaped(word)) for word in before.split(" ")[3:5])
        path = PurePosixPath(own)
        if path.is_relative_to(root) and ".." not in (*path.parts, *root.parts):
            directories.append(Path(mount / path.relative_to(root)))
    return directories


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def place_for(lab_id: str) -> Path | None:
    """Return where this process may make a group for a lab; None where it may not.

    Never inside another lab's group, for that one's end must not wait for this one's.
    """
    try:
        texts = [Path("/proc/self", name).read_text(encoding="utf-8") for name in ("mountinfo", "cgroup")]
    except OSError:
        return None
    for directory in own_directories(*texts):
        while lab_of_group(directory.name) is not None:
            directory = directory.parent
        if os.access(directory, os.W_OK):
            return directory / f"capstan-{lab_id}-{secrets.token_hex(4)}"
    return None


def enter(group: Path) -> bool:
    """Make a group and move this process, with all its threads, into it; what it starts is born there.

    False, and no group, where the kernel refuses or does not measure pressure.
    """
    try:
        group.mkdir(mode=0o755)
        _move(_SELF, group)
        (group / PRESSURE_FILE).read_bytes()
    except OSError:
        dissolve(group)
        return False
    return True


@contextmanager
def born_in(group: Path | None) -> Iterator[None]:
    """Have what is started in the block born in the group, though this process may have entered another
    since.
    """
    with _births:
        if group is not None:
            with suppress(OSError):  # it is gone: the lab ends
                if not Path("/proc/self/cgroup").read_text(encoding="utf-8").rstrip().endswith(group.name):
                    _move(_SELF, group)
        yield


def members(group: Path) -> list[int]:
    """Return the pids of the processes in a group that can be seen from here."""
    try:
        return [int(word) for word in (group / _MEMBERS).read_text(encoding="ascii").split() if word != "0"]
    except OSError:
        return []


def dissolve(group: Path, timeout: float = 10.0) -> bool:
    """Move all that is in a lab's group to the directory above, remove it; return True if it is gone.

    It can be removed when the kernel has done with those that were just killed, so this may try for *timeout* seconds.
    """
    if lab_of_group(group.name) is None:
        return False
    deadline = time.monotonic() + timeout
    while True:
        for pid in members(group):
            with suppress(OSError):
                _move(str(pid), group.parent)
        with suppress(OSError):
            group.rmdir()
        if not group.exists():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_AGAIN_S)


def _move(pid: str, group: Path) -> None:
    with (group / _MEMBERS).open("w", encoding="ascii") as file:
        file.write(pid)
