"""For processes that the controller starts: none of them outlives it, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with(parent: int) -> None:
    """Be killed once the thread that started this process ends. parent: its process; ends now if that has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
