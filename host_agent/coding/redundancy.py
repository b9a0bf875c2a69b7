"""How many repairs r a unit of k sources gets, from the blocking probability pB of one packet.

Two rules (docs/coding.md has the reasons):

- ``paper`` (CAPS, section IV): r = ceil(k / (1 - pB) - k), so that k of the k + r packets arrive *on average*.
- ``target-decode-probability``: the smallest r with which the unit is decoded with at least that probability when
  every one of the k + r packets is blocked or lost independently with probability pB. It counts what the code
  itself fails at: rank deficiency (RLC), weak graphs (LDPC, measured), two losses in one parity (XOR).

pB = 0 gives r = 0 by both rules: there is nothing to repair, and an estimator that knows nothing does not say 0 (its
prior is above it).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from host_agent.coding.codes import code_named
from host_agent.coding.ldpc_failure import ldpc_failure
from protocol.policy import CodeName, CodingPolicy

MAX_BLOCKING: Final = 0.95
"""pB is cut here: k / (1 - pB) has a pole at 1."""
BLOCKING_STEPS: Final = 256
"""`target` decisions are cached for pB rounded to multiples of 1 / BLOCKING_STEPS."""


def repairs_for(coding: CodingPolicy, blocking_probability: float, k: int) -> int:
    """r for a unit of *k* sources under *coding*: 0 .. min(max_r, what the code can use)."""
    cap = min(coding.max_r, code_named(coding.code).most_repairs(k))
    if coding.redundancy == "paper":
        return min(cap, paper_rule(k, blocking_probability))
    step = round(min(max(blocking_probability, 0.0), MAX_BLOCKING) * BLOCKING_STEPS)
    return _target_rule(coding.code, k, step, coding.target_decode_probability, cap)


def paper_rule(k: int, blocking_probability: float) -> int:
    """r = ceil(k / (1 - pB) - k) (CAPS); the ceiling forgives 1e-9 of rounding, so k = 9, pB = 0.1 gives 1."""
    p = min(max(blocking_probability, 0.0), MAX_BLOCKING)
    return math.ceil(k * p / (1.0 - p) - 1e-9)


def target_rule(code: CodeName, k: int, blocking_probability: float, target: float, max_r: int) -> int:
    """Smallest r <= max_r whose `decode_probability` is at least *target*; max_r if there is none."""
    for r in range(max_r):
        if decode_probability(code, k, r, blocking_probability) >= target:
            return r
    return max_r


@lru_cache(maxsize=1 << 16)
def _target_rule(code: CodeName, k: int, step: int, target: float, max_r: int) -> int:
    return target_rule(code, k, step / BLOCKING_STEPS, target, max_r)


def decode_probability(code: CodeName, k: int, r: int, blocking_probability: float) -> float:
    """Probability that all k sources are there from the packets that are not blocked, for independent blocking."""
    p = min(max(blocking_probability, 0.0), 1.0)
    if r == 0:
        return (1.0 - p) ** k
    if code == "xor":
        return _xor(k, r, p)
    if code == "ldpc":
        return sum(
            chance * (1.0 - ldpc_failure(k, r, lost))
            for lost, chance in enumerate(binomial(k + r, p)[: r + 1])
        )
    return _rlc(k, r, p)


def binomial(n: int, p: float) -> list[float]:
    """P(X = 0) .. P(X = n) for X ~ Binomial(n, p)."""
    if p <= 0.0:
        return [1.0] + [0.0] * n
    if p >= 1.0:
        return [0.0] * n + [1.0]
    return [math.comb(n, x) * p**x * (1.0 - p) ** (n - x) for x in range(n + 1)]


def rank_probability(losses: int, repairs: int) -> float:
    """P(a random repairs x losses matrix over GF(256) has full column rank).

    Ours has no zero coefficients, so a single loss always decodes; for more losses the uniform matrix's product
    is within 1e-4 of it.
    """
    if losses > repairs:
        return 0.0
    if losses <= 1:
        return 1.0
    return math.prod(1.0 - 256.0 ** -(repairs - i) for i in range(losses))


def _rlc(k: int, r: int, p: float) -> float:
    repairs = binomial(r, 1.0 - p)
    return sum(
        chance * sum(repairs[m] * rank_probability(losses, m) for m in range(losses, r + 1))
        for losses, chance in enumerate(binomial(k, p)[: r + 1])
    )


def _xor(k: int, r: int, p: float) -> float:
    """Every parity group must have lost no source, or one and not its parity."""
    whole = 1.0
    for j in range(min(r, k)):
        size = (k - j - 1) // r + 1
        whole *= (1.0 - p) ** size + size * p * (1.0 - p) ** size
    return whole
