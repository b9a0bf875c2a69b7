"""What other programs take of the processors just now: a lab beside them gets what they leave."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_NOTICED_CORES: Final = 0.25
"""What a system at rest does stays below."""
_KERNEL_THREAD: Final = 0x0020_0000
"""PF_KTHREAD, among a task's flags (Linux, include/linux/sched.h)."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used of the processors since it began, in seconds."""

    name: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Busy:
    """Processors in use by others, and the program that takes most of it."""

    cores: float
    program: str


def busy(before: Mapping[int, Spent], after: Mapping[int, Spent], seconds: float) -> Busy | None:
    """Return what ran between two readings, *seconds* apart, by process id; None if a system at rest takes as much.

    A process that began in between counts from its beginning; one that ended, not at all.
    """
    took: dict[str, float] = {}
    for pid, spent in after.items():
        earlier = before.get(pid)
        since = earlier.cpu_s if earlier is not None and earlier.name == spent.name else 0.0
        took[spent.name] = took.get(spent.name, 0.0) + max(0.0, spent.cpu_s - since)
    cores = sum(took.values()) / seconds
    return Busy(cores, max(took, key=lambda name: took[name])) if cores >= _NOTICED_CORES else None


def busy_now(seconds: float = 1.0) -> Busy | None:
    """Return what other processes take for so many seconds from now on."""
    before = _read()
    began = time.monotonic()
    time.sleep(seconds)
    return busy(before, _read(), time.monotonic() - began)


def _read() -> dict[int, Spent]:
    """Return what all processes but this one have spent. Threads of the kernel, which rename themselves, are not among
    them."""
    ticks, own, spent = os.sysconf("SC_CLK_TCK"), os.getpid(), {}
    for place in _PROC.iterdir():
        if place.name.isdecimal() and int(place.name) != own:
            with suppress(OSError):  # it has ended
                program = parse(place.joinpath("stat").read_text(errors="replace"), ticks)
                if program is not None:
                    spent[int(place.name)] = program
    return spent


def parse(stat: str, ticks_per_s: int) -> Spent | None:
    """Return what a line of /proc/PID/stat says, None of a kernel's thread. A name may hold spaces and brackets."""
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    if int(fields[6]) & _KERNEL_THREAD:
        return None
    return Spent(head.partition("(")[2], (int(fields[11]) + int(fields[12])) / ticks_per_s)
