"""The containers' seccomp profiles: what no container may, and what the lab may beyond the controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
NEVER = {
    *(
        "add_key",
        "bpf",
        "clock_settime",
        "delete_module",
        "finit_module",
        "init_module",
        "io_uring_setup",
        "kexec_load",
    ),
    *(
        "keyctl",
        "open_by_handle_at",
        "perf_event_open",
        "process_vm_writev",
        "ptrace",
        "reboot",
        "userfaultfd",
    ),
}
ON_ARM64 = {
    "access": "faccessat",
    "alarm": "setitimer",
    "chmod": "fchmodat",
    "chown": "fchownat",
    "creat": "openat",
    "dup2": "dup3",
    "epoll_create": "epoll_create1",
    "epoll_wait": "epoll_pwait",
    "eventfd": "eventfd2",
    "fork": "clone",
    "futimesat": "utimensat",
    "getdents": "getdents64",
    "getpgrp": "getpgid",
    "inotify_init": "inotify_init1",
    "lchown": "fchownat",
    "link": "linkat",
    "lstat": "newfstatat",
    "mkdir": "mkdirat",
    "mknod": "mknodat",
    "open": "openat",
    "pause": "ppoll",
    "pipe": "pipe2",
    "poll": "ppoll",
    "readlink": "readlinkat",
    "rename": "renameat",
    "rmdir": "unlinkat",
    "select": "pselect6",
    "signalfd": "signalfd4",
    "stat": "newfstatat",
    "symlink": "symlinkat",
    "time": "clock_gettime",
    "unlink": "unlinkat",
    "utime": "utimensat",
    "utimes": "utimensat",
    "vfork": "clone",
}
"""System calls that amd64 has and arm64 has not, and which one C libraries make there instead."""
LAB_ALONE = {"clone3", "chroot", "mknod", "mknodat", "mount", "pidfd_getfd", "setns", "umount2", "unshare"}


def profile(name: str) -> Any:
    return json.loads((ROOT / "docker" / "seccomp" / f"{name}.json").read_text())


def allowed(name: str) -> set[str]:
    """Return the system calls that the profile allows with whatever arguments."""
    rules = profile(name)["syscalls"]
    return {
        call
        for rule in rules
        if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule
        for call in rule["names"]
    }


@pytest.mark.parametrize("name", ["controller", "lab"])
def test_what_is_not_listed_is_refused_and_what_reaches_the_machine_is_not_listed(name: str) -> None:
    assert profile(name)["defaultAction"] == "SCMP_ACT_ERRNO"
    assert not allowed(name) & (NEVER | {"socket"})
    assert {"execve", "openat", "futex", "epoll_wait"} <= allowed(name)


def test_the_lab_may_what_the_controller_may_and_namespaces() -> None:
    assert allowed("lab") - allowed("controller") == LAB_ALONE | {"clone"}
    assert allowed("controller") <= allowed("lab")


@pytest.mark.parametrize("name", ["controller", "lab"])
def test_a_profile_is_for_both_kinds_of_machines(name: str) -> None:
    assert {kind["architecture"] for kind in profile(name)["archMap"]} == {
        "SCMP_ARCH_X86_64",
        "SCMP_ARCH_AARCH64",
    }
    # The controller's `clone` is allowed with arguments: no namespaces.
    named = {call for rule in profile(name)["syscalls"] for call in rule["names"]}
    assert {ON_ARM64[call] for call in ON_ARM64.keys() & named} <= named


def test_compose_gives_each_service_a_profile() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert text.count("seccomp:docker/seccomp/") == text.count("cap_drop: [ALL]") == 3
