"""TR's analysis against enumeration, queueing theory and simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import tr, trials

FABRIC = tr.Asymmetry()


def halved(bad: tuple[bool, ...], threshold: int) -> bool:
    """Return whether a receiver that gets all good packets before any bad one sends *threshold* duplicate ACKs."""
    arrivals = sorted(range(len(bad)), key=lambda position: (bad[position], position))
    got: set[int] = set()
    lacks = duplicates = 0
    for position in arrivals:
        got.add(position)
        if position == lacks:
            while lacks in got:
                lacks += 1
            duplicates = 0
        else:
            duplicates += 1
            if duplicates == threshold:
                return True
    return False


@pytest.mark.parametrize("threshold", [1, 3, 5])
@pytest.mark.parametrize("bad", [1, 7, 13])
@pytest.mark.parametrize("window", [1, 4, 9])
def test_halvings_equal_enumeration_where_all_can_overtake(window: int, bad: int, threshold: int) -> None:
    fabric = replace(FABRIC, bad_paths=bad, fast_retransmit=threshold)
    share = bad / fabric.paths
    expected = sum(
        share ** sum(paths) * (1 - share) ** (window - sum(paths))
        for paths in itertools.product((False, True), repeat=window)
        if halved(paths, threshold)
    )
    assert tr.halving_probability(fabric, window) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("delay", [8.7, 8.9, 9.5, 10.5])
@pytest.mark.parametrize("window", [8, 16, 32])
@pytest.mark.parametrize("bad", [2, 4])
def test_halvings_are_near_simulation_where_few_can_overtake(window: int, delay: float, bad: int) -> None:
    fabric = replace(FABRIC, bad_delay=delay, bad_paths=bad)
    seen = trials.halvings(fabric, window, 1500, np.random.default_rng(window))
    assert abs(tr.halving_probability(fabric, window) - seen) < 0.03 + 4 * 0.5 / math.sqrt(1500)


def test_nothing_is_halved_without_bad_paths_or_too_little_delay() -> None:
    for fabric in (replace(FABRIC, bad_paths=0), replace(FABRIC, bad_delay=8.5)):  # at most 2 can overtake
        assert tr.halving_probability(fabric, 64) == pytest.approx(0, abs=1e-12)
        assert trials.halvings(fabric, 64, 200, np.random.default_rng(0)) == 0


@given(st.floats(0.0, 0.98))
def test_one_server_is_an_md1_queue(load: float) -> None:
    assert tr.mdc_wait(1, load) == pytest.approx(tr.md1_wait(load))


@given(st.integers(1, 32), st.floats(0.0, 1.0))
def test_an_idle_fabric_waits_for_nothing(servers: int, load: float) -> None:
    assert 0 <= tr.mdc_wait(servers, load * 1e-12) < 1e-9


@given(st.integers(1, 32), st.floats(0.01, 0.97))
def test_more_servers_at_equal_load_wait_less(servers: int, load: float) -> None:
    assert 0 <= tr.mdc_wait(servers + 1, load) <= tr.mdc_wait(servers, load)


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (4, 0.8), (12, 0.9)])
def test_waits_equal_simulation(servers: int, load: float) -> None:
    fabric = replace(FABRIC, paths=servers, bad_paths=0, load=load)
    delay, _ = trials.least_time_delays(fabric, 120_000, np.random.default_rng(servers))
    assert delay - fabric.good_delay == pytest.approx(tr.mdc_wait(servers, load), rel=0.08)


@pytest.mark.parametrize(("bad", "load"), [(0, 0.5), (4, 0.4), (8, 0.4), (12, 0.2), (10, 0.5), (8, 0.7)])
def test_a_round_of_tr_is_near_simulation(bad: int, load: float) -> None:
    fabric = replace(FABRIC, bad_paths=bad, load=load)
    seen, over_bad = trials.least_time_delays(fabric, 40_000, np.random.default_rng(bad))
    assert tr.tr_round(fabric) == pytest.approx(seen, rel=0.05)
    good = fabric.paths - bad
    if load * fabric.paths < 0.7 * good:
        assert over_bad == 0
    elif load * fabric.paths > good:
        assert over_bad == pytest.approx(1 - good / (load * fabric.paths), abs=0.03)


@pytest.mark.parametrize(
    ("packets", "rounds"), [(1, 1), (10, 1), (11, 2), (30, 2), (70, 3), (134, 4), (198, 5)]
)
def test_a_flow_without_halving_takes_the_rounds_of_slow_start(packets: int, rounds: int) -> None:
    size = FABRIC.largest_window + 1  # 10, 20, 40, 64, 64, ...
    assert tr.flow_time(packets, 64, np.ones(size), np.zeros(size))[0] == rounds
    assert tr.tr_window(FABRIC, packets) == pytest.approx(packets / rounds)


def simulated_rounds(packets: int, fabric: tr.Asymmetry, rng: np.random.Generator) -> int:
    """Count the rounds of one flow of reno, its packets over paths at random."""
    window, slow_start, rounds = tr.INITIAL_WINDOW, True, 0
    while packets > 0:
        sent = min(window, packets)
        packets -= sent
        rounds += 1
        bad = tuple(bool(b) for b in rng.random(sent) < fabric.bad_share)
        if halved(bad, fabric.fast_retransmit):
            window, slow_start = max(2, window // 2), False
        else:
            window = min(window * 2 if slow_start else window + 1, fabric.largest_window)
    return rounds


@pytest.mark.parametrize("bad", [1, 4, 12])
def test_windows_under_rps_equal_simulation(bad: int) -> None:
    fabric = replace(FABRIC, bad_paths=bad)
    rng = np.random.default_rng(bad)
    rounds = [simulated_rounds(150, fabric, rng) for _ in range(800)]
    error = np.std(rounds, ddof=1) / math.sqrt(len(rounds))
    assert abs(np.mean(rounds) - 150 / tr.rps_window(fabric, 150)) < 4 * error


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 15), st.floats(8.0, 40.0), st.floats(0.0, 0.6), st.integers(1, 120))
def test_time_is_rounds_and_sending(bad: int, delay: float, load: float, packets: int) -> None:
    fabric = replace(FABRIC, bad_paths=bad, bad_delay=delay, load=load)
    rps = tr.rps_time(fabric, packets)
    rounds = packets / tr.rps_window(fabric, packets)
    slowest = tr.rps_round(fabric, fabric.largest_window)
    assert rounds * fabric.good_delay - 1e-6 <= rps <= rounds * slowest + 1e-6
    assert tr.tr_window(fabric, packets) >= tr.rps_window(fabric, packets) - 1e-9
    assert tr.tr_time(fabric, packets) >= packets / tr.tr_window(fabric, packets) * fabric.good_delay - 1e-6


def test_a_flow_is_never_faster_than_its_host() -> None:
    fabric = replace(FABRIC, bad_paths=0, good_delay=1.0)
    assert tr.tr_time(fabric, 1000) >= 1000 * fabric.packet_gap


@pytest.mark.parametrize(
    "wrong",
    [
        {"bad_paths": 16},
        {"bad_delay": 7.0},
        {"load": 1.0},
        {"fast_retransmit": 0},
        {"largest_window": 9},
        {"packet_gap": 0.0},
    ],
)
def test_impossible_fabrics_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no such fabric"):
        replace(FABRIC, **wrong)  # type: ignore[arg-type]
