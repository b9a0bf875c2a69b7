"""Redundancy and unit size against brute force: enumeration and simulation instead of formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.codes import code_named
from host_agent.coding.redundancy import decode_probability, paper_rule, repairs_for
from host_agent.coding.unit_size import completion_time_s
from protocol.policy import CodingPolicy

PROBABILITIES = st.floats(0.0, 0.6)


def arrives_at_most(n: int, r: int, p: float) -> float:
    """Return P(at most r of n blocked), by walking through all n packets one after another."""
    chances = [1.0] + [0.0] * n
    for _ in range(n):
        chances = [chances[x] * (1 - p) + (chances[x - 1] * p if x else 0.0) for x in range(n + 1)]
    return sum(chances[: r + 1])


@given(k=st.integers(1, 128), p=st.floats(0.0, 0.9))
def test_paper_rule_is_the_least_r_with_k_arrivals_on_average(k: int, p: float) -> None:
    r = paper_rule(k, p)
    assert (k + r) * (1 - p) >= k - 1e-6
    assert r == 0 or (k + r - 1) * (1 - p) < k + 1e-6


@pytest.mark.parametrize(
    ("k", "p", "r"), [(10, 0.2, 3), (8, 0.2, 2), (9, 0.1, 1), (10, 0.5, 10), (32, 0.2, 8), (5, 0.0, 0)]
)
def test_paper_rule_by_hand(k: int, p: float, r: int) -> None:
    assert paper_rule(k, p) == r


@given(k=st.integers(1, 64), r=st.integers(1, 20), p=PROBABILITIES)
def test_rlc_decodes_when_at_most_r_are_blocked_but_for_its_rank(k: int, r: int, p: float) -> None:
    ideal = arrives_at_most(k + r, r, p)
    real = decode_probability("rlc", k, r, p)
    # the rank fails at most where every packet that arrived is needed: 1/255, and 1/65280 with one to spare
    exactly = arrives_at_most(k + r, r, p) - arrives_at_most(k + r, r - 1, p)
    assert ideal - exactly / 255 - ideal / 60000 - 1e-12 <= real <= ideal + 1e-12
    if k == 1:
        assert real == pytest.approx(1 - p ** (r + 1))


@pytest.mark.parametrize("code", ["rlc", "xor", "ldpc", "mds"])
@pytest.mark.parametrize(("k", "r", "p"), [(6, 3, 0.3), (10, 5, 0.2), (16, 4, 0.1)])
def test_decode_probability_is_what_the_real_decoder_reaches(code: str, k: int, r: int, p: float) -> None:
    """1500 units through the real code with independent blocking."""
    rng = np.random.default_rng(7)
    the_code = code_named(code)  # type: ignore[arg-type]
    packets = [bytes([index + 1]) for index in range(k)]
    decoded = 0
    for seed in range(1500):
        blocked = rng.random(k + r) < p
        lost = np.flatnonzero(blocked[:k]).tolist()
        made = the_code.encode(packets, r, seed)
        repairs = {j: made[j] for j in range(r) if not blocked[k + j]}
        known = [None if blocked[index] else packet for index, packet in enumerate(packets)]
        if not lost:
            decoded += 1
        elif repairs and the_code.worth_trying(len(lost), len(repairs)):
            decoded += len(the_code.decode(known, repairs, r, seed)) == len(lost)
    expected = decode_probability(code, k, r, p)  # type: ignore[arg-type]
    assert decoded / 1500 == pytest.approx(
        expected, abs=4 * math.sqrt(expected * (1 - expected) / 1500) + 0.01
    )


@given(k=st.integers(1, 6), r=st.integers(1, 5), p=PROBABILITIES)
def test_xor_by_enumeration(k: int, r: int, p: float) -> None:
    r = min(r, k)
    total = 0.0
    for blocked in itertools.product((False, True), repeat=k + r):
        chance = math.prod(p if b else 1 - p for b in blocked)
        total += chance * all(
            sum(blocked[j:k:r]) == 0 or (sum(blocked[j:k:r]) == 1 and not blocked[k + j]) for j in range(r)
        )
    assert decode_probability("xor", k, r, p) == pytest.approx(total)


@settings(max_examples=60)
@given(
    code=st.sampled_from(["rlc", "xor", "ldpc"]),
    k=st.integers(5, 40),
    step=st.integers(0, 150),
    target=st.floats(0.5, 0.995),
)
def test_the_target_is_reached_by_the_fewest_repairs(code: str, k: int, step: int, target: float) -> None:
    """Blocking probabilities of the grid to which they are rounded, 1/256."""
    rule, p = "target-decode-probability", step / 256
    policy = CodingPolicy(
        max_overhead=8.0, code=code, redundancy=rule, max_r=40, target_decode_probability=target
    )  # type: ignore[arg-type]
    cap = min(k, 40) if code == "xor" else 40
    reaches = [decode_probability(code, k, n, p) >= target for n in range(cap + 1)]  # type: ignore[arg-type]
    assert repairs_for(policy, p, k) == next((n for n in range(cap) if reaches[n]), cap)


@pytest.mark.parametrize("rule", ["paper", "target-decode-probability"])
@pytest.mark.parametrize("code", ["rlc", "xor", "ldpc"])
def test_repairs_grow_with_blocking_from_none_to_the_cap(rule: str, code: str) -> None:
    policy = CodingPolicy(max_overhead=8.0, code=code, redundancy=rule, max_r=12)  # type: ignore[arg-type]
    counts = [repairs_for(policy, step / 50, 20) for step in range(51)]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] == 12
    assert repairs_for(policy, -1.0, 20) == 0
    assert repairs_for(policy, 2.0, 20) == 12


def test_the_papers_rule_is_thin_and_the_target_is_not() -> None:
    assert decode_probability("rlc", 10, paper_rule(10, 0.2), 0.2) == pytest.approx(0.746, abs=0.001)
    assert decode_probability("rlc", 10, repairs_for(CodingPolicy(max_overhead=8.0), 0.2, 10), 0.2) >= 0.95


# unit size


def test_completion_time_by_hand() -> None:
    """X = 20, k = 10, pB = 0.2, RLC, paper's rule: r = 3, 26 packets, log2(3.6) rounds."""
    policy = CodingPolicy(max_overhead=8.0, redundancy="paper")
    decodes = decode_probability("rlc", 10, 3, 0.2)
    rounds = math.log2(3.6)
    per_round = 0.001 + 0.099 * (1 - decodes ** (2 / rounds)) + (1 - 0.8**10) * 13 * 0.0001
    expected = rounds * per_round + 26 * 0.0001
    assert completion_time_s(
        policy, 10, 0.2, rtt_s=0.001, blocked_rtt_s=0.1, packet_time_s=0.0001, flow_packets=20
    ) == pytest.approx(expected)
