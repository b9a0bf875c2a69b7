"""HTPC's analysis against enumeration of every outcome, and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.redundancy import paper_rule
from models import htpc, trials

windows = st.integers(1, 128)
shares = st.floats(0.0, 0.9)
weights = st.floats(0.0, 1.0)


@given(st.floats(0, 1e8), st.floats(0, 1e8))
def test_the_weight_falls_from_one_to_zero(first: float, second: float) -> None:
    few, many = sorted((first, second))
    assert 0 <= htpc.weight(many, 1e6) <= htpc.weight(few, 1e6) <= 1
    assert htpc.weight(min(few, 1e5), 1e6) == 1
    assert htpc.weight(1e6 + many, 1e6) == 0
    assert htpc.weight(550_000, 1e6) == pytest.approx(0.5)


def test_a_weight_that_does_not_fall_is_refused() -> None:
    with pytest.raises(ValueError, match="must be above T_s"):
        htpc.weight(0, 100_000)


@given(windows, weights, shares)
def test_repairs_are_the_fewest_that_let_x_packets_arrive_on_average(k: int, w: float, share: float) -> None:
    r = htpc.repairs(k, w, share)
    x = htpc.expected_packets(k, w)
    assert (k + r) * (1 - share) >= x - 1e-6
    assert r == 0 or (k + r - 1) * (1 - share) < x + 1e-6


@given(windows, shares)
def test_at_full_weight_the_rule_is_that_of_caps(k: int, share: float) -> None:
    assert htpc.repairs(k, 1.0, share) == paper_rule(k, share)


@given(windows, shares)
def test_at_no_weight_only_tiny_windows_are_repaired(k: int, share: float) -> None:
    assert (htpc.repairs(k, 0.0, share) > 0) == (3 / (1 - share) - k > 1e-9)


def test_all_paths_bad_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1"):
        htpc.repairs(10, 1.0, 1.0)


def enumerated_timeouts(k: int, r: int, p: float, threshold: int, acknowledged: bool) -> float:
    """Over every outcome of every packet, as a sender would see it."""
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
    assert htpc.timeout_probability(k, r, p, threshold, acknowledged) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("acknowledged", [True, False])
@pytest.mark.parametrize(("k", "r", "p"), [(20, 0, 0.05), (20, 5, 0.6), (12, 3, 0.3)])
def test_timeouts_equal_simulation(k: int, r: int, p: float, acknowledged: bool) -> None:
    count = 40_000
    seen = trials.timeouts(k, r, p, count, np.random.default_rng(k), 3, acknowledged)
    expected = htpc.timeout_probability(k, r, p, 3, acknowledged)
    assert abs(seen - expected) < 4 * math.sqrt(expected * (1 - expected) / count) + 1e-9


@given(st.integers(1, 40), st.integers(0, 20), shares, st.booleans())
def test_duplicate_acks_from_repairs_only_help(k: int, r: int, p: float, acknowledged: bool) -> None:
    worst = htpc.timeout_probability(k, r, p, 3, repairs_acknowledged=False)
    assert htpc.timeout_probability(k, r, p, 3) <= worst + 1e-12
    assert (
        htpc.timeout_probability(k, r + 1, p, 3, acknowledged)
        <= htpc.timeout_probability(k, r, p, 3, acknowledged) + 1e-12
    )


@given(st.integers(1, 40), shares, st.integers(1, 20))
def test_a_window_without_repairs_waits_for_any_bad_path(k: int, p: float, count: int) -> None:
    tail = htpc.tail_probability(k, 0, p)
    assert tail == pytest.approx(1 - (1 - p) ** k)
    assert htpc.flow_tail_probability(tail, count) == pytest.approx(1 - (1 - p) ** (k * count), abs=1e-9)


@given(st.integers(1, 3_000_000), st.floats(0.0, 0.6))
def test_a_flow_has_the_repairs_of_its_windows(size: int, share: float) -> None:
    packets = math.ceil(size / 1426)
    added = sum(
        htpc.repairs(min(20, packets - sent), htpc.weight(sent * 1426, 1e6), share)
        for sent in range(0, packets, 20)
    )
    assert htpc.flow_overhead(size, 20, share, 1e6) == pytest.approx(added / packets)
