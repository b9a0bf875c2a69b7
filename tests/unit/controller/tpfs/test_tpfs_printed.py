"""Thresholds by TPFS's printed equations, queue by queue: against enumeration, and their limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schemes import loader
from controller.schemes.scheme import Printed
from controller.tpfs.printed import Queue, delta
from controller.tpfs.printed_solution import printed_thresholds
from controller.tpfs.thresholds import FlowSizes, candidates, queue_loads

DEFAULT = (10_000, 100_000, 1_000_000)
sizes = st.lists(st.integers(1, 3_000_000), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(sizes, sizes, st.floats(0, 1))
def test_no_choice_of_thresholds_moves_more_bad_load_within_alpha(
    one: list[int], other: list[int], alpha: float
) -> None:
    types = [FlowSizes(one), FlowSizes(other)]
    solution = printed_thresholds(types, DEFAULT, 0.6, alpha=alpha)
    best = moved = 0.0
    for i, (low, high) in enumerate(itertools.pairwise((0, *DEFAULT))):
        loads = [queue_loads(each, DEFAULT)[i] for each in types]
        options = []
        for each, load in zip(types, loads, strict=True):
            grid = [low, *(p for p in candidates(each, DEFAULT) if low < p < high), high]
            options.append(
                [
                    (
                        (high - p) / (high - low) * load.bad,
                        float(each.share(np.array(high)) - each.share(np.array(p))) * load.good,
                    )
                    for p in grid
                ]
            )
        allowed = alpha * sum(load.good for load in loads)
        within = [
            sum(bad for bad, _ in choice)
            for choice in itertools.product(*options)
            if sum(good for _, good in choice) <= allowed * (1 + 1e-9) + 1e-9
        ]
        best += max(within)
    moved = solution.removed_bad
    assert moved == pytest.approx(best, rel=1e-4, abs=1.0)
    assert solution.removed_good <= solution.delta * (1 + 1e-6) + 1e-6
    for found in solution.thresholds:
        assert all(low <= p <= high for p, low, high in zip(found, (0, *DEFAULT), DEFAULT, strict=False))


def test_large_flows_leave_the_first_queue_at_once_and_small_ones_never() -> None:
    small, large = FlowSizes([2_000] * 50), FlowSizes([5_000_000] * 5)
    solution = printed_thresholds([small, large], DEFAULT, 0.6, alpha=0.1)
    assert solution.thresholds[1] == (0, 10_000, 100_000), "each boundary is lowered to the one before it"
    assert solution.removed_good == 0


def test_flows_of_no_type_are_load_and_keep_their_thresholds() -> None:
    types = [FlowSizes([2_000] * 50)]
    alone = printed_thresholds(types, DEFAULT, 0.6)
    beside = printed_thresholds(types, DEFAULT, 0.6, others=FlowSizes([5_000_000]))
    assert len(beside.thresholds) == 1
    assert beside.delta < alone.delta, "the first queue's good load is a smaller part of the link's"


def test_without_alpha_delta_is_eq_7s() -> None:
    flows = FlowSizes([5_000, 50_000, 500_000, 5_000_000])
    solution = printed_thresholds([flows], DEFAULT, 0.5)
    loads = queue_loads(flows, DEFAULT)
    share = [((one.good + one.bad) / flows.bytes * 0.5, one.good / flows.bytes * 0.5) for one in loads]
    expected = sum(
        delta(Queue(sum(all_of for all_of, _ in share[:i]), good, both - good, share[i + 1][0]))
        for i, (both, good) in enumerate(share[:-1])
    )
    assert solution.delta == pytest.approx(expected * flows.bytes / 0.5)


def test_the_schemes_say_what_the_paper_sets() -> None:
    """Section II-B: 46 packets, of the row in PIAS's simulation code ([20]); section V-A: alpha below 10 %."""
    pias, tpfs = loader.load("pias-tpfs"), loader.load("tpfs-paper")
    assert pias.priority is not None
    assert tpfs.priority is not None
    assert pias.priority.thresholds_bytes == tpfs.priority.thresholds_bytes
    published = (46, 1084, 1717, 1943, 1989, 1999, 2001)
    assert pias.priority.thresholds_bytes == tuple(1460 * packets for packets in published)
    assert tpfs.priority.prediction is not None
    assert tpfs.priority.prediction.printed == Printed(0.1)
