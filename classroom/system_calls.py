"""What a submission may not ask of the kernel: a seccomp filter for bubblewrap.

Left out are calls by which memory or mounts escape what is counted: namespaces of users (root in them may mount, and
fill, file systems in memory) and files that are in memory alone. Libraries do without both.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little endian
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_EPERM, _ENOSYS = 1, 38
_NEW_USER: Final = 0x10000000  # CLONE_NEWUSER
_OTHER_ABI: Final = 0x40000000  # x32 on x86-64: other numbers for the same calls


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Of a machine's calls. audit: the machine's own; clone: the call; missing: calls that seem not to be there."""

    audit: int
    clone: int
    missing: tuple[int, ...]


_MACHINES: Final[Mapping[str, _Numbers]] = {
    # memfd_create, memfd_secret, unshare, setns, mount, io_uring_setup, clone3 (whose flags no filter sees)
    "x86_64": _Numbers(0xC000003E, 56, (319, 447, 272, 308, 165, 425, 435)),
    "aarch64": _Numbers(0xC00000B7, 220, (279, 447, 97, 268, 40, 425, 435)),
}


def call_filter(machine: str | None = None) -> bytes | None:
    """Return the filter as `bwrap --seccomp` reads it; None: for this machine (or the one named) there is none."""
    numbers = _MACHINES.get(machine or platform.machine())
    if numbers is None:
        return None
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, numbers.audit),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
    ]
    for call in numbers.missing:
        program += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _ERROR | _ENOSYS)]
    program += [
        (_EQUAL, 0, 3, numbers.clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_USER),
        (_RETURN, 0, 0, _ERROR | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
