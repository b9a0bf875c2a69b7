"""Freeway's low-latency and throughput paths, as `native/fabric/src/partition.rs` decides them."""

from __future__ import annotations

from typing import Final, Self

from capstan_native import LoadPartition
from capstan_native import PathSplit as Split

from controller.schemes.scheme import PartitionRule

__all__ = ["LATE", "LONG_UTILISATION", "SLACK", "PathPartition", "Split", "highest_load"]

LATE: Final = LoadPartition.LATE
"""Share of short flows that may miss the deadline."""
LONG_UTILISATION: Final = LoadPartition.LONG_UTILISATION
"""Of the paths that long flows need, how much they use: above it they get more."""
SLACK: Final = LoadPartition.SLACK
"""How much larger a load must be for its paths not to be given up."""

highest_load: Final = LoadPartition.highest_load_of


class PathPartition(LoadPartition):
    """The split of one fabric under one scheme's rule.

    Args:
        rule: in packet times.
        packet_time_s: 1500 B on the slowest fabric link, in seconds.
    """

    def __new__(cls, rule: PartitionRule, packet_time_s: float) -> Self:
        return super().__new__(
            cls,
            rule.deadline_packet_times,
            rule.burst_packets,
            rule.sampling_packet_times,
            rule.samples,
            packet_time_s,
        )
