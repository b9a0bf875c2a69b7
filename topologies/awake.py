"""Cores that do not sleep, for a measurement: waking one up takes a virtual machine longer than a packet's work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_SPIN: Final = """
import ctypes, os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with us, however we end
if os.getppid() == int(sys.argv[2]):
    print("spins", flush=True)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass
"""


@contextmanager
def cores_awake() -> Iterator[None]:
    """Keep all cores of this process busy with what yields to everything else (SCHED_IDLE), as long as the block."""
    spinning: list[subprocess.Popen[bytes]] = []
    try:
        for core in sorted(os.sched_getaffinity(0)):
            # -I: nothing from our working directory, which may be another user's.
            argv = [sys.executable, "-I", "-c", _SPIN, str(core), str(os.getpid())]
            spinning.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        for process in spinning:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in spinning:
            # on a busy machine it would end after minutes, and all that waits for the kernel's locks that it takes then
            with suppress(OSError):  # it has ended
                os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
