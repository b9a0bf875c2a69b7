"""Which paths carry short flows and which long ones, by load: Freeway's low-latency and throughput paths.

W. Wang, Y. Sun, K. Zheng, M. A. Kaafar, D. Li, Z. Li: "Freeway: Adaptively Isolating the Elephant and Mice Flows on
Different Transmission Paths", IEEE ICNP 2014 (extended: doi 10.1109/TNSM.2016.2517087). There, an M/G/1 model gives
the highest mean delay of a low-latency path with which 99 % of the short flows still meet their deadline, and paths
change sides so that this bound holds. That is also all that CAPS (sections II and VIII-A), whose baseline it is, says
of it. The equations are derived here from that:

- A low-latency path is an M/G/1 queue of bursts (windows) of `burst_packets` packets on the average, exponentially
  distributed. If one takes b on an idle path, the waiting time W has P(W > d) = rho exp(-(1 - rho) d / b).
- The highest load rho of a low-latency path is where P(W > deadline) is 1 %: `highest_load`.
- As many paths as the short flows' load takes then are low-latency paths, and those that long flows leave over: these
  get twice the paths that they fill, so that they have room to grow into the rest.
- Both kinds always have a path, where there are two. (In CAPS's appendix A all paths are the short flows' where there
  is no long one, so that Freeway is ECMP; here one path is kept for the next long flow.)

**What is measured.** Bytes of the short and the long class that each leaf sent up, by meters; a leaf's load counts as
a share of its uplinks. All leaves have the same split, that of the busiest: a spine's ports down to a leaf are shared
by all other leaves, and a path would not be isolated if one leaf had it for short flows and another for long ones.
What a leaf receives is not measured.

**Steadiness.** A load counts as the highest of the last `samples`, and a kind of flow gives up only paths that it could
do without at `SLACK` times its load: without that dead band, a load with 20 % of noise near a whole number of paths
changed the split once or twice a second. While neither load varies by more than `SLACK`, of one set of paths none turns
from throughput to low latency once one has turned the other way. Loads that vary more still move paths to and fro.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from controller.schemes.scheme import PartitionRule

LATE: Final = 0.01
"""Share of short flows that may miss the deadline."""
LONG_UTILISATION: Final = 0.5
"""Of the paths that long flows need, how much they use: above it they get more."""
SLACK: Final = 1.6
"""How much larger a load must be for its paths not to be given up."""
SHORTEST_SAMPLING_S: Final = 0.05
READ_LOST_S: Final = 1.0
"""A meter read that has not been answered for this long, in seconds, is asked again."""


def highest_load(deadline: float, burst: float) -> float:
    """Return the rho at which a share of `LATE` waits longer than *deadline*; both in packet times. Within 0..1."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        late = middle * math.exp(-(1 - middle) * deadline / burst)
        low, high = (middle, high) if late <= LATE else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Split:
    """Paths (stamps) of a fabric, ascending: each is one or the other."""

    low_latency: frozenset[int] = frozenset()
    throughput: frozenset[int] = frozenset()

    def by_class(self, path_sets: Iterable[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return what of a leaf's paths each class is to keep to; nothing where there is no split.

        Control packets (ACKs) keep to the low-latency paths: a flow's own data is often on the others.
        """
        own = {path for paths in path_sets for path in paths}
        low, high = tuple(sorted(own & self.low_latency)), tuple(sorted(own & self.throughput))
        return {"short": low, "long": high, "control": low} if low and high else {}


@dataclass(slots=True)
class _Leaf:
    uplinks: int
    next_read: float
    asked: float | None = None
    counted: tuple[float, int, int] | None = None
    """When, and bytes of the short and long class by then."""
    loads: deque[tuple[float, float]] = field(default_factory=deque)
    """Short and long load as shares of the uplinks, the last samples."""


class PathPartition:
    """The split of one fabric under one scheme's rule.

    Args:
        rule: in packet times.
        packet_time_s: 1500 B on the slowest fabric link, in seconds.
    """

    def __init__(self, rule: PartitionRule, packet_time_s: float) -> None:
        self.sampling_time_s: Final = max(rule.sampling_packet_times * packet_time_s, SHORTEST_SAMPLING_S)
        self.highest_load: Final = highest_load(rule.deadline_packet_times, rule.burst_packets)
        self._samples: Final = rule.samples
        self._bytes_per_s: Final = 1500 / packet_time_s
        self._leaves: dict[int, _Leaf] = {}
        self._split = Split()

    def watch(self, leaf: int, uplinks: int, now: float) -> None:
        """Measure *leaf*, which has this many ways up; 0: do so no more."""
        if uplinks <= 0:
            self._leaves.pop(leaf, None)
        elif leaf in self._leaves:
            self._leaves[leaf].uplinks = uplinks
        else:
            self._leaves[leaf] = _Leaf(uplinks, now, loads=deque(maxlen=self._samples))

    def due(self, now: float) -> tuple[int, ...]:
        """Return leaves whose meters are to be read now; each is named once per read."""
        leaves = tuple(leaf for leaf, state in self._leaves.items() if _when(state) <= now)
        for leaf in leaves:
            self._leaves[leaf].asked = now
        return leaves

    def deadline(self) -> float | None:
        """Return when `due` next names a leaf."""
        return min(map(_when, self._leaves.values()), default=None)

    def sample(self, leaf: int, short_bytes: int, long_bytes: int, now: float) -> None:
        """What the meters of *leaf* have counted since they were made; less than before: they were made anew."""
        state = self._leaves.get(leaf)
        if state is None:
            return
        state.asked, state.next_read = None, now + self.sampling_time_s
        before, state.counted = state.counted, (now, short_bytes, long_bytes)
        if before is None or now <= before[0]:
            return
        capacity = state.uplinks * self._bytes_per_s * (now - before[0])
        short, long = short_bytes - before[1], long_bytes - before[2]
        if short >= 0 and long >= 0:
            state.loads.append((short / capacity, long / capacity))

    def low_latency_share(self) -> float:
        """Return the share of paths for short flows: 0..1, before rounding to whole paths."""
        short, long = self._needs()
        return min(1.0, max(short, 1 - long))

    def _needs(self) -> tuple[float, float]:
        """Return the shares of paths that short and long flows need; each may be above 1."""
        short = max((load for state in self._leaves.values() for load, _ in state.loads), default=0.0)
        long = max((load for state in self._leaves.values() for _, load in state.loads), default=0.0)
        return short / self.highest_load, long / LONG_UTILISATION

    def _count(self, paths: tuple[int, ...]) -> int:
        """Return how many of *paths* are to be low-latency ones."""
        total, (short, long) = len(paths), self._needs()
        short_need, long_need = _whole(short * total), _whole(long * total)
        wanted = max(short_need, total - long_need)
        now = len(self._split.low_latency.intersection(paths))
        if set(paths) <= self._split.low_latency | self._split.throughput:
            if wanted < now:  # long flows need more; short ones give what they have too much
                wanted = max(wanted, min(now, _whole(SLACK * short * total)))
            elif short_need <= now < wanted:  # long flows leave some over
                wanted = min(wanted, max(now, total - _whole(SLACK * long * total)))
        return max(1, min(total - 1, wanted))

    def split(self, path_sets: Iterable[tuple[int, ...]]) -> Split:
        """Split these sets of paths, each that of a pair of leaves, by the present loads.

        Each set with two paths or more gets some of both kinds, if sets do not overlap otherwise than by containing
        each other; as few paths as possible change sides.
        """
        low: set[int] = set()
        high: set[int] = set()
        for paths in sorted(set(path_sets), key=lambda stamps: (len(stamps), stamps)):
            missing = self._count(paths) - len(low.intersection(paths))
            free = sorted(
                set(paths) - low - high, key=lambda stamp: (stamp not in self._split.low_latency, stamp)
            )
            chosen = max(0, min(missing, len(free)))
            if chosen == len(free) > 0 and len(paths) > 1 and not high.intersection(paths):
                chosen -= 1
            low.update(free[:chosen])
            high.update(free[chosen:])
        self._split = Split(frozenset(low), frozenset(high))
        return self._split


def _whole(paths: float) -> int:
    return math.ceil(paths - 1e-9)


def _when(state: _Leaf) -> float:
    return state.next_read if state.asked is None else state.asked + READ_LOST_S
