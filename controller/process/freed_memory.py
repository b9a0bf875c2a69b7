"""Memory that the C library keeps after it was freed: given back to the system once the process's use is steady.

A burst of large bodies or reports leaves glibc's arenas full of holes, which it gives back only from their ends: 440
MiB stayed with a controller that used 266.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

WORTH_BYTES: Final = 64 << 20
"""Fewer are left where they are: what comes next needs them again."""
STEADY_BYTES: Final = 4 << 20
"""Use that grew by more since the last look is not steady."""
_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return how many bytes of memory this process has; 0 where the system does not say."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Have the C library give back what it can; glibc alone knows how. Other threads run meanwhile."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))


class FreedMemory:
    """Looks now and then whether there may be something to give back."""

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, give_back: Callable[[], None] = give_back
    ) -> None:
        self._resident = resident
        self._give_back = give_back
        self._before = self._least = resident()

    def look(self) -> bool:
        """Give memory back if use is steady, and well above what was left the last time. Return whether it did."""
        now = self._resident()
        steady = now <= self._before + STEADY_BYTES
        self._before = now
        if not steady or now < self._least + WORTH_BYTES:
            return False
        self._give_back()
        self._before = self._least = self._resident()
        return True
