"""A result in figures: completion times and slowdowns by size class, losses by hop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.ideal import lone_ps
from simulation.runs import Result
from simulation.settings import Settings
from simulation.trace import Trace

SHORT_BYTES: Final = 100_000
LONG_BYTES: Final = 1_000_000
ALL: Final = "all"
CLASSES: Final = ("< 100 KB", "100 KB-1 MB", ">= 1 MB")
_PS_PER_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a person reads, with its unit."""

    value: float
    unit: str


def summarise(settings: Settings, trace: Trace, result: Result) -> dict[str, Figure]:
    """Return the figures of a run by name; classes without flows have none. Percentiles interpolate linearly."""
    slowdown = result.completed_ps / lone_ps(settings, trace)
    figures: dict[str, Figure] = {}
    for name, members in _classes(trace.sizes).items():
        if not members.any():
            continue
        times = result.completed_ps[members] / _PS_PER_US
        figures[f"FCT, {name}, mean"] = Figure(float(times.mean()), "us")
        if name != ALL:
            figures[f"FCT, {name}, p99"] = Figure(float(np.quantile(times, 0.99)), "us")
        figures[f"slowdown, {name}, mean"] = Figure(float(slowdown[members].mean()), "ratio")
        figures[f"slowdown, {name}, p99"] = Figure(float(np.quantile(slowdown[members], 0.99)), "ratio")
    for tier, count in result.drops.items():
        figures[f"dropped, {tier}"] = Figure(count, "packets")
    totals = result.totals
    figures["data packets sent"] = Figure(totals.data_packets_sent, "packets")
    figures["time-outs"] = Figure(totals.timeouts, "events")
    figures["duplicates received"] = Figure(totals.duplicates, "packets")
    return figures


def _classes(sizes: NDArray[np.int64]) -> Mapping[str, NDArray[np.bool_]]:
    short, long = sizes < SHORT_BYTES, sizes >= LONG_BYTES
    return {
        ALL: np.ones(len(sizes), dtype=bool),
        CLASSES[0]: short,
        CLASSES[1]: ~(short | long),
        CLASSES[2]: long,
    }
