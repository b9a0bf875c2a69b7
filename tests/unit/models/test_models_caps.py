"""CAPS's analysis against enumeration, closed forms and simulation; its printed unit sizes, and its document."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.redundancy import paper_rule
from models import caps, trials, unit_size
from protocol.policy import CodingPolicy

DOCUMENT = Path(__file__).parents[3] / "docs" / "models.md"
paths = st.integers(1, 40)
flows = st.integers(0, 40)
TARGET = CodingPolicy(max_overhead=8.0, max_r=64)
PAPER = CodingPolicy(max_overhead=8.0, max_r=64, redundancy="paper")


@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 5), (3, 4), (4, 4), (5, 3)])
def test_blocked_paths_equal_enumeration(n: int, m: int) -> None:
    counted = Counter(len(set(choice)) for choice in itertools.product(range(n), repeat=m))
    assert caps.blocked_paths(n, m) == pytest.approx([counted[b] / n**m for b in range(n + 1)])


@given(paths, flows)
def test_blocked_paths_are_a_distribution_with_the_mean_of_pb(n: int, m: int) -> None:
    chances = caps.blocked_paths(n, m)
    assert chances.min() >= 0
    assert chances.sum() == pytest.approx(1)
    assert chances @ np.arange(n + 1) == pytest.approx(n * caps.blocking_probability(n, m))


@given(st.integers(1, 5000), st.integers(1, 40))
def test_slow_start_doubles_and_sends_all(packets: int, initial: int) -> None:
    sent = caps.windows(packets, initial)
    assert sum(sent) == packets
    assert list(sent[:-1]) == [initial * 2**i for i in range(len(sent) - 1)]
    assert len(sent) == math.ceil(math.log2(packets / initial + 1) - 1e-12)


@given(st.integers(1, 500), st.integers(1, 64))
def test_units_hold_all_packets(packets: int, k: int) -> None:
    units = caps.units_of(packets, k)
    assert sum(units) == packets
    assert set(units[:-1]) <= {k}
    assert 1 <= units[-1] <= k


def test_one_long_flow_has_a_closed_form() -> None:
    fabric = caps.Fabric(paths=7, base_rtt=3, buffer_packets=50, access_ratio=4)
    late = 50 * sum(1 - (6 / 7) ** w for w in (10, 20, 12))
    assert caps.sprayed_time(fabric, 1, 42) == pytest.approx(3 * 3 + late + 42 / 4)
    assert caps.hashed_time(fabric, 1, 42) == pytest.approx(3 * (3 + 50 / 7) + 42 / 4)


@given(paths, st.integers(1, 200))
def test_without_long_flows_all_schemes_are_one(n: int, packets: int) -> None:
    fabric = caps.Fabric(paths=n)
    alone = caps.hashed_time(fabric, 0, packets)
    coding = CodingPolicy(max_overhead=8.0)
    for time in (caps.sprayed_time, caps.all_sprayed_time):
        assert time(fabric, 0, packets) == pytest.approx(alone)
    assert caps.coded_time(fabric, 0, packets, coding) == pytest.approx(alone)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 24),
    st.integers(1, 12),
    st.integers(1, 120),
    st.sampled_from(["paper", "target-decode-probability"]),
)
def test_repairs_that_cost_nothing_never_harm(n: int, m: int, packets: int, rule: str) -> None:
    fabric = caps.Fabric(paths=n, access_ratio=1e12)
    coding = CodingPolicy(max_overhead=8.0, redundancy=rule, max_r=64, code="rlc")  # type: ignore[arg-type]
    assert caps.coded_time(fabric, m, packets, coding) <= caps.sprayed_time(fabric, m, packets) + 1e-6


@pytest.mark.parametrize("m", [1, 3, 8])
@pytest.mark.parametrize("coding", [None, TARGET, PAPER])
def test_sprayed_flows_equal_simulation(m: int, coding: CodingPolicy | None) -> None:
    fabric = caps.Fabric(paths=12, buffer_packets=100)
    rng = np.random.default_rng(m)
    batches = [trials.short_flow_times(fabric, m, 60, flows=250, rng=rng, coding=coding) for _ in range(12)]
    error = np.std(batches, ddof=1) / math.sqrt(len(batches))
    expected = caps.coded_time(fabric, m, 60, coding) if coding else caps.sprayed_time(fabric, m, 60)
    assert (
        abs(np.mean(batches) - expected) < 4 * error + 0.004 * fabric.buffer_packets
    )  # 1/255: rank failures


@pytest.mark.parametrize("m", [1, 4, 10])
def test_hashed_flows_equal_simulation(m: int) -> None:
    fabric = caps.Fabric(paths=10, buffer_packets=100)
    rng = np.random.default_rng(m)
    batches = [trials.hashed_flow_times(fabric, m, 60, flows=500, rng=rng) for _ in range(12)]
    error = np.std(batches, ddof=1) / math.sqrt(len(batches))
    assert abs(np.mean(batches) - caps.hashed_time(fabric, m, 60)) < 4 * error


def test_sprayed_long_flows_fill_the_fabric_from_a_load_of_one() -> None:
    fabric = caps.Fabric(paths=16, access_ratio=4, buffer_packets=200)
    assert caps.spread_wait(fabric, 2) == pytest.approx(0.5 / (2 * 0.5))
    assert caps.spread_wait(fabric, 4) == 200
    waits = [caps.spread_wait(fabric, m) for m in range(9)]
    assert waits == sorted(waits)


def test_where_all_is_sprayed_every_round_waits() -> None:
    """42 packets take three rounds, and 42 / 4 packet times to leave."""
    fabric = caps.Fabric(paths=16, base_rtt=8, access_ratio=4, buffer_packets=200)
    assert caps.all_sprayed_time(fabric, 2, 42) == pytest.approx(3 * (8 + 0.5) + 10.5)
    assert caps.all_sprayed_time(fabric, 4, 42) == pytest.approx(3 * (8 + 200) + 10.5)


def spare_repairs(k: int, p: float) -> float:
    """Return what rounding up adds to k / (1 - pB) - k, in packets: 0 .. 1."""
    wanted = k * p / (1.0 - p)
    return ceil(wanted - 1e-9) - wanted


def test_three_printed_unit_sizes_have_the_most_spare_repairs_and_the_fourth_has_not() -> None:
    for p, k in {0.2: 29, 0.25: 31, 0.3: 33, 0.35: 41}.items():
        assert spare_repairs(k, p) == pytest.approx(max(spare_repairs(i, p) for i in range(1, 65)))
    assert spare_repairs(40, 0.35) == pytest.approx(22 - 40 * 7 / 13)


def closest(p: Fraction) -> int:
    """Return the optimum of the closest reading, computed anew in exact arithmetic but for the logarithm."""

    def cost(k: int) -> float:
        r = math.ceil(k / (1 - p) - k)
        decodes = sum(math.comb(k + r, x) * p**x * (1 - p) ** (k + r - x) for x in range(r + 1))
        return float(decodes + 10 * (1 - decodes)) * math.log2((k + r) / 2 + 1) / k + 0.01 * k

    return min(range(1, 65), key=cost)


def test_the_document_states_the_optima_that_follow() -> None:
    readings = {reading.name: reading for reading in unit_size.READINGS}
    assert [closest(Fraction(round(100 * p), 100)) for p in unit_size.PRINTED] == [29, 31, 33, 41]
    table = re.findall(
        r"^\| `([a-z ]+)` \|.*\| (\d+), (\d+), (\d+), (\d+) \|$", DOCUMENT.read_text(), re.MULTILINE
    )
    assert {name for name, *_ in table} == set(readings)
    for name, *reported in table:
        assert [readings[name].optimum(p) for p in unit_size.PRINTED] == list(map(int, reported)), name


def test_every_optimum_of_a_reading_is_a_local_minimum() -> None:
    for reading in unit_size.READINGS:
        for p in unit_size.PRINTED:
            best = reading.optimum(p)
            around = [reading.cost(k, p) for k in (best - 1, best, best + 1) if 1 <= k <= unit_size.LARGEST]
            assert min(around) == reading.cost(best, p)


def test_the_rule_that_is_analysed_is_the_agents() -> None:
    assert [paper_rule(k, p) for p, k in unit_size.PRINTED.items()] == [8, 11, 15, 22]


@pytest.mark.parametrize(
    "wrong", [{"paths": 0}, {"buffer_packets": -1}, {"base_rtt": 0}, {"access_ratio": 0}]
)
def test_impossible_fabrics_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no such fabric"):
        caps.Fabric(**wrong)
