"""Rules, window and outcomes of the coding policies against independent computation and simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.blocking import MAX_BLOCKING_PROBABILITY, PRIOR, LossRateEstimator, estimator
from host_agent.coding.outcomes import MOST, Margin, Outcomes, SentUnit
from host_agent.coding.redundancy import flow_weight, htpc_rule, repairs_for
from host_agent.coding.unit import UnitEncoder
from host_agent.coding.window import INITIAL_WINDOW, WindowEstimate
from protocol.policy import CodingPolicy, Policy, PolicyError, Weight

MODULUS = 1 << 32
weights = st.builds(
    lambda full, more, fast: Weight(full, full + more, fast),
    st.integers(0, 200_000),
    st.integers(1, 900_000),
    st.integers(0, 5),
)


def equation_5(k: int, p: Fraction, weight: Weight, sent: int, window: int) -> int:
    """HTPC's r in exact arithmetic, written down anew, for k packets of a window."""
    span = weight.none_bytes - weight.full_bytes
    w = max(Fraction(0), min(Fraction(1), Fraction(weight.none_bytes - sent, span)))
    x = w * window + (1 - w) * weight.fast_retransmit
    return max(0, math.ceil((x / (1 - p) - window) * Fraction(k, window)))


@given(
    k=st.integers(1, 64),
    more=st.integers(0, 64),
    percent=st.integers(0, 60),
    weight=weights,
    sent=st.integers(0, 2_000_000),
)
def test_htpc_rule_is_its_equations(k: int, more: int, percent: int, weight: Weight, sent: int) -> None:
    r = htpc_rule(k, percent / 100, weight, sent, k + more)
    assert r == equation_5(k, Fraction(percent, 100), weight, sent, k + more)


@pytest.mark.parametrize(
    ("k", "window", "p", "sent", "r"),
    [
        (10, 10, 0.2, 0, 3),  # short: 10 / 0.8 = 12.5
        (10, 10, 0.2, 100_000, 3),  # still, at T_s
        (10, 10, 0.2, 550_000, 0),  # half-way: x = 6.5, 8.125 arrive of 10 anyhow
        (3, 3, 0.2, 2_000_000, 1),  # long: a window of T_fr
        (2, 2, 0.0, 2_000_000, 1),  # below T_fr packets even without losses
        (4, 4, 0.2, 2_000_000, 0),
        (2, 20, 0.2, 2_000_000, 0),  # a part of a large window is no tiny window
        (5, 10, 0.5, 0, 5),  # half a window, half its repairs
        (32, 32, 0.5, 0, 32),
    ],
)
def test_htpc_rule_by_hand(k: int, window: int, p: float, sent: int, r: int) -> None:
    assert htpc_rule(k, p, Weight(), sent, window) == r


@given(weight=weights, sent=st.integers(0, 2_000_000), more=st.integers(0, 100_000))
def test_the_weight_falls_from_one_to_nought(weight: Weight, sent: int, more: int) -> None:
    w = flow_weight(weight, sent)
    assert 0.0 <= flow_weight(weight, sent + more) <= w <= 1.0
    assert (w == 1.0) == (sent <= weight.full_bytes)
    assert (w == 0.0) == (sent >= weight.none_bytes)


@given(k=st.integers(1, 128), p=st.floats(0, 0.6), sent=st.integers(0, 1 << 40))
def test_corrective_makes_one_repair_whatever_happens(k: int, p: float, sent: int) -> None:
    coding = CodingPolicy(max_overhead=8.0, code="xor", redundancy="one-per-unit", unit="window", max_k=128)
    assert repairs_for(coding, p, k, sent) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"redundancy": "htpc"}, "weight"),
        ({"weight": {}}, "weight"),
        ({"redundancy": "htpc", "weight": {"full_bytes": 5, "none_bytes": 5}}, "weight.none_bytes"),
        ({"redundancy": "htpc", "weight": {"fast_retransmit": 129}}, "weight.fast_retransmit"),
        ({"redundancy": "adaptive", "code": "xor"}, "redundancy"),
        ({"redundancy": "adaptive", "code": "ldpc"}, "redundancy"),
        ({"sampling_s": 0.1}, "sampling_s"),
        ({"sampling_s": 0.0, "estimator": "loss-rate"}, "sampling_s"),
        ({"unit": "windows"}, "unit"),
    ],
)
def test_codings_that_cannot_be_are_refused_by_field(change: dict[str, object], field: str) -> None:
    document = {"version": 1, "scheme": "x", "short": {"coding": change}}
    with pytest.raises(PolicyError, match=rf"policy\.short\.coding\.{field.replace('.', '[.]')}\b"):
        Policy.from_dict(document)


def test_both_classes_share_one_estimator() -> None:
    document = {
        "version": 1,
        "scheme": "x",
        "short": {"coding": {}},
        "long": {"coding": {"estimator": "loss-rate"}},
    }
    with pytest.raises(PolicyError, match="one estimator serves both"):
        Policy.from_dict(document)


# loss rate


