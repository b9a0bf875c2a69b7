"""Samples what the processor did while a run went on (`experiments.results.cpu_use` judges)."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from experiments.results.cpu_use import SAMPLE_PERIOD_S, CpuSample, CpuUse, Waiting, judge
from topologies.cores import own_cores

NAP_S: Final = 0.005
_STAT: Final = Path("/proc/stat")
_MACHINE: Final = Path("/proc/pressure/cpu")
FREE_SHARE: Final = 0.8
"""Idle share of the processors: a lab at rest leaves more, where nothing else runs."""
_LOOK_EVERY_S: Final = 0.05


def parse_stat(text: str, cpus: Iterable[int], ticks_per_s: int) -> tuple[float, float]:
    """Return (idle, total) seconds of some CPUs from /proc/stat; waiting for a disk counts as idle."""
    wanted, idle, total = set(cpus), 0, 0
    for line in text.splitlines():
        match = re.match(r"cpu(\d+) (.*)", line)
        if match and int(match[1]) in wanted:
            # user nice system idle iowait irq softirq steal; guest times are within user and nice
            ticks = [int(word) for word in match[2].split()[:8]]
            idle += ticks[3] + ticks[4]
            total += sum(ticks)
    return idle / ticks_per_s, total / ticks_per_s


def parse_pressure(text: str) -> float:
    """Return seconds in which some task waited, from /proc/pressure/cpu or a group's cpu.pressure."""
    match = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no 'some' line in {text!r}")
    return int(match[1]) / 1e6


def sample(pressure: Path | None = _MACHINE) -> CpuSample:
    """Return the counters now. pressure: its file; None, or one that is missing: `stalled_s` is None."""
    idle, total = parse_stat(_STAT.read_text(), os.sched_getaffinity(0), os.sysconf("SC_CLK_TCK"))
    try:
        stalled = None if pressure is None else parse_pressure(pressure.read_text())
    except OSError:
        stalled = None
    return CpuSample(time.monotonic(), idle, total, stalled)


def is_free(seconds: float = 1.0) -> bool:
    """Return True if nothing but a lab at rest takes the processors, for so many seconds from now on.

    False comes as soon as it is certain.
    """
    before, cores = sample(None), own_cores().usable
    found: bool | None = None
    while found is None:
        time.sleep(min(seconds, _LOOK_EVERY_S))
        found = judge_free(before, sample(None), seconds, cores)
    return found


def judge_free(before: CpuSample, now: CpuSample, seconds: float, cores: int) -> bool | None:
    """Return whether so many *cores* are free for *seconds* from *before* on; None: that is not certain yet."""
    idle_s, total_s = now.idle_s - before.idle_s, now.total_s - before.total_s
    if total_s - idle_s > (1 - FREE_SHARE) * seconds * cores:
        return False
    return idle_s >= FREE_SHARE * total_s if now.at - before.at >= seconds else None


class CpuWatch:
    """Samples in a thread between `with` and its end; then `use` holds the verdict.

    own_pressure: `cpu.pressure` of the lab's control group, if there is one.
    """

    def __init__(self, packet_time_s: float, own_pressure: Path | None = None) -> None:
        self._packet_time_s = packet_time_s
        self._pressure = own_pressure or _MACHINE
        self._whose: Waiting = "machine" if own_pressure is None else "own"
        self._samples: list[CpuSample] = []
        self._late: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cpu-watch", daemon=True)
        self.use: CpuUse | None = None

    def __enter__(self) -> Self:
        self._samples.append(sample(self._pressure))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._samples.append(sample(self._pressure))
        self.use = judge(self._samples, self._late, self._packet_time_s, self._whose)

    def _watch(self) -> None:
        due = time.monotonic() + SAMPLE_PERIOD_S
        while not self._stop.is_set():
            before = time.monotonic()
            time.sleep(NAP_S)
            now = time.monotonic()
            self._late.append(now - before - NAP_S)
            if now >= due:
                self._samples.append(sample(self._pressure))
                due = now + SAMPLE_PERIOD_S
