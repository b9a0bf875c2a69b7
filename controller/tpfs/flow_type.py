"""One type of flows: what its flows have in common, how large they are, and their thresholds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlowType:
    """values: texts of the chosen fields, in their order, those with most flows first. thresholds_bytes: K - 1.

    cdf: share of flows that are at most ``points_bytes``; queue_bytes: what its flows send from each of the K queues.
    """

    flows: int
    values: tuple[tuple[str, ...], ...]
    thresholds_bytes: tuple[int, ...]
    mean_bytes: float
    median_bytes: float
    p90_bytes: float
    cdf: tuple[float, ...]
    queue_bytes: tuple[float, ...]
