"""Goals are stated for a machine: what a figure says on one, and how it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.busy import idle_figure, idle_percent, sampled
from benchmarks.figures import Figure, Goal, document, goal_words, verdict, verdict_notes
from experiments.results.cpu_use import CpuSample

FOUR = Goal(40.0, cores=4)


@pytest.mark.parametrize(
    ("value", "goal", "cores", "met", "words", "said"),
    [
        (41.2, FOUR, 2, None, "<= 40 on 4 cores", "no verdict"),
        (39.0, FOUR, 2, None, "<= 40 on 4 cores", "no verdict"),
        (41.2, FOUR, 4, False, "<= 40 on 4 cores", "NO"),
        (39.0, FOUR, 8, True, "<= 40 on 4 cores", "yes"),
        (41.2, (FOUR, Goal(60.0, cores=2)), 2, True, "<= 60 on 2 cores", "yes"),
        (41.2, (Goal(60.0, cores=2), FOUR), 6, False, "<= 40 on 4 cores", "NO"),
        (41.2, (FOUR, Goal(60.0, cores=2)), 1, None, "<= 60 on 2 cores", "no verdict"),
        (41.2, 50.0, 1, True, "<= 50", "yes"),
        (41.2, None, 1, None, "", ""),
    ],
)
def test_a_goal_is_judged_on_the_machine_that_it_is_stated_for(
    value: float,
    goal: Goal | tuple[Goal, ...] | float | None,
    cores: int,
    met: bool | None,
    words: str,
    said: str,
) -> None:
    figure = Figure(value, "ms", goal)
    assert figure.met(cores) is met
    data = json.loads(json.dumps(figure.to_dict(cores)))
    assert (goal_words(data), verdict(data)) == (words, said)
    notes = verdict_notes([data], cores)
    expected = f"no verdict on goals for {data['goal_cores']} cores: this machine has {cores}"
    assert notes == ([expected] if said == "no verdict" else [])


@given(value=st.floats(-1e6, 1e6), goal=st.floats(-1e6, 1e6), higher=st.booleans())
def test_a_bound_can_meet_a_goal_and_cannot_miss_it(value: float, goal: float, higher: bool) -> None:
    better = "higher" if higher else "lower"
    exact = Figure(value, "ms", goal, better)  # type: ignore[arg-type]
    bound = Figure(value, "ms", goal, better, bound=True)  # type: ignore[arg-type]
    assert exact.met(2) is (value >= goal if higher else value <= goal)
    assert bound.met(2) is (True if exact.met(2) else None)
    if not exact.met(2):
        assert verdict(bound.to_dict(2)) == "no verdict"
        assert "at most" in verdict_notes([bound.to_dict(2)], 2)[0]


def test_the_document_judges_on_the_cores_that_this_process_may_use() -> None:
    made = document(
        {"here": Figure(1.0, "ms", Goal(2.0, cores=1)), "elsewhere": Figure(1.0, "ms", Goal(2.0, 4096))}
    )
    assert made["machine"]["cores"] >= 1
    assert made["figures"]["here"]["met"] is True
    assert made["figures"]["elsewhere"]["met"] is None
    assert made["figures"]["elsewhere"]["goal_cores"] == 4096


def test_the_idle_share_is_that_of_all_blocks_together() -> None:
    def at(idle_s: float, total_s: float) -> CpuSample:
        return CpuSample(0.0, idle_s, total_s, None)

    assert idle_percent([(at(0, 0), at(1, 2)), (at(10, 100), at(10, 106))]) == pytest.approx(12.5)
    assert idle_percent([]) == 0.0
    assert idle_figure(at(0, 0), at(1, 2), 2).value == 50.0
    samples: list[tuple[CpuSample, CpuSample]] = []
    with sampled(samples):
        Path("/proc/stat").read_text()
    ((before, after),) = samples
    assert after.total_s >= before.total_s
