"""Size of a coding unit: Python's interface to `native/agent/src/coding/unit_size.rs`, which has the formula."""

from __future__ import annotations

from typing import Final

from host_agent.coding.redundancy import rules_of
from protocol.policy import CodingPolicy

FLOW_PACKETS: Final = 71
"""Packets of a flow at the default limit of short flows: 100 kB in packets of 1426 B."""


def completion_time_s(
    coding: CodingPolicy,
    k: int,
    blocking_probability: float,
    *,
    rtt_s: float,
    blocked_rtt_s: float,
    packet_time_s: float = 0.0,
    flow_packets: int = FLOW_PACKETS,
) -> float:
    """Return E[T](k), the expected completion time of a flow in units of k, seconds."""
    return rules_of(coding).completion_time_s(
        k, blocking_probability, rtt_s, blocked_rtt_s, packet_time_s, flow_packets
    )
