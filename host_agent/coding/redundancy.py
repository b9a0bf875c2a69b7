"""How many repairs r a unit of k sources gets, from the blocking probability pB of one packet.

The rules (docs/coding.md has the reasons):

- ``paper`` (CAPS, section IV): r = ceil(k / (1 - pB) - k), so that k of the k + r packets arrive *on average*.
- ``target-decode-probability``: the smallest r with which the unit is decoded with at least that probability when
  every one of the k + r packets is blocked or lost independently with probability pB. It counts what the code
  itself fails at: rank deficiency (RLC), weak graphs (LDPC, measured), two losses in one parity (XOR).
- ``adaptive``: the same, with a pB that outcomes have corrected (`margin`).
- ``htpc`` (HTPC, Eq. 2-5): r = x / (1 - P_L) - k, where x is k for a flow that has sent little, and no more than the
  packets that fast retransmission needs for one that has sent much. P_L is the estimator's pB.
- ``one-per-unit`` (Corrective): 1, whatever pB.

pB = 0 gives r = 0 by all but the last rule: there is nothing to repair, and an estimator that knows nothing does not
say 0 (its prior is above it).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Final

from host_agent.coding.ldpc_failure import ldpc_failure
from host_agent.coding.limits import most_repairs
from protocol.policy import CodeName, CodingPolicy, Weight

MAX_BLOCKING: Final = 0.95
"""pB is cut here: k / (1 - pB) has a pole at 1."""
BLOCKING_STEPS: Final = 256
"""`target` decisions are cached for pB rounded to multiples of 1 / BLOCKING_STEPS."""


def repair_bound(coding: CodingPolicy, k: int) -> int:
    """What bounds r of a unit of *k* sources: max_r, k max_overhead, and what the code can use."""
    return min(coding.max_r, math.ceil(k * coding.max_overhead), most_repairs(coding.code, k))


def repairs_for(
    coding: CodingPolicy, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
) -> int:
    """r for a unit of *k* sources under *coding*: 0 .. `repair_bound`.

    HTPC's: *sent_bytes*, payload that the flow had sent before the unit; *window*, the flow's congestion window in
    packets (None: k).
    """
    cap = repair_bound(coding, k)
    rule = coding.redundancy
    if rule == "one-per-unit":
        return min(cap, 1)
    if rule == "paper":
        return min(cap, paper_rule(k, blocking_probability))
    if rule == "htpc":
        assert coding.weight is not None  # checked when the policy is read
        return min(cap, htpc_rule(k, blocking_probability, coding.weight, sent_bytes, window))
    step = round(min(max(blocking_probability, 0.0), MAX_BLOCKING) * BLOCKING_STEPS)
    return _target_rule(coding.code, k, step, coding.target_decode_probability, cap)


def paper_rule(k: int, blocking_probability: float) -> int:
    """r = ceil(k / (1 - pB) - k) (CAPS); the ceiling forgives 1e-9 of rounding, so k = 9, pB = 0.1 gives 1."""
    p = min(max(blocking_probability, 0.0), MAX_BLOCKING)
    return math.ceil(k * p / (1.0 - p) - 1e-9)


def flow_weight(weight: Weight, sent_bytes: int) -> float:
    """w(D) of a flow that has sent D = *sent_bytes* (HTPC, Eq. 2): 1 up to T_s, 0 from T_w on, linear between."""
    if sent_bytes <= weight.full_bytes:
        return 1.0
    if sent_bytes >= weight.none_bytes:
        return 0.0
    return (weight.none_bytes - sent_bytes) / (weight.none_bytes - weight.full_bytes)


def htpc_rule(k: int, loss_rate: float, weight: Weight, sent_bytes: int, window: int | None = None) -> int:
    """r of k sources, out of r_c = x / (1 - P_L) - c for a congestion window of c packets (HTPC, Eq. 4-5; None: k).

    x = w c + (1 - w) T_fr packets of a window arrive on average: all c of a short flow's; of a long flow's, those that
    let TCP retransmit fast, so that only windows of about T_fr packets or less get repairs. A unit that is a part of a
    window (closed early, or cut to max_k) has that part of its repairs: r = r_c k / c, rounded up, 0 if r_c is
    negative. The ceiling forgives 1e-9 of rounding.
    """
    c = max(k, window or k)
    w = flow_weight(weight, sent_bytes)
    p = min(max(loss_rate, 0.0), MAX_BLOCKING)
    x = w * c + (1.0 - w) * weight.fast_retransmit
    return max(0, math.ceil((x / (1.0 - p) - c) * k / c - 1e-9))


def target_rule(code: CodeName, k: int, blocking_probability: float, target: float, max_r: int) -> int:
    """Smallest r <= max_r whose `decode_probability` is at least *target*; max_r if there is none."""
    if code == "ldpc":
        # its measured figures need not be monotonic in r, but no code beats one that almost never fails
        least = target_rule("rlc", k, blocking_probability, target, max_r)
        least = max(0, least - 1)
        choices = (r for r in range(least, max_r) if _reaches(code, k, r, blocking_probability, target))
        return next(choices, max_r)
    return bisect_left(range(max_r), True, key=lambda r: _reaches(code, k, r, blocking_probability, target))


def _reaches(code: CodeName, k: int, r: int, blocking_probability: float, target: float) -> bool:
    return decode_probability(code, k, r, blocking_probability) >= target


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
        return sum(binomial(k + r, x, p) * (1.0 - ldpc_failure(k, r, x)) for x in range(r + 1))
    arrives = _enough(k, r, p)
    return arrives if code == "mds" else arrives - _rank_failure(k, r, p)


def binomial(n: int, x: int, p: float) -> float:
    """P(X = x) for X ~ Binomial(n, p)."""
    return float(math.comb(n, x) * p**x * (1.0 - p) ** (n - x))


RANK_FAILURE: Final = tuple(
    1.0 - math.prod(1.0 - 256.0**-j for j in range(surplus + 1, surplus + 6)) for surplus in range(3)
)
"""P(a random matrix over GF(256) lacks full column rank) by its surplus of rows over columns (0, 1, 2), for two
columns or more: 1/255 at surplus 0. Ours has no zero coefficients, so one column always has rank 1, and two columns
fail with 1/255 exactly; for more columns the difference is below 1e-4."""


def _enough(k: int, r: int, p: float) -> float:
    """P(at most r of k + r blocked), as the negative binomial sum: what an MDS code decodes."""
    term = (1.0 - p) ** k
    total = term
    for x in range(1, r + 1):
        term *= p * (k - 1 + x) / x
        total += term
    return total


def _rank_failure(k: int, r: int, p: float) -> float:
    """P(at most r of k + r blocked, but the coefficients of RLC lack rank).

    With x of all packets blocked, repairs received exceed sources missing by r - x, however x is split.
    """
    total = 0.0
    n = k + r
    for surplus, failure in enumerate(RANK_FAILURE[: r + 1]):
        x = r - surplus
        at_most_one_source = math.comb(r, x) + (k * math.comb(r, x - 1) if x else 0)
        chance = (math.comb(n, x) - at_most_one_source) * p**x * (1.0 - p) ** (n - x)
        total += chance * failure
    return total


def _xor(k: int, r: int, p: float) -> float:
    """Every parity group must have lost no source, or one and not its parity."""
    whole = 1.0
    for j in range(min(r, k)):
        size = (k - j - 1) // r + 1
        whole *= (1.0 - p) ** size + size * p * (1.0 - p) ** size
    return whole
