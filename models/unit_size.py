"""Which reading of CAPS's Eq. 4 gives the optimal unit sizes that the paper prints? None; one comes within a packet.

The paper prints k = 29, 31, 33, 40 for pB = 0.2, 0.25, 0.3, 0.35. Its Eq. 4 was not at hand, only what goes in (pB, k,
r, RTT, RTT_b), and that r = ceil(k / (1 - pB) - k). Each `Reading` below is a cost per k, and its optimum where that is
least. They have in common what needs no reading: rounding r up makes units strong where k / (1 - pB) is just above
a whole number, so any cost that holds P(decode) has its local minima there. 29, 31 and 33 are such sizes (the chance
that three sizes taken at random are: 1/4 * 1/3 * 1/7); 40 is not, but 41 is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import Final

from host_agent.coding.redundancy import decode_probability, paper_rule
from host_agent.coding.unit_size import completion_time_s
from protocol.policy import CodingPolicy

PRINTED: Final = {0.20: 29, 0.25: 31, 0.30: 33, 0.35: 40}
"""The paper's optimal k by pB."""
LARGEST: Final = 64
"""Unit sizes that are searched."""
BLOCKED_RATIO: Final = 10.0
"""RTT_b / RTT."""
PAPER_CODING: Final = CodingPolicy(redundancy="paper", max_k=LARGEST, max_r=64)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read Eq. 4: a cost by unit size and pB, in RTTs (or RTTs a packet)."""

    name: str
    formula: str
    cost: Callable[[int, float], float]

    def optimum(self, p: float) -> int:
        """k in 1 .. `LARGEST` with the least cost; of equal ones, the largest."""
        return min(range(1, LARGEST + 1), key=lambda k: (self.cost(k, p), -k))


@lru_cache(maxsize=1 << 12)
def decodes(k: int, p: float) -> float:
    """P(unit of k and the paper's r is there), for a code that never fails (MDS)."""
    return decode_probability("mds", k, paper_rule(k, p), p)


def delay(k: int, p: float) -> float:
    """RTT P + RTT_b (1 - P), in RTTs."""
    return decodes(k, p) + BLOCKED_RATIO * (1.0 - decodes(k, p))


def rounds(k: int, p: float, initial: int) -> float:
    """Rounds of slow start from *initial* packets that the unit's k + r packets take, not rounded."""
    return log2((k + paper_rule(k, p)) / initial + 1.0)


READINGS: Final = (
    Reading(
        "agent",
        "completion time of 71 packets (docs/coding.md), q = 10, t_p = 0",
        lambda k, p: completion_time_s(PAPER_CODING, k, p, 1.0, BLOCKED_RATIO),
    ),
    Reading(
        "delay", "(P + (1 - P) q) / k: of each packet; q = RTT_b / RTT = 10", lambda k, p: delay(k, p) / k
    ),
    Reading(
        "sent",
        "(k + r) / (k P): for each that counts",
        lambda k, p: (k + paper_rule(k, p)) / (k * decodes(k, p)),
    ),
    Reading(
        "resent",
        "1 / (k P) + 0.0015 k",
        lambda k, p: 1.0 / (k * decodes(k, p)) + 0.0015 * k,
    ),
    Reading(
        "slow start",
        "(P + (1 - P) q) log2((k + r) / 2 + 1) / k + 0.01 k, q = 10",
        lambda k, p: delay(k, p) * rounds(k, p, 2) / k + 0.01 * k,
    ),
)
"""Ours, the simplest ones, and the two that come closest. The constants of the last two are chosen to come close."""
