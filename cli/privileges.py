"""What a command needs of the machine before it starts."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from cli.console import fail

_PROGRAMS = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ip": "iproute2",
    "tc": "iproute2",
    "mnexec": "mininet",
    "nsenter": "util-linux",
}


def missing_packages() -> list[str]:
    """Debian packages of the programs that a lab needs and that are not on PATH."""
    return sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})


def need_root(command: str) -> None:
    """End with a clear error unless we are root."""
    if os.geteuid() != 0:
        fail(
            f"'{command}' makes network namespaces and switches, so it needs root: sudo ./capstan {command} ..."
        )


def need_lab(command: str) -> None:
    """End with a clear error unless a lab can be built here: root, programs and /dev/net/tun."""
    need_root(command)
    if missing := missing_packages():
        fail(f"'{command}' needs programs that are not installed: apt-get install {' '.join(missing)}")
    if not os.path.exists("/dev/net/tun"):
        fail(f"'{command}' needs /dev/net/tun: modprobe tun, or give the container --device /dev/net/tun")


def give_to_caller(*paths: Path) -> None:
    """Under sudo: what we made at these paths, and below, belongs to who called sudo. Others' files stay theirs."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isdecimal() and group.isdecimal()):
        return
    for path in paths:
        for one in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
            with suppress(FileNotFoundError):
                if one.lstat().st_uid == 0:
                    os.chown(one, int(user), int(group), follow_symlinks=False)
