"""How busy the machine was while a benchmark measured: by that a reader judges the figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.figures import Figure
from experiments.results.cpu_use import CpuSample
from experiments.run.cpu import sample


def idle_percent(samples: list[tuple[CpuSample, CpuSample]]) -> float:
    """Return the share of processor time, in percent, that was idle between the samples of each pair."""
    total = sum(after.total_s - before.total_s for before, after in samples)
    idle = sum(after.idle_s - before.idle_s for before, after in samples)
    return 100 * idle / total if total > 0 else 0.0


def idle_figure(before: CpuSample, after: CpuSample, cores: float) -> Figure:
    """Return the figure `processors_idle` of what was between two samples."""
    return Figure(idle_percent([(before, after)]), f"% of the time of {cores:g} cores", better="higher")


@contextmanager
def sampled(samples: list[tuple[CpuSample, CpuSample]]) -> Iterator[None]:
    """Add the processors' counters before and after the block to *samples*."""
    before = sample()
    yield
    samples.append((before, sample()))
