"""HTPC's analysis against enumeration of every outcome, and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.redundancy import htpc_rule, paper_rule
from models import htpc, trials
from protocol.policy import Weight

shares = st.floats(0.0, 0.9)


def enumerated_timeouts(k: int, r: int, p: float, threshold: int, acknowledged: bool) -> float:
    """Return the probability of a timeout, over every outcome of every packet, as a sender would see it."""
    total = 0.0
    for outcome in itertools.product((True, False), repeat=k + r):
        came = sum(outcome)
        if all(outcome[:k]) or came >= k:
            continue
        first = outcome.index(False)
        answers = sum(outcome[first + 1 :] if acknowledged else outcome[first + 1 : k])
        if answers < threshold:
            total += (1 - p) ** came * p ** (k + r - came)
    return total


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(0, 4), st.floats(0.0, 0.95), st.integers(1, 5), st.booleans())
def test_timeouts_equal_enumeration(k: int, r: int, p: float, threshold: int, acknowledged: bool) -> None:
    expected = enumerated_timeouts(k, r, p, threshold, acknowledged)
    assert htpc.timeout_probability(
        k, r, p, fast_retransmit=threshold, repairs_acknowledged=acknowledged
    ) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("acknowledged", [True, False])
@pytest.mark.parametrize(("k", "r", "p"), [(20, 0, 0.05), (20, 5, 0.6), (12, 3, 0.3)])
def test_timeouts_equal_simulation(k: int, r: int, p: float, acknowledged: bool) -> None:
    count = 40_000
    seen = trials.timeouts(
        k,
        r,
        p,
        count=count,
        rng=np.random.default_rng(k),
        fast_retransmit=3,
        repairs_acknowledged=acknowledged,
    )
    expected = htpc.timeout_probability(k, r, p, fast_retransmit=3, repairs_acknowledged=acknowledged)
    assert abs(seen - expected) < 4 * math.sqrt(expected * (1 - expected) / count) + 1e-9


@given(st.integers(1, 40), st.integers(0, 20), shares, st.booleans())
def test_duplicate_acks_from_repairs_only_help(k: int, r: int, p: float, acknowledged: bool) -> None:
    worst = htpc.timeout_probability(k, r, p, fast_retransmit=3, repairs_acknowledged=False)
    assert htpc.timeout_probability(k, r, p, fast_retransmit=3) <= worst + 1e-12
    assert (
        htpc.timeout_probability(k, r + 1, p, fast_retransmit=3, repairs_acknowledged=acknowledged)
        <= htpc.timeout_probability(k, r, p, fast_retransmit=3, repairs_acknowledged=acknowledged) + 1e-12
    )


@given(st.integers(1, 40), shares)
def test_a_window_without_repairs_waits_for_any_bad_path(k: int, p: float) -> None:
    assert htpc.tail_probability(k, 0, p) == pytest.approx(1 - (1 - p) ** k)


@given(st.integers(1, 40), shares)
def test_a_window_with_an_xor_waits_unless_it_comes_or_lacks_one_beside_the_xor(k: int, p: float) -> None:
    comes = (1 - p) ** k + k * p * (1 - p) ** (k - 1) * (1 - p)
    assert htpc.tail_probability(k, 1, p, "xor") == pytest.approx(1 - comes, abs=1e-12)


@given(
    st.integers(1, 3_000_000), st.floats(0.0, 0.6), st.integers(0, 200_000), st.integers(200_001, 2_000_000)
)
def test_a_flow_has_the_repairs_of_its_windows(size: int, share: float, full: int, none: int) -> None:
    packets = math.ceil(size / 1426)
    added = 0
    for sent in range(0, packets, 20):
        k = min(20, packets - sent)
        w = min(1.0, max(0.0, (none - sent * 1426) / (none - full)))
        added += max(0, math.ceil((w * k + (1 - w) * 3) / (1 - share) - k - 1e-9))
    overhead = htpc.flow_overhead(size, 20, share, weight=Weight(full, none))
    assert overhead * packets == pytest.approx(added, abs=1.01)  # the two ceilings may part by rounding


@given(st.integers(1, 128), shares)
def test_a_faded_flow_gets_repairs_only_in_tiny_windows(k: int, share: float) -> None:
    weight = Weight()
    assert (htpc_rule(k, share, weight, weight.none_bytes) > 0) == (3 / (1 - share) - k > 1e-9)


@given(st.integers(1, 128), shares)
def test_a_short_flow_gets_what_caps_gives(k: int, share: float) -> None:
    assert htpc_rule(k, share, Weight(), 100_000) == paper_rule(k, share)
