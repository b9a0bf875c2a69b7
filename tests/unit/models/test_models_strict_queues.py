"""The simulation of strict queues against queueing theory, and the model that chooses delta against the simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.tpfs.slowdown import PACKET_BYTES, SlowdownSums, mean_slowdown
from controller.tpfs.thresholds import FlowSizes
from models.strict_queues import (
    OVERHEAD_BYTES,
    PAYLOAD_BYTES,
    ROUND_TRIP_S,
    Job,
    by_bytes_sent,
    by_remaining,
    by_size,
    completion_times,
)
from workloads.description import Sizes
from workloads.sizes import distribution

RATE = 5e6
TIME = (PAYLOAD_BYTES + OVERHEAD_BYTES) * 8 / RATE


def test_a_flow_alone_takes_its_own_time() -> None:
    (one,) = completion_times([Job(1.0, 100 * PAYLOAD_BYTES, 0)], [by_bytes_sent([5000])], 1, RATE)
    assert one == pytest.approx(1.5 * ROUND_TRIP_S + 100 * TIME)


def test_packets_of_the_same_size_wait_as_in_an_md1_queue() -> None:
    rng = np.random.default_rng(1)
    load = 0.7
    starts = np.cumsum(rng.exponential(TIME / load, 60_000))
    jobs = [Job(float(start), PAYLOAD_BYTES, 0) for start in starts]
    times = completion_times(jobs, [by_bytes_sent([])] * len(jobs), 1, RATE)
    waited = np.mean(times) - TIME - 1.5 * ROUND_TRIP_S
    assert waited == pytest.approx(load / (2 * (1 - load)) * TIME, rel=0.05)


@given(st.lists(st.tuples(st.floats(0, 0.2), st.integers(1, 40_000)), min_size=1, max_size=25), st.data())
@settings(max_examples=30, deadline=None)
def test_a_link_is_busy_as_long_as_there_is_work_whatever_the_order(
    flows: list[tuple[float, int]], data: st.DataObject
) -> None:
    """Flows below a window have all their packets in the queue at once: it does not matter then who is first."""
    jobs = [Job(start, min(size, 10 * PAYLOAD_BYTES), 0) for start, size in flows]
    at = data.draw(st.lists(st.integers(0, 40_000), max_size=7).map(sorted))
    orders = (
        [by_bytes_sent(at)] * len(jobs),
        [by_size(at, job.size) for job in jobs],
        [by_remaining(job.size) for job in jobs],
    )
    ends = [
        max(
            job.start_s + time for job, time in zip(jobs, completion_times(jobs, order, 1, RATE), strict=True)
        )
        for order in orders
    ]
    assert ends == pytest.approx([ends[0]] * 3)


def test_one_queue_has_the_mean_slowdown_of_an_mg1_queue() -> None:
    rng = np.random.default_rng(2)
    sizes = np.sort(rng.exponential(30_000, 5000))
    load, mean = 0.6, sizes.mean()
    wait = load * np.mean(sizes**2) / mean / (2 * (1 - load))
    sums = SlowdownSums(sizes, np.ones(len(sizes)), window=np.inf)
    expected = np.mean((wait + sizes) / (sizes + PACKET_BYTES))
    assert mean_slowdown([sums], [()], load) == pytest.approx(expected)


def test_without_a_window_one_queue_is_shared() -> None:
    sizes = np.sort(np.random.default_rng(3).exponential(30_000, 5000))
    sums = SlowdownSums(sizes, np.ones(len(sizes)), window=0.0)
    assert mean_slowdown([sums], [()], 0.6) == pytest.approx(
        np.mean(sizes / (sizes + PACKET_BYTES)) / (1 - 0.6)
    )


@given(
    st.lists(st.lists(st.integers(1, 300_000), min_size=1, max_size=30), min_size=1, max_size=3),
    st.data(),
)
@settings(max_examples=50, deadline=None)
def test_the_sums_are_those_of_single_flows(types: list[list[int]], data: st.DataObject) -> None:
    thresholds = [
        data.draw(st.lists(st.integers(0, 300_000), min_size=2, max_size=2).map(sorted)) for _ in types
    ]
    window, load = 20_000.0, 0.7
    every = [(x, b) for sizes, b in zip(types, thresholds, strict=True) for x in sizes]
    total = sum(x for x, _ in every)
    expected = 0.0
    for own, b in every:
        queue = sum(own > one for one in b)
        free = []
        for upto in (queue - 1, queue):
            inside = 0.0 if upto < 0 else sum(min(x, [*c, np.inf][upto]) for x, c in every)
            free.append(1 - load * inside / total)
        parts = [min(x, [*c, np.inf][queue]) for x, c in every]
        waits = load / total * sum(m * min(m, window) for m in parts) / (2 * free[1])
        time = (waits + min(own, window)) / free[0] + max(own - window, 0) / free[1]
        expected += time / (own + PACKET_BYTES) / len(every)
    sums = [SlowdownSums(np.sort(np.array(one, dtype=float)), np.ones(len(one)), window) for one in types]
    assert mean_slowdown(sums, thresholds, load) == pytest.approx(expected)


def test_others_are_in_the_way_and_do_not_count() -> None:
    short, long = (FlowSizes([size] * count).slowdown for size, count in ((1000, 900), (1_000_000, 9)))
    both = mean_slowdown([short, long], [(5000,), (5000,)], 0.6)
    alone = mean_slowdown([short], [(5000,)], 0.6, others=long, default=(5000,))
    later = mean_slowdown([short], [(5000,)], 0.6, others=long, default=(0,))
    assert 0 < later < alone < both
    assert mean_slowdown([], [], 0.6, others=long, default=(0,)) == 0


def test_the_model_orders_thresholds_as_the_simulation_does() -> None:
    """Two applications at 60 % load: thresholds that differ by more than a tenth in either have the same order in
    both."""
    rng = np.random.default_rng(4)
    load, tables = 0.6, ("websearch", "hadoop")
    drawn = [
        distribution(Sizes(kind="table", table=name, scale=0.02)).sample(rng, count)
        for name, count in zip(tables, (300, 4000), strict=True)
    ]
    sizes = np.concatenate(drawn)
    kind = np.repeat([0, 1], [len(one) for one in drawn])
    order = rng.permutation(len(sizes))
    sizes, kind = sizes[order], kind[order]
    starts = np.sort(rng.uniform(0, sizes.sum() * 8 / (load * 2 * RATE), len(sizes)))
    jobs = [
        Job(float(start), int(size), int(rng.integers(2))) for start, size in zip(starts, sizes, strict=True)
    ]
    sums = [FlowSizes(one).slowdown for one in drawn]
    tried = [
        ((26_000, 72_000), (26_000, 72_000)),
        ((5_000, 60_000), (5_000, 60_000)),
        ((0, 60_000), (5_000, 60_000)),
        ((26_000, 72_000), (0, 0)),
        ((0, 0), (0, 0)),
        ((400_000, 500_000), (400_000, 500_000)),
    ]
    by_model, simulated = [], []
    for thresholds in tried:
        times = completion_times(jobs, [by_bytes_sent(thresholds[one]) for one in kind], 2, RATE)
        simulated.append(float(np.mean(np.array(times) / ((sizes + PACKET_BYTES) * 8 / RATE))))
        by_model.append(mean_slowdown(sums, thresholds, load))
    compared = 0
    for one, other in itertools.combinations(range(len(tried)), 2):
        model, seen = by_model[one] / by_model[other], simulated[one] / simulated[other]
        if max(abs(np.log(model)), abs(np.log(seen))) > 0.1:
            compared += 1
            assert (model < 1) == (seen < 1), (tried[one], tried[other], by_model, simulated)
    assert compared >= 10