@given(rounds=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12))
def test_loss_rate_is_the_share_of_the_last_sampling_time_that_had_enough(
    rounds: list[tuple[int, int]],
) -> None:
    rate = LossRateEstimator(0.001, sampling_s=1.0)
    expected, arrived, overdue = PRIOR, 0, 0
    for second, (more, less) in enumerate(rounds):
        rate.reported(more, less, second + 0.25)
        arrived, overdue = arrived + more, overdue + less
        if arrived + overdue >= LossRateEstimator.MIN_SAMPLES:
            expected, arrived, overdue = overdue / (arrived + overdue), 0, 0
        assert rate.blocking_probability(second + 1.25) == min(expected, MAX_BLOCKING_PROBABILITY)


def test_the_sampling_time_is_256_packet_times_unless_it_is_given() -> None:
    for given_s, real_s in ((None, 0.256), (0.05, 0.05)):
        rate = estimator("loss-rate", 0.001, given_s)
        rate.reported(5, 5, 1.0)
        assert rate.blocking_probability(1.0 + 0.99 * real_s) == PRIOR
        assert rate.blocking_probability(1.0 + 1.01 * real_s) == 0.5


# congestion window


class IdealTcp:
    """Sends what a window in packets allows; every packet is acknowledged one round trip later."""

    def __init__(self, start: int, size: int) -> None:
        self.estimate = WindowEstimate()
        self.size = size
        self.next = start
        self.flying: list[int] = []
        self.seen: list[int] = []

    def round(self, window: int) -> None:
        acks, self.flying = self.flying, []
        for ack in acks or [self.next]:
            self.estimate.acknowledged(ack % MODULUS)
            acks_left = sum(serial > ack for serial in acks)
            while acks_left + len(self.flying) < window:
                self.estimate.sent(self.next % MODULUS, self.size)
                self.seen.append(self.estimate.packets())
                self.next += self.size
                self.flying.append(self.next)


@given(
    start=st.integers(0, MODULUS - 1),
    size=st.integers(100, 1400),
    windows=st.lists(st.integers(1, 80), min_size=1, max_size=8),
)
def test_the_window_is_what_is_in_flight_over_two_round_trips(
    start: int, size: int, windows: list[int]
) -> None:
    tcp = IdealTcp(start, size)
    for window in windows:
        tcp.round(window)
    for _ in range(3):
        tcp.round(windows[-1])
    assert tcp.estimate.packets() == windows[-1]


def test_the_first_window_is_the_initial_one() -> None:
    tcp = IdealTcp(7, 1000)
    tcp.round(INITIAL_WINDOW)
    assert set(tcp.seen) == {INITIAL_WINDOW}
    tcp.round(20)
    tcp.round(40)
    assert tcp.estimate.packets() == 40


def test_acks_of_nothing_and_of_too_much_do_no_harm() -> None:
    window = WindowEstimate()
    window.acknowledged(5)
    window.sent(1000, 100)
    window.acknowledged(900)
    window.acknowledged(5000)  # a FIN's, at most
    window.sent(1100, 100)
    assert window.packets() == 1


# outcomes


