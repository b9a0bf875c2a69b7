"""Latencies in buckets of one shape, so that those of many hosts can be added: four buckets for each doubling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

COUNTER: Final = "request_to_decision"
"""Name of the counters, followed by a point and the bucket's number."""
STEPS: Final = 4
MOST: Final = 4 * 26
"""The last bucket begins at 67 s."""
MOST_COUNT: Final = 1 << 40
"""In a bucket of one agent: so that those of all can be counted together, whatever one of them says."""


class Latencies:
    """How many there were in each bucket. Bucket n: from 2^(n/4) to 2^((n+1)/4) microseconds; 0: anything below."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, seconds: float) -> None:
        """Count one more, of so long."""
        self.counts[bucket_of(seconds)] += 1

    def counters(self) -> dict[str, int]:
        """Return the counters that an agent reports."""
        return {f"{COUNTER}.{bucket}": count for bucket, count in self.counts.items()}

    @classmethod
    def from_counters(cls, hosts: Iterable[Mapping[str, float]]) -> Latencies:
        """Return the counts of several agents together; what is no bucket, or no count, is left out."""
        latencies = cls()
        for counters in hosts:
            for name, count in counters.items():
                kind, _, bucket = name.partition(".")
                if kind != COUNTER or not bucket.isdecimal() or not 0 <= count <= MOST_COUNT:
                    continue
                if int(bucket) <= MOST:
                    latencies.counts[int(bucket)] += int(count)
        return latencies

    def less(self, before: Latencies) -> Latencies:
        """Return those that have come since *before*."""
        return Latencies(self.counts - before.counts)

    def __len__(self) -> int:
        return self.counts.total()

    def quantile_us(self, share: float) -> float | None:
        """Return microseconds that at least this share took no longer than: a bucket's upper end. None: there
        are none.
        """
        total, seen = len(self), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= share * total:
                return bounds_us(bucket)[1]
        return None


def bucket_of(seconds: float) -> int:
    """Return the bucket of a latency."""
    us = seconds * 1e6
    return 0 if us <= 1 else min(MOST, math.floor(STEPS * math.log2(us)))


def bounds_us(bucket: int) -> tuple[float, float]:
    """Return where a bucket begins and ends, in microseconds."""
    low = 0.0 if bucket == 0 else 2.0 ** (bucket / STEPS)
    return low, 2.0 ** ((bucket + 1) / STEPS)
