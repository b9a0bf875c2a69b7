"""How many processors' time this process can get: whatever is sized by cores asks here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """Processors that this process may use, and the limit of its control group in processors (None: no limit)."""

    usable: int
    quota: float | None = None

    @property
    def effective(self) -> float:
        """Return how many processors' time this process can get; a whole number where its group has no limit."""
        return min(self.usable, self.quota) if self.quota is not None else self.usable

    def workers(self, share: float = 1.0) -> int:
        """Return how many processes that compute without a pause fit into *share* of that time: 1 or more."""
        return max(1, int(self.effective * share))


def read_file(path: str) -> str:
    """Return the text of a file of the kernel's, "" where there is none that may be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def own_cores(read: Callable[[str], str] = read_file) -> Cores:
    """Return the processors of this process's affinity, and its control groups' limit.

    read: returns a file's text, "" where there is none.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Cores(usable, quota(read("/proc/self/cgroup"), read))


def quota(groups: str, read: Callable[[str], str]) -> float | None:
    """Return the least limit of processor time of a process's control groups, in processors; None without one.

    groups: the text of /proc/PID/cgroup. read: returns a file's text, "" where there is none.
    """
    limits = []
    for line in groups.splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = "/sys/fs/cgroup/cpu" if controllers else "/sys/fs/cgroup"
        steps = [step for step in own.split("/") if step not in ("", "..")]
        for depth in range(len(steps) + 1):
            place = "/".join([top, *steps[:depth]])
            if controllers:
                words = [
                    read(f"{place}/cpu.cfs_quota_us").strip(),
                    read(f"{place}/cpu.cfs_period_us").strip(),
                ]
            else:
                words = read(f"{place}/cpu.max").split()
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
                limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


if __name__ == "__main__":
    print(own_cores().workers())
