"""Estimators of the blocking probability: the door to `native/agent/src/blocking/` (docs/coding.md compares them).

One estimator per (sending agent, leaf), fed from the peers' feedback and, for RTTs, from the inner ACKs.
"""

from __future__ import annotations

from typing import Final

from host_agent.coding.native import (
    AckShareEstimator,
    BlockingEstimator,
    LossRateEstimator,
    PathsEstimator,
    RttEstimator,
)
from protocol.policy import EstimatorName

MAX_BLOCKING_PROBABILITY: Final = BlockingEstimator.MAX_BLOCKING_PROBABILITY
"""Bound of the estimates that are ours: beyond it coding more than doubles the load, and feeds what it fights."""
PRIOR: Final = BlockingEstimator.PRIOR
"""pB while nothing is known yet."""

__all__ = [
    "MAX_BLOCKING_PROBABILITY",
    "PRIOR",
    "AckShareEstimator",
    "BlockingEstimator",
    "LossRateEstimator",
    "PathsEstimator",
    "RttEstimator",
    "estimator",
]


def estimator(
    name: EstimatorName, packet_time_s: float, sampling_s: float | None = None
) -> BlockingEstimator:
    """Return the estimator of that name; *packet_time_s*: 1500 B on the slowest fabric link.

    *sampling_s*: of all but ``paths``; None: 256 packet times. Raises ValueError if there is none of that name.
    """
    if name == "rtt":
        return RttEstimator(packet_time_s, sampling_s)
    if name == "rtt-average":
        return AckShareEstimator(packet_time_s, sampling_s)
    if name == "rtt-smoothed":
        return AckShareEstimator(packet_time_s, sampling_s, smoothed=True)
    if name == "loss-rate":
        return LossRateEstimator(packet_time_s, sampling_s)
    if name == "paths":
        return PathsEstimator(packet_time_s)
    raise ValueError(
        f"estimator {name!r} is not known; there are loss-rate, paths, rtt, rtt-average, rtt-smoothed"
    )
