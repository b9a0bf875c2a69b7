import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.results.claims import find
from experiments.results.counts import path_balance
from experiments.results.outcome import FlowOutcome
from experiments.results.statistics import (
    Completion,
    EmptyError,
    Goodput,
    Resamples,
    paired_ratio,
    summarize,
)
from experiments.spec.spec import Comparison


def flow(number: int, fct_s: float | None, size: int | None = 50_000, **more: Any) -> FlowOutcome:
    kind = "long" if size is None or size >= 100_000 else "short"
    values: dict[str, Any] = {
        "id": number,
        "source": "h1",
        "destination": "h2",
        "source_port": 10_000 + number,
        "traffic_class": kind,
        "size_bytes": size,
        "state": "background" if size is None else "finished" if fct_s is not None else "failed",
        "error": "",
        "planned_s": 0.0,
        "started_s": 0.0,
        "fct_s": fct_s,
        "bytes_acked": 0,
        "window_bytes": 0,
        "window_s": 0.0,
        "retransmissions": 0,
        "bytes_retransmitted": 0,
        "duplicates_reported": 0,
        "reordering_events": 0,
        "out_of_order": 0,
        "rtt_ms": 0.0,
        "min_rtt_ms": 0.0,
    }
    return FlowOutcome(**(values | more))


def background(number: int, mbps: float) -> FlowOutcome:
    return flow(number, None, None, window_bytes=int(mbps * 2e6 / 8), window_s=2.0)


def repeats(seed: int, count: int = 3, each: int = 40, factor: float = 1.0) -> list[list[FlowOutcome]]:
    rng = np.random.default_rng(seed)
    return [
        [
            background(0, 4.0 * factor),
            *(flow(n + 1, float(t) * factor) for n, t in enumerate(rng.exponential(0.1, each))),
        ]
        for _ in range(count)
    ]


def test_figures_are_those_of_the_flows() -> None:
    runs = [[flow(0, 0.010), flow(1, 0.020)], [flow(0, 0.030), flow(1, None)]]
    entry = summarize({"a": runs}, "a", 1)["a"]["short"]
    assert entry["n"] == 3
    assert entry["failed"] == 1
    assert entry["afct_ms"] == pytest.approx(20)
    assert entry["p50_ms"] == pytest.approx(20)
    assert entry["max_ms"] == pytest.approx(30)
    assert entry["afct_per_repeat_ms"] == pytest.approx([15, 30])


