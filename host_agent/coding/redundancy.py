"""How many repairs a unit gets: the door to `native/agent/src/coding/` (docs/coding.md has the rules and reasons)."""

from __future__ import annotations

from functools import lru_cache

from host_agent.coding.native import (
    CodingRules,
    binomial,
    decode_probability,
    flow_weight,
    htpc_rule,
    most_repairs,
    paper_rule,
    target_rule,
)
from protocol.policy import CodingPolicy

__all__ = [
    "binomial",
    "decode_probability",
    "flow_weight",
    "htpc_rule",
    "most_repairs",
    "paper_rule",
    "repair_bound",
    "repairs_for",
    "rules_of",
    "target_rule",
]


@lru_cache(maxsize=64)
def rules_of(coding: CodingPolicy) -> CodingRules:
    """Return the rules of *coding*, which remember their answers: the same object for the same policy."""
    return CodingRules(coding)


def repair_bound(coding: CodingPolicy, k: int) -> int:
    """Return what bounds r of a unit of *k* sources: max_r, k max_overhead, and what the code can use."""
    return rules_of(coding).repair_bound(k)


def repairs_for(
    coding: CodingPolicy, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
) -> int:
    """Return r for a unit of *k* sources under *coding*: 0 .. `repair_bound`.

    HTPC's: *sent_bytes*, payload that the flow had sent before the unit; *window*, the flow's congestion window in
    packets (None: k).
    """
    return rules_of(coding).repairs(blocking_probability, k, sent_bytes, window)
