"""How many repairs a unit gets: Python's interface to `native/agent/src/coding/` (rules: docs/coding.md)."""

from __future__ import annotations

from functools import lru_cache

from host_agent.coding.native import (
    CodingRules,
    binomial,
    decode_probability,
    flow_weight,
    htpc_rule,
    paper_rule,
)
from protocol.policy import CodingPolicy

__all__ = [
    "binomial",
    "decode_probability",
    "flow_weight",
    "htpc_rule",
    "paper_rule",
    "repairs_for",
    "rules_of",
]


@lru_cache(maxsize=64)
def rules_of(coding: CodingPolicy) -> CodingRules:
    """Return the rules of *coding*, which remember their answers: the same object for the same policy."""
    return CodingRules(coding)


def repairs_for(
    coding: CodingPolicy,
    blocking_probability: float,
    k: int,
    *,
    sent_bytes: int = 0,
    window: int | None = None,
) -> int:
    """Return r for a unit of *k* sources: 0 to the least of max_r, k max_overhead, and what the code has use for.

    HTPC's: *sent_bytes*, payload that the flow had sent before the unit; *window*, the flow's congestion window in
    packets (None: k).
    """
    return rules_of(coding).repairs(blocking_probability, k, sent_bytes, window)
