"""CAPS's and HTPC's printed equations against what the papers print of them, enumeration, and the agents' rules."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.coding.redundancy import decode_probability, htpc_rule, paper_rule
from models.printed import caps, htpc
from protocol.policy import Weight
from tests.unit.coding_reference import generator as agents_coefficients
from tests.unit.models import printed_systematic as systematic

chances = st.floats(0.01, 0.6)
sizes = st.integers(1, 40)
PRINTED_PB = (0.2, 0.25, 0.3, 0.35)


# CAPS


@given(st.integers(1, 5), st.integers(0, 3), chances)
def test_eq_1_and_2_are_counted(k: int, r: int, p: float) -> None:
    counted = [0.0] * (k + r + 1)
    for blocked in itertools.product((False, True), repeat=k + r):
        counted[sum(blocked)] += math.prod(p if one else 1 - p for one in blocked)
    assert [caps.blocked(k, r, p, j) for j in range(k + r + 1)] == pytest.approx(counted)
    assert caps.decodes(k, r, p) == pytest.approx(sum(counted[: r + 1]))


@given(sizes, st.integers(0, 40), chances)
def test_eq_2_is_what_agents_use_for_a_perfect_code(k: int, r: int, p: float) -> None:
    assert caps.decodes(k, r, p) == pytest.approx(decode_probability("mds", k, r, p))


def test_fig_6b_two_long_flows_over_40_paths_need_two_repairs() -> None:
    """k = 10: "almost 1 when r is 2"; more with r, less with each long flow more."""
    assert caps.decodes(10, 2, 2 / 40) > 0.98
    for m in (1, 2, 3, 4):
        rising = [caps.decodes(10, r, m / 40) for r in range(6)]
        assert rising == sorted(rising)
    falling = [caps.decodes(10, 2, m / 40) for m in range(1, 6)]
    assert falling == sorted(falling, reverse=True)


def test_the_examples_of_fig_7() -> None:
    assert sum(caps.blocked(3, 3, 0.5, j) for j in (4, 5, 6)) == pytest.approx(0.34, abs=0.005)
    assert caps.decodes(3, 3, 0.5) == pytest.approx(0.66, abs=0.005)
    assert math.comb(2, 1) ** 6 / math.comb(12, 6) == pytest.approx(0.07, abs=0.001)


def test_the_numbers_of_repairs_of_fig_24() -> None:
    """12 paths, k = 10: 1, 2, 4, 5 repairs beside 1 to 4 long flows."""
    assert [paper_rule(10, m / 12) for m in (1, 2, 3, 4)] == [1, 2, 4, 5]


def test_eq_3_is_the_mean_over_a_unit() -> None:
    for k in (1, 2, 10, 64):
        waits = [(k - i) * 1500 * 8 / 1e9 for i in range(1, k + 1)]
        assert caps.buffering_s(k) == pytest.approx(sum(waits) / k)


@given(st.integers(1, 64), st.integers(0, 40), chances, st.integers(1, 100))
def test_eq_6_is_eq_4_with_2_and_3_put_in(k: int, r: int, p: float, window: int) -> None:
    delays = caps.Delays(window=window)
    assert caps.coded_delay_whole_s(k, r, p, delays) == pytest.approx(caps.coded_delay_s(k, r, p, delays))


@given(chances)
def test_eq_5_is_a_window_that_no_packet_of_is_blocked(p: float) -> None:
    delays = caps.Delays(window=3)
    free = (1 - p) ** 3
    assert caps.uncoded_delay_s(p, delays) == pytest.approx(free * 0.1e-3 + (1 - free) * 3e-3)


def test_fig_8a_larger_units_decode_less_often() -> None:
    """As far as whole repairs let it: between sizes with equal rounding, P falls; it is above a half throughout."""
    for p, step in ((0.2, 4), (0.25, 3), (0.5, 1)):  # r is k p / (1 - p) exactly at multiples of step
        exact = [caps.decodes(k, paper_rule(k, p), p) for k in range(step, 65, step)]
        assert exact == sorted(exact, reverse=True)
        assert min(exact) > 0.5


def test_fig_9_repairs_shorten_the_delay_and_coding_beats_none() -> None:
    for k, p in zip((29, 31, 33, 40), PRINTED_PB, strict=True):
        falling = [caps.coded_delay_s(k, r, p) for r in range(30)]
        assert falling == sorted(falling, reverse=True)
        assert caps.coded_delay_s(k, paper_rule(k, p), p) < 0.75 * caps.uncoded_delay_s(p)


def test_the_optima_of_fig_9_do_not_follow_from_eq_4_at_its_own_window() -> None:
    """Section VI-D prints 29, 31, 33, 40 for w = 64."""
    assert [caps.best_unit(p) for p in PRINTED_PB] == [61, 64, 61, 64]
    # they do where the window is the printed number itself: Eq. 4 makes units of the whole window
    printed = (29, 31, 33, 40)
    assert [caps.best_unit(p, caps.Delays(window=w)) for w, p in zip(printed, PRINTED_PB, strict=True)] == [
        *printed
    ]


@given(st.floats(0.01, 0.6), st.floats(0, 200), st.integers(1, 1000), st.integers(1, 40))
def test_eq_7_is_repairs_over_all_packets(p: float, g: float, units: int, k: int) -> None:
    s, r = units * k, k / (1 - p) - k
    assert caps.overhead(p, g) == pytest.approx(s / k * r / (s + s * g + s / k * r))


def test_fig_10_stays_within_its_limits() -> None:
    """(a): below 3.5 % from 90:10 to 99:1, at pB of up to 0.25; (b): below 5 % at 90:10 up to pB = 0.34."""
    falling = [caps.overhead(0.25, long / (100 - long)) for long in range(90, 100)]
    assert falling == sorted(falling, reverse=True), "the text says that it grows with g: Eq. 7 does not"
    assert falling[0] < 0.035
    assert caps.overhead(0.34, 9) < 0.05 < caps.overhead(0.35, 9)


# HTPC

weights = st.builds(
    lambda full, more, fast: Weight(full, full + more, fast),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.integers(0, 10),
)


@given(st.integers(0, 3 * 10**6), sizes, st.floats(0, 0.6), weights)
def test_eq_5_is_eq_2_to_4_and_what_agents_round(sent: int, k: int, p: float, rule: Weight) -> None:
    w = htpc.weight(sent, rule)
    r = htpc.repairs_by_bytes(sent, k, p, rule)
    assert r == pytest.approx(htpc.repairs(w, k, p, rule.fast_retransmit), abs=1e-6)
    assert htpc_rule(k, p, rule, sent) == max(0, math.ceil(r - 1e-9)) or abs(r - round(r)) < 1e-6


def test_the_weight_of_eq_2_at_its_ends_and_in_the_middle() -> None:
    rule = Weight(100_000, 1_000_000)
    assert [htpc.weight(sent, rule) for sent in (0, 100_000, 550_000, 1_000_000, 2_000_000)] == [
        1,
        1,
        0.5,
        0,
        0,
    ]
    assert htpc.expected(0.5, 20) == pytest.approx(11.5)
    assert htpc.loss_rate(3, 60) == htpc.rps_blocking(3, 60) == 0.05


@pytest.mark.slow
@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 2**32 - 1), st.data())
def test_eq_6_to_8_are_the_agents_random_code(k: int, r: int, seed: int, data: st.DataObject) -> None:
    """Repairs are the last r columns, from the coefficients that agents draw; any k packets give the sources back."""
    own = agents_coefficients("rlc", k, r, seed)
    coefficients = tuple(tuple(int(own[j, i]) for j in range(r)) for i in range(k))
    matrix = systematic.generator(coefficients)
    symbols = st.lists(st.integers(0, 255), min_size=3, max_size=3).map(tuple)
    sources = tuple(data.draw(symbols) for _ in range(k))
    packets = systematic.encoded(sources, matrix)
    assert packets[:k] == sources
    assert len(packets) == k + r
    got = sorted(data.draw(st.permutations(range(k + r)))[:k])
    try:
        assert systematic.decoded([(a, packets[a]) for a in got], matrix) == sources
    except systematic.SingularError:
        assert sum(a < k for a in got) < k - 1, "one missing source is always found: no coefficient is 0"


@given(st.integers(1, 255), st.integers(1, 255))
def test_gf_256_has_inverses(a: int, b: int) -> None:
    assert systematic.product(a, systematic.inverse(a)) == 1
    assert systematic.product(systematic.product(a, b), systematic.inverse(b)) == a


@given(st.integers(1, 12), chances)
def test_eq_11_is_what_one_repair_leaves_missing(k: int, p: float) -> None:
    closed = ((k + 1) * p - 1 + (1 - p) ** (k + 1)) / k
    assert htpc.corrective_blocking(k, p) == pytest.approx(closed)
    assert htpc.corrective_blocking(k, p) == pytest.approx(htpc.blocking_meant(k, 1, p))
    assert htpc.blocking_meant(k, 0, p) == pytest.approx(htpc.rps_blocking(1, 1) * p)


@given(st.integers(2, 12), st.integers(1, 12), chances)
def test_eq_14_as_printed_makes_repairs_lose_packets(k: int, r: int, p: float) -> None:
    """Each repair adds p / k to it, less what it saves where nothing is blocked; what is meant falls."""
    printed = htpc.coded_blocking(k, r, p)
    assert printed == pytest.approx(((k + r) * p - 1 + (1 - p) ** (k + r)) / k)
    assert htpc.coded_blocking(k, r + 1, p) >= printed
    assert htpc.blocking_meant(k, r + 1, p) <= htpc.blocking_meant(k, r, p)


@given(st.integers(1, 8), chances)
def test_timeouts_are_counted(packets: int, p: float) -> None:
    counted = sum(
        math.prod(p if lost else 1 - p for lost in losses)
        for losses in itertools.product((False, True), repeat=packets)
        if packets - sum(losses) < 3
    )
    assert htpc.timeouts(packets, p) == pytest.approx(counted)


@pytest.mark.parametrize("k", [4, 10, 20, 64])
def test_fig_5a_htpc_delivers_more_than_rps_and_corrective_as_meant_only(k: int) -> None:
    """Blocking rate 0.5, short flows, so r = k."""
    p, rule = 0.5, Weight()
    r = htpc.repairs_by_bytes(0, k, p, rule)
    assert r == k
    rps, corrective = 1 - p, 1 - htpc.corrective_blocking(k, p)
    assert rps < corrective < 1 - htpc.blocking_meant(k, k, p)
    assert 1 - htpc.coded_blocking(k, k, p) < rps, "as printed it would be the worst of all"


@pytest.mark.parametrize("k", [3, 4, 5])
def test_fig_5b_htpc_times_out_least_where_it_codes_at_all(k: int) -> None:
    """Blocking rate 0.5, long flows: Eq. 5 gives repairs below k = T_fr / (1 - 0.5) = 6 only."""
    p, rule = 0.5, Weight()
    r = round(htpc.repairs_by_bytes(2_000_000, k, p, rule))
    assert r > 0
    rps, corrective = htpc.timeouts(k, p), htpc.timeouts(k + 1, p)
    caps_long = htpc.timeouts(k + round(htpc.caps_repairs(2_000_000, k, p, rule)), p)
    ours = htpc.timeouts(k + r, htpc.blocking_meant(k, r, p))
    assert caps_long == rps
    assert ours <= corrective < rps
    assert ours < rps / 2


def test_fig_5b_from_six_packets_on_eq_5_gives_long_flows_no_repair() -> None:
    assert all(htpc.repairs_by_bytes(2_000_000, k, 0.5, Weight()) <= 0 for k in range(6, 129))


@given(st.integers(0, 99_999), st.integers(1, 40), st.floats(0, 0.5))
def test_eq_13_is_caps_r_for_short_flows_alone(sent: int, k: int, p: float) -> None:
    assert paper_rule(k, p) == math.ceil(htpc.caps_repairs(sent, k, p, Weight()) - 1e-9)
    assert htpc.caps_repairs(sent + 100_000, k, p, Weight()) == 0
