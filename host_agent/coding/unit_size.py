"""Size of a coding unit: the door to `native/agent/src/coding/unit_size.rs`, which has the formula and its terms."""

from __future__ import annotations

from typing import Final

from host_agent.coding.redundancy import rules_of
from protocol.policy import CodingPolicy

FLOW_PACKETS: Final = 71
"""Packets of a flow at the default limit of short flows: 100 kB in packets of 1426 B."""


def optimal_k(
    coding: CodingPolicy,
    blocking_probability: float,
    rtt_s: float,
    blocked_rtt_s: float,
    packet_time_s: float = 0.0,
    flow_packets: int = FLOW_PACKETS,
) -> int:
    """Return k in 1 .. max_k with the least expected completion time.

    Args:
        coding: rule, code, max_k and max_r.
        blocking_probability: pB of one packet, rounded as r's is (1/256): r jumps with pB, and k has to fit it.
        rtt_s, blocked_rtt_s: round-trip times over unblocked and blocked paths, seconds.
        packet_time_s: time between two packets of a flow at the sender (1500 B at its access link), seconds.
        flow_packets: X.
    """
    return rules_of(coding).optimal_k(blocking_probability, rtt_s, blocked_rtt_s, packet_time_s, flow_packets)


def completion_time_s(
    coding: CodingPolicy,
    k: int,
    blocking_probability: float,
    rtt_s: float,
    blocked_rtt_s: float,
    packet_time_s: float = 0.0,
    flow_packets: int = FLOW_PACKETS,
) -> float:
    """Return E[T](k), the expected completion time of a flow in units of k, seconds."""
    return rules_of(coding).completion_time_s(
        k, blocking_probability, rtt_s, blocked_rtt_s, packet_time_s, flow_packets
    )