@settings(max_examples=60)
@given(st.data())
def test_a_unit_succeeds_if_k_of_its_symbols_arrive_in_whatever_order(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    outcomes, margin = Outcomes(), Margin(0.9)
    number, events, expected = 0, [], [0, 0]
    offset = int(rng.integers(MODULUS))  # between the clocks
    for _ in range(data.draw(st.integers(1, 20))):
        unit, k, r = SentUnit(margin), int(rng.integers(1, 12)), int(rng.integers(0, 6))
        lost = rng.random(k + r) < 0.25
        lost[int(rng.integers(k + r))] = False  # what delays all of a unit alike does not count
        for index in range(k + r):
            outcomes.sent(number, unit)
            events.append((number, bool(lost[index])))
            number += 1
        outcomes.closed(unit, k)
        expected[int(lost.sum() <= r)] += 1
    for index in rng.permutation(len(events)):
        one, gone = events[index]
        if gone and rng.random() < 0.5:
            outcomes.lost(one, 1)
        else:
            outcomes.arrived(one, (offset + (20_000 if gone else int(rng.integers(8000)))) % MODULUS)
    assert [margin.failures, margin.successes] == expected
    assert len(outcomes) == 0


def test_a_unit_is_decided_when_it_is_closed_and_all_of_it_is_told() -> None:
    outcomes, margin = Outcomes(), Margin(0.9)
    unit = SentUnit(margin)
    for number in range(3):
        outcomes.sent(number, unit)
    outcomes.lost(0, 1)
    outcomes.arrived(1, 70)
    outcomes.arrived(2, 70)
    assert (margin.successes, margin.failures) == (0, 0)
    outcomes.sent(3, unit)
    outcomes.closed(unit, 3)
    assert (margin.successes, margin.failures) == (0, 0)
    outcomes.arrived(3, 70)
    assert (margin.successes, margin.failures) == (1, 0)
    outcomes.arrived(3, 70)
    assert (margin.successes, margin.failures) == (1, 0)


def test_what_delays_a_whole_unit_does_not_make_it_fail() -> None:
    """Its own burst at the access link, or clocks that drift."""
    outcomes, margin = Outcomes(0.008), Margin(0.9)
    for number in range(99):
        unit = SentUnit(margin)
        for symbol in range(4):
            outcomes.sent(4 * number + symbol, unit)
        outcomes.closed(unit, 3)
        for symbol in range(4):
            late = 9000 if symbol < number % 3 else 0
            outcomes.arrived(4 * number + symbol, (1000 * number + late) % MODULUS)
    # none or one of four late: decoded; two: not
    assert (margin.successes, margin.failures) == (66, 33)


def test_a_failure_with_all_repairs_that_may_be_asks_for_no_more() -> None:
    margin = Margin(0.9)
    for _ in range(10):
        margin.learn(False, most=True)
    assert (margin.failures, margin.logits) == (10, 0.0)


@given(p=st.floats(0, 1), outcomes=st.lists(st.booleans(), max_size=100), target=st.floats(0.5, 0.999))
def test_the_margin_is_bounded_monotonic_and_leaves_nought_alone(
    p: float, outcomes: list[bool], target: float
) -> None:
    margin = Margin(target)
    before = margin.corrected(p)
    assert before == pytest.approx(p)
    for success in outcomes:
        margin.learn(success)
        now = margin.corrected(p)
        assert 0.0 <= now <= 1.0
        assert now <= before + 1e-12 if success else now >= before - 1e-12
        assert abs(margin.logits) <= MOST
        before = now
    assert margin.corrected(0.0) == 0.0


def successes_and_overhead(adaptive: bool, k: int, draw, units: int = 6000) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Share of units that succeed, and repairs per source, over the second half of *units*.

    draw(n) gives which of n symbols of one unit are blocked; the estimator knows its mean, 0.2, exactly.
    """
    coding = CodingPolicy(
        max_overhead=8.0, redundancy="adaptive" if adaptive else "target-decode-probability", max_r=64
    )
    margin, good, repairs = Margin(0.95), 0, 0
    for number in range(units):
        r = repairs_for(coding, margin.corrected(0.2) if adaptive else 0.2, k)
        success = int(draw(k + r).sum()) <= r
        margin.learn(success)
        if number >= units // 2:
            good += success
            repairs += r
    return good / (units // 2), repairs / (units // 2) / k


def test_adaptive_redundancy_reaches_its_target_where_packets_are_blocked_together() -> None:
    """Each unit finds 1 of 4 to all of its 8 paths' worth of packets blocked: the binomial model is far off."""
    rng = np.random.default_rng(1)

    def clustered(n: int) -> np.ndarray:  # type: ignore[type-arg]
        share = rng.beta(1.0, 4.0)  # of mean 0.2
        return rng.random(n) < share

    fixed, _ = successes_and_overhead(False, 20, clustered)
    reached, _ = successes_and_overhead(True, 20, clustered)
    assert fixed < 0.9
    assert reached == pytest.approx(0.95, abs=0.01)


def test_adaptive_redundancy_pays_no_more_than_the_least_r_that_reaches_the_target() -> None:
    """Blocking in turn (every fifth packet) is more even than the binomial model believes: fewer repairs do."""
    rng = np.random.default_rng(2)

    def in_turn(n: int) -> np.ndarray:  # type: ignore[type-arg]
        return (np.arange(n) + int(rng.integers(5))) % 5 == 0

    fixed, dear = successes_and_overhead(False, 20, in_turn)
    reached, cheap = successes_and_overhead(True, 20, in_turn)
    assert fixed == 1.0
    assert reached == pytest.approx(0.95, abs=0.01)
    # 5 repairs: 25 packets, of which always 5 are blocked
    assert cheap <= 5 / 20
    assert dear > 1.5 * cheap


# units that are windows


@pytest.mark.parametrize("unit", ["optimal", "window"])
def test_a_push_closes_a_unit_at_once_but_a_window_only_if_nothing_follows_soon(unit: str) -> None:
    coding = CodingPolicy(max_overhead=8.0, code="xor", redundancy="one-per-unit", unit=unit, flush_s=0.01)  # type: ignore[arg-type]
    encoder = UnitEncoder(coding, np.random.default_rng(0))
    encoder.set_redundancy(0.1, 8)
    assert encoder.add(0, b"a", 1.0, push=False) == []
    assert encoder.deadline() == pytest.approx(1.01)
    repairs = encoder.add(1, b"b", 1.0, push=True)
    if unit == "optimal":
        assert [repair.head.k for repair in repairs] == [2]
        return
    assert repairs == []
    assert encoder.deadline() == pytest.approx(1.0025)
    assert encoder.add(2, b"c", 1.002, push=False) == []
    assert encoder.deadline() == pytest.approx(1.012)
    assert encoder.flush(1.0119) == []
    assert [repair.head.k for repair in encoder.flush(1.0121)] == [3]