@given(seed=st.integers(0, 10_000), count=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_intervals_hold_their_figure_and_stay_within_the_data(seed: int, count: int) -> None:
    entry = summarize({"a": repeats(seed, count)}, "a", seed, resamples=200)["a"]["short"]
    values = [f.fct_s * 1e3 for run in repeats(seed, count) for f in run if f.fct_s is not None]
    for name in ("afct", "p50", "p95", "p99"):
        low, high = entry[f"{name}_ci_ms"]
        assert min(values) <= low <= entry[f"{name}_ms"] <= high <= max(values)


def test_ratios_are_paired_so_a_constant_factor_has_no_spread() -> None:
    result = summarize({"slow": repeats(5), "fast": repeats(5, factor=0.25)}, "slow", 1)
    against = result["fast"]["against"]["slow"]
    assert against["short_afct_ratio"] == pytest.approx(0.25)
    assert against["short_afct_ratio_ci"] == pytest.approx((0.25, 0.25))
    assert against["goodput_ratio"] == pytest.approx(0.25, abs=1e-3)
    assert result["slow"]["against"]["fast"]["short_afct_ratio"] == pytest.approx(4)
    assert result["slow"]["baseline"]
    assert not result["fast"]["baseline"]


@pytest.mark.slow
def test_an_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for trial in range(100):
        # what repeats have in common varies too: an interval over flows alone would be far too narrow
        runs = [
            [flow(n, 0.1 + level + t) for n, t in enumerate(rng.exponential(0.05, 30))]
            for level in rng.normal(0, 0.03, 12)
        ]
        values = Completion.of(runs, "short")
        drawn = values.resampled(Resamples(tuple(values.counts), (trial,), 100))
        low, high = values.figures(drawn)["afct_ci_ms"]
        covered += low <= 150 <= high
    assert 0.86 <= covered / 100 <= 1.0


def test_a_class_without_a_finished_flow_is_an_error_and_no_row() -> None:
    with pytest.raises(EmptyError, match="scheme 'b': no short flow finished"):
        summarize({"a": [[flow(0, 0.1)]], "b": [[flow(0, None)]]}, "a", 1)


def test_a_class_that_was_not_planned_has_no_block() -> None:
    result = summarize({"a": [[flow(0, 0.1)]]}, "a", 1)["a"]
    assert "long" not in result
    assert list(result["paths"]) == ["short"]


def test_a_repeat_without_flows_of_a_class_is_no_error() -> None:
    runs = [[flow(0, 0.1), flow(1, 2.0, 200_000)], [flow(0, 0.1)]]
    result = summarize({"a": runs, "b": runs}, "a", 1)["a"]
    assert result["long"]["n"] == 1
    assert result["against"]["b"]["long_afct_ratio"] == 1


def test_a_single_finished_flow_has_no_interval() -> None:
    runs = {"a": [[flow(0, 0.1), flow(1, None)]], "b": [[flow(0, 0.2), flow(1, 0.3)]]}
    result = summarize(runs, "a", 1)
    alone, both = result["a"]["short"], result["b"]["short"]
    for name in ("afct", "p50", "p95", "p99"):
        assert alone[f"{name}_ci_ms"] is None
        assert both[f"{name}_ci_ms"] is not None
    for ours, theirs, ratio in (("a", "b", 0.4), ("b", "a", 2.5)):
        against = result[ours]["against"][theirs]
        assert against["short_afct_ratio"] == pytest.approx(ratio)
        assert against["short_afct_ratio_ci"] is None
    finding = find(Comparison("short-mean", "a", "b", at_most=1), result)
    assert (finding.verdict, finding.why) == ("open", "a single flow has no interval")


def test_goodput_is_a_sum_per_repeat_with_an_interval_over_repeats() -> None:
    runs = [[background(0, 3), background(1, 1)], [background(0, 5), background(1, 3)]]
    goodput = Goodput.of(runs)
    assert goodput is not None
    entry = goodput.figures(np.random.default_rng(1))
    assert entry["goodput_mbps"] == pytest.approx(6, abs=0.01)
    assert entry["goodput_ci_mbps"] == pytest.approx((4, 8), abs=0.01)
    assert entry["slowest_flow_mbps"] == pytest.approx(2, abs=0.01)
    one = Goodput.of(runs[:1])
    assert one is not None
    assert one.figures(np.random.default_rng(1))["goodput_ci_mbps"] is None


def test_a_background_flow_that_never_ran_counts_as_zero() -> None:
    dead = flow(1, None, None, state="failed")
    result = summarize({"a": [[background(0, 4), dead, flow(2, 0.1)]]}, "a", 1)["a"]["long"]
    assert result["goodput_mbps"] == pytest.approx(4, abs=0.01)
    assert result["failed_background_flows"] == 1


def test_ratio_against_no_goodput_is_none() -> None:
    result = summarize(
        {"a": [[background(0, 4), flow(1, 0.1)]], "b": [[background(0, 0), flow(1, 0.1)]]}, "b", 1
    )
    assert result["a"]["against"]["b"]["goodput_ratio"] is None


@pytest.mark.parametrize(
    ("rows", "ratio", "interval"),
    [
        (
            [[0, 0]] * 4 + [[1, 3]],
            1 / 3,
            False,
        ),  # a third of all draws have none of the one that says anything
        ([[2, 0], [1, 20], [1, 20]], 0.1, False),  # 1 of 27 draws is of the first alone
        ([[2, 0]] + [[1, 20]] * 4, 6 / 80, True),  # 1 of 3125
        ([[1, 2], [1, 4]], 1 / 3, True),
    ],
)
def test_a_ratio_has_no_interval_where_that_reaches_infinity(
    rows: list[list[float]], ratio: float, interval: bool
) -> None:
    value, span = paired_ratio(np.array(rows, dtype=float), np.random.default_rng(1))
    assert value == pytest.approx(ratio)
    assert (span is not None) is interval
    if span is not None:
        assert 0 < span[0] <= ratio <= span[1] < 2


def test_paths_are_summed_and_their_balance_reported() -> None:
    runs = [[flow(0, 0.1, paths={"1": 10, "2": 30, "0": 5}), flow(1, 0.1, paths={"3": 20})]]
    assert path_balance(runs, "short") == {
        "datagrams": {"1": 10, "2": 30, "3": 20},
        "paths_per_flow": 1.5,
        "busiest_over_mean": 1.5,
    }
    assert path_balance(runs, "long") == {"datagrams": {}, "paths_per_flow": None, "busiest_over_mean": None}


def test_counts_are_totals_and_overhead_is_repairs_per_packet() -> None:
    runs = [[flow(0, 0.1, packets=10, repairs=3, recovered=1, retransmissions=2), flow(1, 0.1, packets=20)]]
    entry = summarize({"a": runs}, "a", 1)["a"]
    assert entry["overhead"] == pytest.approx(0.1)
    assert entry["coded_overhead"] == pytest.approx(0.3)
    assert entry["recovered_packets"] == 1
    assert entry["retransmissions"] == entry["short"]["retransmissions"] == 2


def test_figures_do_not_depend_on_the_order_of_schemes() -> None:
    one = summarize({"a": repeats(1), "b": repeats(2)}, "a", 3)
    two = summarize({"b": repeats(2), "a": repeats(1)}, "a", 3)
    assert one["a"] == two["a"]


def test_ratio_leaves_out_flows_that_failed() -> None:
    result = summarize(
        {
            "a": [[flow(0, 1.0), flow(1, None), flow(2, 3.0)]],
            "b": [[flow(0, 2.0), flow(1, 2.0), flow(2, None)]],
        },
        "a",
        1,
    )
    assert result["a"]["against"]["b"]["short_afct_ratio"] == pytest.approx(1.0)


def test_a_p99_is_shown_and_compared_from_1000_flows_on() -> None:
    few, many = (
        summarize({"a": repeats(1, 2, each), "b": repeats(1, 2, each, 0.5)}, "a", 1, 100)
        for each in (499, 500)
    )
    assert not few["b"]["short"]["p99_shown"]
    assert "short_p99_ratio" not in few["b"]["against"]["a"]
    assert many["b"]["short"]["p99_shown"]
    assert many["b"]["against"]["a"]["short_p99_ratio"] == pytest.approx(0.5)
    assert many["b"]["against"]["a"]["short_p99_ratio_ci"] == pytest.approx((0.5, 0.5))


def test_copies_of_replicated_flows_are_overhead() -> None:
    runs = [[flow(0, 0.1, packets=10, copy_packets=8), flow(1, 0.1, packets=10)]]
    entry = summarize({"a": runs}, "a", 1)["a"]
    assert entry["copy_packets"] == 8
    assert entry["overhead"] == pytest.approx(0.4)


@given(
    st.lists(st.lists(st.floats(0.001, 1e3) | st.none(), min_size=1, max_size=30), min_size=1, max_size=3),
    st.integers(1, 40),
)
@settings(max_examples=50)
def test_resamples_are_the_same_however_many_are_held_at_once(
    times: list[list[float | None]], number: int
) -> None:
    values = tuple(np.array([np.nan if ms is None else ms for ms in repeat]) for repeat in times)
    resamples = Resamples(tuple(len(repeat) for repeat in values), (3, 1), number)
    found = Completion(values).resampled(resamples)
    rng = np.random.default_rng((3, 1))  # as the paper-and-pencil bootstrap: repeats, then flows within each
    for index, row in enumerate(rng.integers(len(values), size=(number, len(values)))):
        picks = [
            values[repeat][rng.integers(len(values[repeat]), size=len(values[repeat]))] for repeat in row
        ]
        pick = np.concatenate(picks)
        pick = pick[~np.isnan(pick)]
        if not len(pick):
            assert np.isnan(found.means[index])
            continue
        assert found.means[index] == pytest.approx(pick.mean())
        assert found.percentiles[index] == pytest.approx(np.quantile(pick, (0.5, 0.95, 0.99)))


def test_intervals_of_many_flows_are_reckoned_in_little_memory() -> None:
    """1000 resamples of 100,000 times, kept, are 800 MB."""
    flows = 100_000
    completion = Completion((np.linspace(1.0, 2.0, flows),))
    tracemalloc.start()
    try:
        completion.resampled(Resamples((flows,), (1,), 100))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 80e6
