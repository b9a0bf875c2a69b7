"""Which reading of CAPS's Eq. 4 gives the optimal unit sizes that the paper prints? None; one comes within a packet.

The paper (section VI-D) prints k = 29, 31, 33, 40 for pB = 0.2, 0.25, 0.3, 0.35 at w = 64, C = 1 Gbit/s, RTTs of 0.1
and 3 ms, and r = ceil(k / (1 - pB) - k). Each `Reading` below is a cost per k, and its optimum where that is least:
Eq. 4 as printed (`models.printed.caps`), Eq. 4 with another number of units in a window, another rounding of r or
another k' (the text lets k' be "slightly larger than k"), and ours. They have in common what needs no reading:
rounding r up makes units strong where k / (1 - pB) is just above a whole number, so any cost that holds P(decode) has
its local minima there. 29, 31 and 33 are such sizes (the chance that three sizes taken at random are: 1/4 * 1/3 *
1/7); 40 is not, but 41 is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log2, pow
from typing import Final

from host_agent.coding.redundancy import decode_probability, paper_rule
from host_agent.coding.unit_size import completion_time_s
from models.printed import caps as printed
from protocol.policy import CodingPolicy

PRINTED: Final = {0.20: 29, 0.25: 31, 0.30: 33, 0.35: 40}
"""The paper's optimal k by pB."""
LARGEST: Final = 64
"""Unit sizes that are searched."""
BLOCKED_RATIO: Final = 10.0
"""RTT_b / RTT."""
WINDOW: Final = printed.FIG_9.window
PAPER_CODING: Final = CodingPolicy(max_overhead=8.0, redundancy="paper", max_k=LARGEST, max_r=64)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read Eq. 4: a cost by unit size and pB, in RTTs (or RTTs a packet)."""

    name: str
    formula: str
    cost: Callable[[int, float], float]

    def optimum(self, p: float) -> int:
        """Return k in 1 .. `LARGEST` with the least cost; of equal ones, the largest."""
        return min(range(1, LARGEST + 1), key=lambda k: (self.cost(k, p), -k))


@lru_cache(maxsize=1 << 12)
def decodes(k: int, p: float) -> float:
    """Return P(unit of k and the paper's r is there), for a code that never fails (MDS)."""
    return decode_probability("mds", k, paper_rule(k, p), p)


def delay(k: int, p: float) -> float:
    """Return RTT P + RTT_b (1 - P), in RTTs."""
    return decodes(k, p) + BLOCKED_RATIO * (1.0 - decodes(k, p))


def rounds(k: int, p: float, initial: int) -> float:
    """Return the rounds of slow start from *initial* packets that the unit's k + r packets take, not rounded."""
    return log2((k + paper_rule(k, p)) / initial + 1.0)


def _window_delay(
    k: int, p: float, *, units: float, extra: int = 0, delays: printed.Delays = printed.FIG_9
) -> float:
    """Return Eq. 4 in seconds with *units* in a window, of which each takes k + *extra* packets to decode."""
    r = paper_rule(k, p)
    chance = pow(sum(printed.blocked(k, r, p, j) for j in range(r + 1 - extra)), units)
    return chance * (delays.free_rtt_s + printed.buffering_s(k, delays)) + (1 - chance) * delays.blocked_rtt_s


def _rounded_down(k: int, p: float) -> float:
    """Return Eq. 4 with r = floor(k / (1 - pB) - k), in seconds."""
    return printed.coded_delay_s(k, floor(k * p / (1 - p) + 1e-9), p)


FITTED: Final = printed.Delays(window=56, blocked_rtt_s=6e-3, rate_bps=2e9)
"""Of some 3 million combinations of window, RTT, rate, rounding, units and k', among the closest with Eq. 4's form."""
READINGS: Final = (
    Reading("printed", "Eq. 4: w / k units", lambda k, p: printed.coded_delay_s(k, paper_rule(k, p), p)),
    Reading(
        "whole units", "Eq. 4, ceil(w / k) units", lambda k, p: _window_delay(k, p, units=ceil(WINDOW / k))
    ),
    Reading("full units", "Eq. 4, floor(w / k) units", lambda k, p: _window_delay(k, p, units=WINDOW // k)),
    Reading(
        "one more",
        "Eq. 4, floor(w / k) units, k' = k + 1",
        lambda k, p: _window_delay(k, p, units=WINDOW // k, extra=1),
    ),
    Reading("rounded down", "Eq. 4, r rounded down", _rounded_down),
    Reading(
        "fitted",
        "as one more, with w = 56, RTT_L = 6 ms, C = 2 Gbit/s",
        lambda k, p: _window_delay(k, p, units=max(1, FITTED.window // k), extra=1, delays=FITTED),
    ),
    Reading(
        "agent",
        "completion time of 71 packets (docs/coding.md), q = 10, t_p = 0",
        lambda k, p: completion_time_s(PAPER_CODING, k, p, rtt_s=1.0, blocked_rtt_s=BLOCKED_RATIO),
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
"""Eq. 4 by its words; then ours, the simplest ones, and two whose constants are chosen to come close, as those of
`fitted` are."""
