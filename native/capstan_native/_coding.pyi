"""Coding (host_agent/coding, native/agent): units, their redundancy and size. Times in seconds."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from protocol.policy import CodeName, CodingPolicy, Weight

def decode_probability(code: CodeName, k: int, r: int, blocking_probability: float) -> float:
    """Probability that all k sources are there from the packets that are not blocked, for independent blocking."""

def binomial(n: int, x: int, p: float) -> float:
    """P(X = x) for X ~ Binomial(n, p)."""

def ldpc_failure(k: int, r: int, missing: int) -> float:
    """P(not all of k sources are rebuilt) if *missing* of the k + r packets do not come, as measured."""

def most_repairs(code: CodeName, k: int) -> int:
    """Repairs beyond this number would be of no use for *k* sources, or cannot be."""

def paper_rule(k: int, blocking_probability: float) -> int:
    """r = ceil(k / (1 - pB) - k) (CAPS); the ceiling forgives 1e-9 of rounding, so k = 9, pB = 0.1 gives 1."""

def flow_weight(weight: Weight, sent_bytes: int) -> float:
    """w(D) of a flow that has sent D = *sent_bytes* (HTPC, Eq. 2): 1 up to T_s, 0 from T_w on, linear between."""

def htpc_rule(k: int, loss_rate: float, weight: Weight, sent_bytes: int, window: int | None = None) -> int:
    """r of k sources, the part k / c of x / (1 - P_L) - c repairs of a window of c packets (HTPC, Eq. 3-5; None: k)."""

def target_rule(code: CodeName, k: int, blocking_probability: float, target: float, max_r: int) -> int:
    """Smallest r <= max_r whose `decode_probability` is at least *target*; max_r if there is none."""

class CodingRules:
    """Redundancy and unit size under one policy; answers are remembered."""

    def __init__(self, coding: CodingPolicy) -> None: ...
    def repair_bound(self, k: int) -> int: ...
    def repairs(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> int: ...
    def optimal_k(
        self,
        blocking_probability: float,
        rtt_s: float,
        blocked_rtt_s: float,
        packet_time_s: float,
        flow_packets: int,
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

Closed = TypeVar("Closed")

class UnitEncoder(Generic[Closed]):
    """One sending flow: packets go in as they leave, a unit comes out when it closes (`host_agent.coding.unit`)."""

    def __new__(
        cls, rules: CodingRules, seed: int, closed: Callable[[int, int, int, int, int, list[bytes]], Closed]
    ) -> Self:
        """*closed* makes a unit: position, k, r, seed, bytes of a symbol, packets as they were taken in."""
    @property
    def units(self) -> int:
        """Units closed so far, and in `repairs` the repairs that they want."""
    @property
    def repairs(self) -> int: ...
    @property
    def open_packets(self) -> int:
        """Packets in the unit that is still open."""
    @property
    def room(self) -> int:
        """Packets that the unit still takes until it closes at its size."""
    def set_redundancy(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> None:
        """What the next units aim at: pB (0..1), and unit size k (cut to 1..max_k).

        *sent_bytes*: payload that the flow has sent before them. *window*: its congestion window in packets, if known.
        """
    def take(self, position: int, packet: bytes, now: float, push: bool) -> list[Closed]:
        """Take in the source packet that leaves as *position* (modulo 2**32; +1 for each of the flow).

        Returns the units that want repairs after it: the one that this packet closes, and before it, an older one that
        had to close because *position* does not follow it. Raises ValueError: the packet is empty or above 65535 B.
        """
    def deadline(self) -> float | None:
        """When the open unit has to be closed; None while no unit is open."""
    def end(self) -> list[Closed]:
        """Close the open unit, whatever its deadline (end of flow, change of policy or class)."""
