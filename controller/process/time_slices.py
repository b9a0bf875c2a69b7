"""How soon a thread that wakes has a processor on which others compute, where the kernel lets a thread say so.

Linux gives who computes a slice of some milliseconds, and who wakes waits for its end, or for the next tick (up to
4 ms). Since 6.12 a thread may ask for shorter slices: it has a processor sooner, and no more of it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import threading
from contextlib import suppress
from typing import Final

NICE: Final = -10
"""Of threads that others wait for, where that is allowed."""
SHORT_SLICE_NS: Final = 100_000
"""The least that the kernel grants."""
_SET_ATTRIBUTES: Final = {"x86_64": 314, "aarch64": 274}
"""The system call sched_setattr, by machine: the C library has no function for it."""
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""Size, policy (0: the usual one), flags, nice value, priority, slice (other policies' runtime), deadline, period."""


def ask_for_precedence() -> None:
    """Have the calling thread go before others that compute, where that is allowed (root): it has little to do, and
    switches or hosts wait for it. Threads that hold each other up by the interpreter's lock need the same.
    """
    with suppress(OSError, AttributeError):  # not root; Windows has no such call
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def ask_for_short_slices() -> bool:
    """Ask for the shortest slices for the calling thread. Return whether that was taken.

    It needs no permission. A kernel that knows no slices takes it, too, and changes nothing.
    """
    call = _SET_ATTRIBUTES.get(platform.machine())
    if call is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)  # of this thread: it is set along
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, SHORT_SLICE_NS, 0, 0)
    return bool(ctypes.CDLL(None).syscall(call, 0, wanted, 0) == 0)
