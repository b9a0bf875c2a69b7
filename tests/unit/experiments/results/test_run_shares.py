"""Shares of runs: reckoned again from flows, and their ratios between schemes and between points of a sweep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.results.admissions import Admissions
from experiments.results.claims import find, find_across
from experiments.results.outcome import FlowOutcome
from experiments.results.path_use import Paths
from experiments.results.run_shares import SHARES, RunCounts, add_shares, per_repeat_ratio
from experiments.results.statistics import summarize
from experiments.spec.spec import Comparison
from tests.unit.experiments.results.test_experiments_statistics import flow

SHORT_PATHS = {"1": 30, "2": 30, "4": 40}
ON = {"at_s": 0.01, "leaf": "l1", "mode": "on"}
PATHS = Paths(4, {"h1": "l1", "h2": "l2"})


def runs(again: int, *, repeats: int = 4) -> list[list[FlowOutcome]]:
    """Return *repeats* runs of two short flows, the second with 30 packets of a copy, and a long one, 100 packets each.

    Sent again are *again* packets of the first, one more in each repeat, and 5 of the long one.
    """
    sent = {"packets": 100, "bytes_acked": 50_000, "rtt_ms": 2.0}
    return [
        [
            flow(
                1, 0.1, retransmissions=again + repeat, out_of_order=10, repairs=20, paths=SHORT_PATHS, **sent
            ),
            flow(2, 0.2, copy_packets=30, **(sent | {"rtt_ms": 4.0})),
            flow(3, 0.5, 200_000, retransmissions=5, paths={"0": 7, "1": 10, "2": 10}, **sent),
        ]
        for repeat in range(repeats)
    ]


def figures(outcomes: dict[str, list[list[FlowOutcome]]]) -> dict[str, dict[str, Any]]:
    schemes = summarize(outcomes, "a", 1, 50)
    counts = {
        label: [
            RunCounts(run, 3, Admissions(1, 0, 1, None, None) if label == "b" else None, (ON,), PATHS)
            for run in group
        ]
        for label, group in outcomes.items()
    }
    add_shares(schemes, counts, 1)
    return schemes


def test_shares_are_what_the_flows_say() -> None:
    schemes = figures({"a": runs(1), "b": runs(1)})
    shares = {measure: share["value"] for measure, share in schemes["b"]["shares"].items()}
    assert shares == {
        "short-retransmissions": pytest.approx((1 + 2 + 3 + 4) / 920),
        "long-retransmissions": pytest.approx(0.05),
        "all-retransmissions": pytest.approx((1 + 2 + 3 + 4 + 4 * 5) / 1320),
        "short-reordering": pytest.approx(0.05),
        "short-round-trip": pytest.approx(3.0),
        "short-round-trip-tail": pytest.approx(4 / 3),
        "short-unused-paths": pytest.approx(1 / 4),
        "long-path-spread": pytest.approx(1.0),
        "datagrams": pytest.approx((300 + 20 + 30) / 150),
        "unscheduled": pytest.approx(2 / 3),
    }
    assert set(shares) == set(SHARES)
    assert "unscheduled" not in schemes["a"]["shares"]
    assert schemes["b"]["shares"]["short-retransmissions"]["per_repeat"] == pytest.approx(
        [1 / 230, 2 / 230, 3 / 230, 4 / 230]
    )


def test_a_scheme_that_sends_nothing_again_is_better_than_one_that_does() -> None:
    orderly = [[replace(one, retransmissions=0) for one in run] for run in runs(1)]
    schemes = figures({"a": runs(50), "b": orderly})
    comparison = Comparison("short-retransmissions", "b", "a", at_most=1)
    finding = find(comparison, schemes)
    assert (finding.verdict, finding.ratio, finding.interval) == ("seen", 0.0, (0.0, 0.0))
    opposite = find(Comparison("short-retransmissions", "a", "b", at_most=1), schemes)
    assert (opposite.verdict, opposite.ratio) == ("no figure", None)
    assert "no such packets" in opposite.why


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=20),
    st.integers(0, 2**31 - 1),
)
def test_a_ratio_over_repeats_lies_between_those_of_the_repeats(
    pairs: list[tuple[float, float]], seed: int
) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    ratio, interval = per_repeat_ratio(ours, theirs, seed)
    assert ratio == pytest.approx(np.mean(ours) / np.mean(theirs))
    assert interval is not None
    each = [a / b for a, b in pairs]
    for bound in interval:
        assert min(each) * (1 - 1e-9) <= bound <= max(each) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("ours", "theirs"), [([], []), ([1.0, None], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([1.0], [0.0])]
)
def test_without_a_figure_of_every_repeat_there_is_no_ratio(
    ours: list[float | None], theirs: list[float | None]
) -> None:
    assert per_repeat_ratio(ours, theirs, 1) == (None, None)


def test_two_points_of_a_sweep_are_compared_by_their_repeats() -> None:
    points = {"0": figures({"a": runs(1), "b": runs(1)}), "4": figures({"a": runs(9), "b": runs(1)})}
    few = Comparison("short-retransmissions", "a", "a", at_most=0.3, points=(0, 4))
    finding = find_across(few, points, 1)
    assert finding.ratio == pytest.approx((1 + 2 + 3 + 4) / (9 + 10 + 11 + 12))
    assert finding.interval is not None
    assert finding.verdict == ("seen" if finding.interval[1] <= 0.3 else "open")
    same = find_across(Comparison("short-mean", "a", "b", between=(0.9, 1.1), points=(0, 4)), points, 1)
    assert (same.verdict, same.ratio) == ("seen", pytest.approx(1.0))
    missing = find_across(Comparison("short-mean", "a", "a", at_most=1, points=(0, 7)), points, 1)
    assert (missing.verdict, missing.why) == ("no figure", "a was not run at 7")
    points["4"]["a"]["cpu_limited"] = True
    assert find_across(few, points, 1).why == "a at 4 limited by the processor"


def test_a_share_is_judged_by_itself_in_percent() -> None:
    schemes = figures({"a": runs(1), "b": runs(1)})
    share = 100 * (1 + 2 + 3 + 4) / 920
    finding = find(Comparison("short-retransmissions", "a", at_most=2.1), schemes)
    assert finding.ratio == pytest.approx(share)
    assert finding.interval is not None
    assert finding.interval[0] < share < finding.interval[1]
    assert finding.verdict == "seen"
    assert find(Comparison("short-retransmissions", "a", at_most=0), schemes).verdict == "not seen"
    assert find(Comparison("long-retransmissions", "a", between=(4, 6)), schemes).verdict == "seen"
    assert find(Comparison("unscheduled", "a", at_most=1), schemes).why.startswith("no such packets")
    orderly = figures({"a": [[replace(flow, retransmissions=0) for flow in run] for run in runs(1)]})
    nothing = find(Comparison("all-retransmissions", "a", at_most=0), orderly)
    assert (nothing.verdict, nothing.ratio, nothing.interval) == ("seen", 0.0, (0.0, 0.0))


def test_the_same_point_twice_says_what_the_point_says() -> None:
    points = {"0": figures({"a": runs(1), "b": runs(9)}), "4": figures({"a": runs(9), "b": runs(1)})}
    pair = Comparison("short-mean", "a", "b", at_most=1, points=(4, 4))
    assert find_across(pair, points, 1) == find(replace(pair, points=None), points["4"])
    alone = Comparison("short-retransmissions", "a", at_most=2, points=(4, 4))
    assert find_across(alone, points, 1).ratio == pytest.approx(100 * (9 + 10 + 11 + 12) / 920)
    missing = find_across(replace(pair, points=(7, 7)), points, 1)
    assert (missing.verdict, missing.why) == ("no figure", "a was not run")
