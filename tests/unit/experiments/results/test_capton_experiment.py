"""What an experiment says of admission: the paper's share of unscheduled flows, counts and latencies of agents."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.capton.fail_safe import CaptonFailSafe, FailSafes
from experiments.results.admissions import AdmissionCount, admission_entry, admission_note
from protocol.latency import COUNTER, MOST, Latencies, bounds_us, bucket_of
from workloads.description import Sizes
from workloads.sizes import TABLES, distribution

THRESHOLD_PACKETS = 10
PRESET_THRESHOLD = 1580


def websearch() -> np.ndarray:
    """Return the table's rows of bytes and cumulative share."""
    lines = (TABLES / "websearch.csv").read_text().splitlines()
    return np.array([list(map(float, line.split(","))) for line in lines if line[0].isdigit()])


def test_the_papers_share_of_unscheduled_flows_follows_from_the_table() -> None:
    """17.9 %, with the table in whole packets of 1500 B as simulators read it; by bytes it is 17.5 %."""
    sizes, shares = websearch().T
    in_packets = np.interp(THRESHOLD_PACKETS, sizes // 1500, shares)
    assert round(100 * float(in_packets), 1) == 17.9
    assert round(100 * float(np.interp(THRESHOLD_PACKETS * 1500, sizes, shares)), 1) == 17.5


def test_the_presets_threshold_leaves_the_papers_share_unscheduled() -> None:
    text = (Path(__file__).parents[4] / "experiments/presets/capton-fig8.yaml").read_text()
    assert text.count(f"admission.threshold_bytes: {PRESET_THRESHOLD}") == 1
    drawn = distribution(Sizes("table", table="websearch", scale=0.1)).sample(
        np.random.default_rng(1), 200_000
    )
    assert float(np.mean(drawn <= PRESET_THRESHOLD)) == pytest.approx(0.179, abs=0.003)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_latency_is_within_its_bucket_and_quantiles_are_no_lower_than_the_truth(
    times: list[float], share: float
) -> None:
    found = Latencies()
    for time in times:
        found.add(time)
        low, high = bounds_us(bucket_of(time))
        assert low <= time * 1e6 <= high * 1.0001 or bucket_of(time) == MOST
    exact = float(np.quantile(times, share, method="inverted_cdf")) * 1e6
    quantile = found.quantile_us(share)
    assert quantile is not None
    assert exact <= quantile * 1.0001
    assert quantile <= max(exact, 1) * 2 ** (1 / 4) * 1.0001 + 2
    again = Latencies.from_counters(
        [found.counters(), {f"{COUNTER}.x": 1, f"{COUNTER}.999": 3, "other.3": 1}]
    )
    assert again.counts == found.counts
    assert len(again.less(found)) == 0


def test_counts_that_no_agent_can_have_are_left_out() -> None:
    said = {f"{COUNTER}.3": 2, f"{COUNTER}.4": -1.0, f"{COUNTER}.5": 1e300, f"{COUNTER}.6": math.nan}
    found = Latencies.from_counters([said, said])
    assert (len(found), found.counts) == (4, {3: 4})


def agents(scheduled: int, late: int, times: list[float]) -> list[dict[str, Any]]:
    measured = Latencies()
    for time in times:
        measured.add(time)
    counted = {"flows_scheduled": scheduled, "flows_unscheduled_by_fail_safe": late, **measured.counters()}
    return [{"host": "h1", "counters": counted}, {"host": "h2", "counters": {"flows_scheduled": 1}}]


def test_a_run_is_described_by_what_agents_counted_meanwhile() -> None:
    nothing = {"episodes": 0, "bytes": 0, "newest": []}
    count = AdmissionCount(agents(10, 1, [0.5]), nothing)
    run = count.until(agents(92, 1, [0.5, 0.001, 0.001, 0.004]), nothing, 30.0)
    assert (run.scheduled, run.unscheduled_by_fail_safe, run.decisions) == (82, 0, 3)
    entry = admission_entry([run], flows=100)
    assert entry is not None
    assert entry["unscheduled_share"] == pytest.approx(0.18)
    assert 1.0 <= entry["decision_median_ms"] < 1.2
    assert 4.0 <= entry["decision_p99_ms"] < 4.8
    note = admission_note("capton", entry, 0)
    assert "0 B retransmitted; 18.0 % of 100 flows left unscheduled" in note
    assert admission_entry([], flows=100) is None


def test_hosts_that_went_unscheduled_are_reported_once_and_anew_after_a_restart() -> None:
    reported = FailSafes()
    name = "flows_unscheduled_by_fail_safe"
    assert reported.changes({"h1": (1, {name: 2.0}), "h2": (5, {})}, 7.0) == [CaptonFailSafe(7.0, "h1", 2)]
    assert reported.changes({"h1": (1, {name: 2.0}), "h2": (5, {})}, 8.0) == []
    assert reported.changes({"h1": (1, {name: 5.0})}, 9.0) == [CaptonFailSafe(9.0, "h1", 3)]
    assert reported.changes({"h1": (2, {name: 1.0})}, 10.0) == [CaptonFailSafe(10.0, "h1", 1)]
