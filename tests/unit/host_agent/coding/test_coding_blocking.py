"""The estimators of the blocking probability against simulated fabrics whose truth is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from host_agent.coding.blocking import (
    MAX_BLOCKING_PROBABILITY,
    PRIOR,
    AckShareEstimator,
    BlockingEstimator,
    PathsEstimator,
    RttEstimator,
    estimator,
)

PACKET_TIME_S = 0.0012  # 10 Mbit/s
MODULUS = 1 << 32


class Fabric:
    """Sprayed packets over N paths of which some hold 320-550 ms of queue, the others 3-6 ms (as measured).

    What the sender hears comes when it comes: a receipt one delay and 3 ms after the packet left, and a loss, or that a
    packet is overdue, one best delay and `overdue_s` after it.
    """

    def __init__(self, paths: int, blocked: int, seed: int, drop: float = 0.0, offset_us: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._paths = paths
        self._blocked = blocked
        self._drop = drop
        self._offset_us = offset_us

    def feed(
        self,
        watched: BlockingEstimator,
        since: float,
        until: float,
        packets_per_s: float,
        overdue: bool = False,
    ) -> None:
        heard: list[tuple[float, int | None, int]] = []
        count = round((until - since) * packets_per_s)
        for sent in np.sort(self._rng.uniform(since, until, count)):
            path = int(self._rng.integers(self._paths))
            late = path < self._blocked
            delay = self._rng.uniform(0.32, 0.55) if late else self._rng.uniform(0.003, 0.006)
            lost = late and self._rng.random() < self._drop
            if lost or (late and overdue):
                heard.append((float(sent) + watched.overdue_s + 0.006, None, 0))
            if not lost:
                delay_us = (round(delay * 1e6) + self._offset_us) % MODULUS
                heard.append((float(sent + delay + 0.003), 1 + path, delay_us))
        for at, stamp, delay_us in sorted(heard, key=lambda event: event[0]):
            if at > until:
                break
            if stamp is None:
                watched.path_loss(None, at)
            else:
                watched.path_delay(stamp, delay_us, at)


@pytest.mark.parametrize("overdue", [False, True])
@pytest.mark.parametrize("drop", [0.0, 0.3])
@pytest.mark.parametrize("offset_us", [0, MODULUS - 4500])
@pytest.mark.parametrize("share", [0.0, 0.125, 0.25, 0.5])
@pytest.mark.parametrize("paths", [8, 16])
def test_paths_estimator_is_right(
    paths: int, share: float, offset_us: int, drop: float, overdue: bool
) -> None:
    """Also with clocks that differ (delays wrap at 2**32), and with a third lost on the blocked paths."""
    fabric = Fabric(paths, round(share * paths), seed=paths, drop=drop, offset_us=offset_us)
    watched = PathsEstimator(PACKET_TIME_S)
    readings = []
    for step in range(8):
        fabric.feed(watched, 2.0 * step, 2.0 * step + 2.0, 400, overdue)
        readings.append(watched.blocking_probability(2.0 * step + 2.0))
    assert np.mean(readings[1:]) == pytest.approx(share, abs=0.06)


def test_paths_estimator_sees_blocked_paths_within_the_first_flow() -> None:
    """70 packets in 100 ms to a peer that was never heard of: only overdue packets can tell by then."""
    for share in (0.0, 0.25, 0.5):
        readings = []
        for seed in range(20):
            watched = PathsEstimator(PACKET_TIME_S)
            Fabric(16, round(16 * share), seed).feed(watched, 0.0, 0.1, 700, overdue=True)
            readings.append(watched.blocking_probability(0.1))
        assert np.mean(readings) == pytest.approx(share, abs=0.08)


def test_paths_estimator_remembers_between_flows() -> None:
    """Short flows come seldom, long flows stay: 1.5 s of silence change nothing."""
    watched = PathsEstimator(PACKET_TIME_S)
    Fabric(16, 4, 1).feed(watched, 0.0, 2.0, 400)
    assert watched.blocking_probability(3.5) == pytest.approx(0.25, abs=0.06)


def test_paths_estimator_follows_within_a_second() -> None:
    watched = PathsEstimator(PACKET_TIME_S)
    Fabric(16, 0, 1).feed(watched, 0.0, 2.0, 400)
    assert watched.blocking_probability(2.0) == 0.0
    Fabric(16, 8, 2).feed(watched, 2.0, 4.0, 400)
    assert watched.blocking_probability(4.0) == pytest.approx(0.5, abs=0.06)
    Fabric(16, 0, 3).feed(watched, 4.0, 5.0, 400)
    assert watched.blocking_probability(5.0) < 0.03
    assert watched.blocking_probability(60.0) == PRIOR
    watched.prior = 0.3
    assert watched.blocking_probability(60.0) == 0.3


def test_paths_estimator_knows_the_best_even_while_all_are_blocked() -> None:
    watched = PathsEstimator(PACKET_TIME_S)
    Fabric(4, 0, 1).feed(watched, 0.0, 1.0, 400)
    Fabric(4, 4, 2).feed(watched, 1.0, 4.0, 400)
    assert watched.blocking_probability(4.0) == MAX_BLOCKING_PROBABILITY


def test_paths_estimator_follows_a_slower_best_path_after_a_while() -> None:
    """A longer way (or a clock that was set) is the new normal after at most two periods of the best delay."""
    watched = PathsEstimator(PACKET_TIME_S)
    for step in range(5000):
        now = step * 0.01
        watched.path_delay(1 + step % 4, 3000 if now < 5 else 90_000, now)
        if now == 6.0:
            assert watched.blocking_probability(now) == MAX_BLOCKING_PROBABILITY
    assert watched.blocking_probability(49.99) == pytest.approx(0.0, abs=1e-6)


def test_paths_estimator_counts_random_loss_without_a_known_path() -> None:
    rng = np.random.default_rng(5)
    watched = PathsEstimator(PACKET_TIME_S)
    readings = []
    for step in range(4000):
        now = step * 0.002
        if rng.random() < 0.1:
            watched.path_loss(None, now)
        else:
            watched.path_delay(1 + int(rng.integers(8)), 4000, now)
        readings.append(watched.blocking_probability(now))
    assert np.mean(readings[500:]) == pytest.approx(0.1, abs=0.03)


def test_paths_estimator_counts_loss_on_a_known_path_as_blocked() -> None:
    watched = PathsEstimator(PACKET_TIME_S)
    for step in range(200):
        stamp = 1 + step % 4
        if stamp == 1:
            watched.path_loss(stamp, step * 0.002)
        else:
            watched.path_delay(stamp, 4000, step * 0.002)
    assert watched.blocking_probability(0.4) == pytest.approx(0.25, abs=0.01)


def test_paths_estimator_forgets_paths_that_are_silent() -> None:
    watched = PathsEstimator(PACKET_TIME_S, max_age_s=0.5)
    for step in range(20):
        watched.path_delay(1 + step % 2, 4000 if step % 2 else 900_000, 0.01 * step)
    assert watched.blocking_probability(0.2) == pytest.approx(0.5, abs=0.002)
    for step in range(20):
        watched.path_delay(2, 4000, 1.0 + 0.01 * step)
    assert watched.blocking_probability(1.2) == 0.0
    assert watched.blocking_probability(9.0) == PRIOR


def test_first_samples_only_pull_at_the_prior() -> None:
    watched = PathsEstimator(PACKET_TIME_S)
    assert watched.blocking_probability(0.0) == PRIOR
    watched.path_delay(1, 4000, 0.0)
    assert 0.0 < watched.blocking_probability(0.0) < PRIOR


def test_threshold_is_given_in_packet_times_with_a_floor_for_jitter() -> None:
    for packet_time, fine_us, blocked_us in ((0.0012, 9500, 9700), (0.000012, 1900, 2100)):
        for extra_us, share in ((fine_us, 0.0), (blocked_us, 0.5)):
            watched = PathsEstimator(packet_time)
            for step in range(40):
                watched.path_delay(1 + step % 2, 1000 + extra_us * (step % 2), 0.001 * step)
            assert watched.blocking_probability(0.04) == pytest.approx(share)


def test_paths_estimator_tells_both_round_trip_times() -> None:
    watched = PathsEstimator(PACKET_TIME_S)
    assert (watched.rtt_s(), watched.blocked_rtt_s()) == (0.0, 0.0)
    for step in range(100):
        watched.ack_rtt(0.4 if step % 5 == 4 else 0.006, 0.01 * step)
        watched.path_delay(1 + step % 4, 303_000 if step % 4 == 3 else 3000, 0.01 * step)
    assert watched.rtt_s() == pytest.approx(0.006)
    assert watched.blocked_rtt_s() == pytest.approx(0.306)
    assert watched.paths(1.0)[4] == (pytest.approx(0.3), pytest.approx(1.0, abs=0.01))


def printed_shares(periods: list[list[int]], smoothed: bool) -> list[Fraction]:
    """n_b / n of each sampling period (HTPC, Eq. 4; CAPS, sections VI and IX-C), in exact arithmetic.

    What is too close to its limit for floating-point numbers is taken out of the test.
    """
    shares, rtt_smooth = [], Fraction(0)
    for number, rtts in enumerate(periods):
        rtt_avg = Fraction(sum(rtts), len(rtts))
        rtt_smooth = Fraction(7, 8) * rtt_smooth + Fraction(1, 8) * rtt_avg if number else rtt_avg
        limit = 2 * (rtt_smooth if smoothed else rtt_avg)
        assume(not smoothed or all(abs(rtt - limit) > 1e-9 for rtt in rtts))
        shares.append(Fraction(sum(rtt > limit for rtt in rtts), len(rtts)))
    return shares


@given(
    smoothed=st.booleans(),
    periods=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=6),
    scale=st.sampled_from([2.0**-12, 2.0**-10, 1.0]),
)
def test_ack_share_is_the_papers_whatever_the_scale(
    smoothed: bool, periods: list[list[int]], scale: float
) -> None:
    watched = AckShareEstimator(PACKET_TIME_S, sampling_s=1.0, smoothed=smoothed)
    expected = printed_shares(periods, smoothed)
    for second, (rtts, share) in enumerate(zip(periods, expected, strict=True)):
        before = watched.blocking_probability(float(second))
        for rtt in rtts:
            watched.ack_rtt(rtt * scale, second + 0.5)
            assert watched.blocking_probability(second + 0.99) == before, "it counts when the period is over"
        assert watched.blocking_probability(second + 1.0) == pytest.approx(float(share))
        assert smoothed or share < Fraction(1, 2)


def test_ack_share_by_hand() -> None:
    """The figure of CAPS, Fig. 4: 4 of 40 paths have large RTTs, so pB is 0.1."""
    watched = estimator("rtt-average", PACKET_TIME_S, 1.0)
    for path in range(40):
        watched.ack_rtt(0.003 if path < 4 else 0.0003, 0.01 * path)
    assert watched.blocking_probability(1.0) == pytest.approx(0.1)
    assert watched.rtt_s() == pytest.approx(0.0003)
    assert watched.blocked_rtt_s() == pytest.approx(0.003)
    # a period in which all RTTs are large: above twice what was usual, not above twice their own average
    smoothed = estimator("rtt-smoothed", PACKET_TIME_S, 1.0)
    for second, rtt in enumerate((0.0003, 0.03)):
        for one in (watched, smoothed):
            one.ack_rtt(rtt, 2.0 + second)
    assert watched.blocking_probability(9.0) == 0.0
    assert smoothed.blocking_probability(9.0) == 1.0


def test_ack_share_does_not_grow_where_all_queues_grow_alike() -> None:
    """Why repairs that count overdue packets feed on themselves, and the printed share does not (docs/coding.md)."""
    shares, overdue = [], []
    for queue_s in (0.0, 0.05, 0.5):
        relative, absolute = estimator("rtt-average", PACKET_TIME_S, 1.0), PathsEstimator(PACKET_TIME_S)
        absolute.path_delay(9, 0, 0.0)  # the best that it has seen
        for step in range(400):
            relative.ack_rtt((0.01 + queue_s) * (4.0 if step % 8 == 0 else 1.0), 0.002 * step)
            absolute.path_delay(1 + step % 8, round(1e6 * queue_s), 0.002 * step)
        shares.append(relative.blocking_probability(1.0))
        overdue.append(absolute.blocking_probability(1.0))
    assert shares == [0.125] * 3
    assert overdue == [0.0, MAX_BLOCKING_PROBABILITY, MAX_BLOCKING_PROBABILITY]


def test_rtt_estimator_is_our_reading_of_the_papers() -> None:
    """By hand: average 10 ms; 25 ms is above twice of it; the share counts from the next interval on."""
    watched = RttEstimator(PACKET_TIME_S, interval_s=1.0)
    assert watched.blocking_probability(0.0) == PRIOR
    for step in range(10):
        watched.ack_rtt(0.025 if step in (5, 9) else 0.010, 0.1 * step)
    assert watched.blocking_probability(0.99) == PRIOR
    assert watched.blocking_probability(1.0) == pytest.approx(0.2)
    assert watched.rtt_s() == pytest.approx(0.010)
    assert watched.blocked_rtt_s() == pytest.approx(0.025)
    # an interval without enough ACKs says nothing new
    watched.ack_rtt(0.010, 1.5)
    assert watched.blocking_probability(2.1) == pytest.approx(0.2)


def test_rtt_estimator_cannot_see_more_than_half() -> None:
    """Why it is not the default: if most ACKs are late, the average is late as well."""
    rng = np.random.default_rng(1)
    watched = RttEstimator(PACKET_TIME_S, interval_s=0.5)
    for step in range(2000):
        watched.ack_rtt(0.4 if rng.random() < 0.6 else 0.005, 0.01 * step)
    assert watched.blocking_probability(20.0) < 0.2


def test_rtt_estimator_ignores_paths() -> None:
    watched = RttEstimator(PACKET_TIME_S)
    for step in range(50):
        watched.path_delay(1, step * 1000, 0.1 * step)
        watched.path_loss(None, 0.1 * step)
    assert watched.blocking_probability(5.0) == PRIOR


def test_estimators_by_name() -> None:
    assert isinstance(estimator("rtt", PACKET_TIME_S), RttEstimator)
    assert isinstance(estimator("paths", PACKET_TIME_S), PathsEstimator)
    for name in ("rtt-average", "rtt-smoothed"):
        assert isinstance(estimator(name, PACKET_TIME_S), AckShareEstimator)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'ecn' is not known"):
        estimator("ecn", PACKET_TIME_S)  # type: ignore[arg-type]


EVENTS = st.one_of(
    st.tuples(st.just("ack_rtt"), st.floats(-1, 10, allow_nan=False)),
    st.tuples(st.just("path_delay"), st.integers(-1, 70_000), st.integers(0, MODULUS - 1)),
    st.tuples(st.just("path_loss"), st.one_of(st.none(), st.integers(-1, 70_000))),
)


@given(
    name=st.sampled_from(["paths", "rtt", "loss-rate", "rtt-average", "rtt-smoothed"]),
    events=st.lists(st.tuples(st.floats(0, 30), EVENTS), max_size=60),
)
def test_estimates_stay_in_bounds_whatever_is_fed(
    name: str, events: list[tuple[float, tuple[object, ...]]]
) -> None:
    watched = estimator(name, PACKET_TIME_S)  # type: ignore[arg-type]
    now = 0.0
    for step, (method, *arguments) in events:
        now += step
        getattr(watched, method)(*arguments, now)
        most = 1.0 if name == "rtt-smoothed" else MAX_BLOCKING_PROBABILITY
        assert 0.0 <= watched.blocking_probability(now) <= most
        assert 0.0 <= watched.rtt_s() <= watched.blocked_rtt_s()
