"""Size k of a coding unit with the least expected completion time: what CAPS's Eq. 4 is for, by a cost of ours.

What is optimised (all symbols: docs/coding.md). A short flow of X packets is cut into u = ceil(X / k) units; a unit
of k' sources gets r(k') repairs by the policy's rule. All X + sum r packets leave in slow start from a window of
w0 = 10 (RFC 6928), hence in R = max(1, log2((X + sum r) / w0 + 1)) rounds (not rounded: a real flow's size is not
known here, and steps of rounds would drown the effect). A round lasts one RTT if all of its u / R units decode from
unblocked packets, and the blocked RTT otherwise; and where any source of a unit is blocked, it is healed only when the
unit's repairs have left, (k + r) packet times after its start:

    F(k)    = 1 - P(unit of k decodes)                          (`redundancy.decode_probability`)
    T_R(k)  = RTT + (RTT_b - RTT) * (1 - (1 - F)^(u/R)) + (1 - (1 - pB)^k) * (k + r) * t_p
    E[T](k) = R(k) * T_R(k) + (X + sum r) * t_p

and k is the argument of the minimum; of equal ones, the largest. Small units pay by redundancy rounded up and by many
chances to fail, large ones by waiting for their repairs. The last term is the time the flow's packets take to leave.

This is ours. Eq. 4 as printed (`models/printed/caps.py`) is least at k = w, or nearly, and does not give the optima
that the paper prints (k = 29, 31, 33, 40 at pB = 0.2 .. 0.35), which do not follow from this either.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from host_agent.coding.redundancy import BLOCKING_STEPS, decode_probability, repairs_for
from protocol.policy import CodingPolicy

FLOW_PACKETS: Final = 71
"""Packets of a flow at the default limit of short flows: 100 kB in packets of 1426 B."""
INITIAL_WINDOW: Final = 10
RATIO_STEPS: Final = 4
"""Ratios of times are rounded to powers of 2^(1/RATIO_STEPS) before the search, which is cached."""


def optimal_k(
    coding: CodingPolicy,
    blocking_probability: float,
    rtt_s: float,
    blocked_rtt_s: float,
    packet_time_s: float = 0.0,
    flow_packets: int = FLOW_PACKETS,
) -> int:
    """k in 1 .. max_k with the least expected completion time; microseconds when cached, ms when not.

    Args:
        coding: rule, code, max_k and max_r.
        blocking_probability: pB of one packet, rounded as r's is (1/256): r jumps with pB, and k has to fit it.
        rtt_s, blocked_rtt_s: round-trip times over unblocked and blocked paths, seconds.
        packet_time_s: time between two packets of a flow at the sender (1500 B at its access link), seconds.
        flow_packets: X.
    """
    if not rtt_s > 0.0:
        return coding.max_k
    step = round(min(max(blocking_probability, 0.0), 1.0) * BLOCKING_STEPS)
    if step == 0:
        return coding.max_k
    return _search(
        coding,
        step,
        _quantised(max(blocked_rtt_s / rtt_s, 1.0)),
        _quantised(packet_time_s / rtt_s),
        max(1, flow_packets),
    )


def completion_time_s(
    coding: CodingPolicy,
    k: int,
    blocking_probability: float,
    rtt_s: float,
    blocked_rtt_s: float,
    packet_time_s: float = 0.0,
    flow_packets: int = FLOW_PACKETS,
) -> float:
    """E[T](k) in seconds, see above."""
    k = min(k, flow_packets)
    units = -(-flow_packets // k)
    rest = flow_packets - (units - 1) * k
    r = repairs_for(coding, blocking_probability, k)
    packets = flow_packets + (units - 1) * r + repairs_for(coding, blocking_probability, rest)
    rounds = max(1.0, math.log2(packets / INITIAL_WINDOW + 1.0))
    decodes = decode_probability(coding.code, k, r, blocking_probability)
    fails = 1.0 - math.pow(decodes, units / rounds)
    waits = 1.0 - (1.0 - blocking_probability) ** k
    round_s = rtt_s + (blocked_rtt_s - rtt_s) * fails + waits * (k + r) * packet_time_s
    return rounds * round_s + packets * packet_time_s


def _quantised(ratio: float) -> int | None:
    """Exponent of the ratio in steps of 2^(1/RATIO_STEPS); None for 0."""
    return round(math.log2(ratio) * RATIO_STEPS) if ratio > 1e-6 else None


@lru_cache(maxsize=1 << 14)
def _search(
    coding: CodingPolicy, step: int, blocked: int | None, packet_time: int | None, flow_packets: int
) -> int:
    def value(exponent: int | None) -> float:
        return 0.0 if exponent is None else math.exp2(exponent / RATIO_STEPS)

    p, blocked_rtt, gap = step / BLOCKING_STEPS, max(1.0, value(blocked)), value(packet_time)

    def cost(k: int) -> tuple[float, int]:
        return completion_time_s(coding, k, p, 1.0, blocked_rtt, gap, flow_packets), -k

    return min(range(1, coding.max_k + 1), key=cost)
