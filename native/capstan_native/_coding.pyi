"""Coding (host_agent/coding, native/agent): redundancy and size of units. Times in seconds."""

from protocol.policy import CodeName, CodingPolicy, Weight

def decode_probability(code: CodeName, k: int, r: int, blocking_probability: float) -> float:
    """Return the probability that unblocked packets give all k sources, for independent blocking."""

def binomial(n: int, x: int, p: float) -> float:
    """P(X = x) for X ~ Binomial(n, p)."""

def paper_rule(k: int, blocking_probability: float) -> int:
    """r = ceil(k / (1 - pB) - k) (CAPS); the ceiling forgives 1e-9 of rounding, so k = 9, pB = 0.1 gives 1."""

def flow_weight(weight: Weight, sent_bytes: int) -> float:
    """w(D) of a flow that has sent D = *sent_bytes* (HTPC, Eq. 2): 1 up to T_s, 0 from T_w on, linear between."""

def htpc_rule(k: int, loss_rate: float, weight: Weight, sent_bytes: int, window: int | None = None) -> int:
    """r of k sources, the part k / c of x / (1 - P_L) - c repairs of a window of c packets (HTPC, Eq. 3-5; None: k)."""

class CodingRules:
    """Redundancy and unit size under one policy; answers are remembered."""

    def __init__(self, coding: CodingPolicy) -> None: ...
    def repairs(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> int: ...
    def completion_time_s(
        self,
        k: int,
        blocking_probability: float,
        rtt_s: float,
        blocked_rtt_s: float,
        packet_time_s: float,
        flow_packets: int,
    ) -> float: ...
