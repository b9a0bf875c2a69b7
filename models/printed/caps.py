"""CAPS's Eq. 1-7 as printed (Hu et al., IEEE/ACM ToN 27(6), 2019, section VI).

r and the binomial terms are those that host agents use (`host_agent.coding.redundancy`): they exist once. Delays are in
seconds; the paper's figures have w = 64, C = 1 Gbit/s, MSS = 1500 B, RTT_S = 0.1 ms and RTT_L = 3 ms (`FIG_9`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pow
from typing import Final

from host_agent.coding.redundancy import binomial, paper_rule


@dataclass(frozen=True, slots=True)
class Delays:
    """What Eq. 3-6 take: window in packets, RTTs in seconds, rate in bit/s, segment in bytes."""

    window: int = 64
    free_rtt_s: float = 0.1e-3
    """RTT_S: the largest RTT of paths without long flows."""
    blocked_rtt_s: float = 3e-3
    """RTT_L: the largest of those with."""
    rate_bps: float = 1e9
    segment_bytes: int = 1500

    @property
    def packet_s(self) -> float:
        return self.segment_bytes * 8 / self.rate_bps


FIG_9: Final = Delays()


def blocked(k: int, r: int, p: float, j: int) -> float:
    """Return Eq. 1: p_B(j), the chance that exactly *j* of k + r packets are blocked, each with *p*."""
    return binomial(k + r, j, p)


def decodes(k: int, r: int, p: float) -> float:
    """Return Eq. 2: p_S, the chance that at most *r* of k + r packets are blocked. 0 for a negative r."""
    return sum(blocked(k, r, p, j) for j in range(r + 1))


def buffering_s(k: int, delays: Delays = FIG_9) -> float:
    """Return Eq. 3: d_B = (k - 1) MSS / 2C, the mean wait of a packet for the rest of its unit."""
    return (k - 1) * delays.packet_s / 2


def coded_delay_s(k: int, r: int, p: float, delays: Delays = FIG_9) -> float:
    """Return Eq. 4: d_w = p_S^(w/k) (RTT_S + d_B) + (1 - p_S^(w/k)) RTT_L. w / k need not be whole."""
    all_decode = pow(decodes(k, r, p), delays.window / k)
    free = delays.free_rtt_s + buffering_s(k, delays)
    return all_decode * free + (1 - all_decode) * delays.blocked_rtt_s


def uncoded_delay_s(p: float, delays: Delays = FIG_9) -> float:
    """Return Eq. 5: d_wnc = (1 - pB)^w RTT_S + (1 - (1 - pB)^w) RTT_L."""
    free = pow(1 - p, delays.window)
    return free * delays.free_rtt_s + (1 - free) * delays.blocked_rtt_s


def coded_delay_whole_s(k: int, r: int, p: float, delays: Delays = FIG_9) -> float:
    """Return Eq. 6: Eq. 2 and 3 put into Eq. 4."""
    gain = delays.free_rtt_s - delays.blocked_rtt_s + (k - 1) * delays.packet_s / 2
    total = sum(binomial(k + r, j, p) for j in range(r + 1))
    return delays.blocked_rtt_s + gain * pow(total, delays.window / k)


def overhead(p: float, long_to_short: float) -> float:
    """Return Eq. 7: eta = pB / (1 + g (1 - pB)), repairs over all packets; g: packets of long flows for one
    of short ones.

    It falls as g grows. Where the text of Fig. 10 says that the overhead grows with g, it is the share of short flows.
    """
    return p / (1 + long_to_short * (1 - p))


def best_unit(p: float, delays: Delays = FIG_9) -> int:
    """Return the k of 1 .. w with the least Eq. 4 at r = ceil(k / (1 - pB) - k); of equal ones, the largest."""
    return min(range(1, delays.window + 1), key=lambda k: (coded_delay_s(k, paper_rule(k, p), p, delays), -k))
