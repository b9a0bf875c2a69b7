"""Was a run limited by the processor? The rule that judges samples of it.

Three gauges, because each alone is blind somewhere: the idle share of the CPUs that this process may use
(/proc/stat), the share of time in which some task waited for a CPU, and how late a thread wakes up that only
sleeps (what a host agent's timer would suffer). A run is limited if any of them is beyond its limit.

The tasks that wait are the lab's own, where the kernel counts them apart (`cpu.pressure` of the lab's control
group); else the whole machine's (/proc/pressure/cpu), and other work on other CPUs then counts, too. Alone on
the machine both agree.

The limits are measured: 60 short flows alone on 2 leaves x 16 spines of 3 Mbit/s (packet time 4 ms), 4 cores,
17 runs under each scheme with 0 to 12 busy loops beside them. Nothing else moves the mean completion time of
such flows (ECMP 201 ms, RPS 49 ms with idle processors), so its rise is what the processor did::

    idle       waiting    late ms    rise of the mean under RPS    under ECMP
    > 0.35     < 0.1      < 1.4      0 %                           0 to 1 %
    0.1-0.35   0.04-0.5   1.5-5.4    4 to 18 %, mean 12 %          0 to 2 %
    < 0.1      0.2-0.9    1-24       5 to 58 %, mean 20 %          0 to 11 %, mean 3 %
    any        > 0.5      2-24       6 to 58 %, mean 24 %          1 to 11 %, mean 4 %
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

SAMPLE_PERIOD_S: Final = 1.0
LIMIT_IDLE_SHARE: Final = 0.10
LIMIT_STALLED_SHARE: Final = 0.50
LIMIT_LATE_PACKET_TIMES: Final = 2.0
Waiting = Literal["own", "machine"]
"""Whose tasks waited: the lab's, or those of the whole machine."""


@dataclass(frozen=True, slots=True)
class CpuSample:
    """Counters at one moment, in seconds: of all usable CPUs together, and in which some task waited."""

    at: float
    idle_s: float
    total_s: float
    stalled_s: float | None


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Of one run. Shares are 0..1; `lowest_idle_share` is that of the worst second.

    late_ms: 99th percentile of how late a sleeping thread woke up. pressure: whose tasks `stalled_share` is of.
    """

    idle_share: float
    lowest_idle_share: float
    stalled_share: float | None
    late_ms: float
    limited: bool
    reason: str = ""
    pressure: Waiting | None = None


def judge(
    samples: Sequence[CpuSample],
    late_s: Sequence[float],
    packet_time_s: float,
    pressure: Waiting | None = "machine",
) -> CpuUse:
    """Return what the samples of a run (at least two) say. pressure: whose tasks waited in them."""
    first, last = samples[0], samples[-1]
    idle = _share(last.idle_s - first.idle_s, last.total_s - first.total_s)
    lowest = min(
        (
            _share(b.idle_s - a.idle_s, b.total_s - a.total_s)
            for a, b in pairwise(samples)
            if b.at - a.at >= SAMPLE_PERIOD_S / 2
        ),
        default=idle,
    )
    stalled = None
    if first.stalled_s is not None and last.stalled_s is not None:
        stalled = _share(last.stalled_s - first.stalled_s, last.at - first.at)
    ordered = sorted(late_s)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0
    reasons = []
    if idle < LIMIT_IDLE_SHARE:
        reasons.append(f"idle {idle:.0%}, below {LIMIT_IDLE_SHARE:.0%}")
    if stalled is not None and stalled > LIMIT_STALLED_SHARE:
        reasons.append(
            f"some task of the {'lab' if pressure == 'own' else 'machine'} waited for a CPU {stalled:.0%} of the time, "
            f"more than {LIMIT_STALLED_SHARE:.0%}"
        )
    if late > LIMIT_LATE_PACKET_TIMES * packet_time_s:
        reasons.append(
            f"wake-ups {late * 1e3:.1f} ms late (p99), more than {LIMIT_LATE_PACKET_TIMES:g} packet times"
        )
    whose = None if stalled is None else pressure
    return CpuUse(idle, lowest, stalled, late * 1e3, bool(reasons), "; ".join(reasons), whose)


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 1.0
