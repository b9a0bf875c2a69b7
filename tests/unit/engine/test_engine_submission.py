"""What is submitted: every form of it is the same spec, and whatever is wrong is said with its field."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.estimate import BRING_UP_S, expected_s
from engine.requested_spec import MOST_BYTES
from engine.submission import preset_submission, read_submission
from engine.submission_bodies import RecordBody, SubmissionBody, SubmissionError
from experiments.spec.check import preset_names
from experiments.spec.spec import spec_from_dict

SMALL = Path("experiments/presets/small.yaml").read_text()


def wrong(**body: Any) -> list[tuple[str, str, int]]:
    with pytest.raises(SubmissionError) as caught:
        read_submission(SubmissionBody(**body))
    return [(one.field, one.message, one.line) for one in caught.value.problems]


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_submitted(name: str) -> None:
    simulated = preset_submission(name).job.simulated
    found = read_submission(SubmissionBody(preset=name, kind="simulation" if simulated else "experiment"))
    assert found.job.runs > 0
    assert found.job.simulated == simulated
    assert found.job.estimated_s > (0 if simulated else BRING_UP_S)
    assert sum(point.runs for point in found.points) in (0, found.job.runs)
    assert spec_from_dict(found.job.spec) == found.spec


def test_preset_text_and_object_are_the_same_experiment() -> None:
    jobs = [
        read_submission(body).job
        for body in (
            SubmissionBody(preset="small"),
            SubmissionBody(text=SMALL),
            SubmissionBody(spec=yaml.safe_load(SMALL)),
        )
    ]
    assert jobs[0].spec == jobs[1].spec == jobs[2].spec
    assert jobs[0].text == SMALL, "as its author wrote it"


@pytest.mark.parametrize(
    ("asked", "added"),
    [
        ({}, ""),
        ({"schemes": ["caps", "rps", "ecmp"]}, ""),
        ({"schemes": ["ecmp"]}, " (only ecmp)"),
        ({"schemes": ["drb", "caps"]}, " (only drb, caps)"),
        ({"schemes": ["drb", "caps", "rps", "ecmp", "presto"]}, " (only 5 schemes)"),
        ({"schemes": ["all"]}, " (all schemes)"),
    ],
)
@pytest.mark.parametrize("sweep", [None, {"workload.flows.count": [4, 8]}])
def test_the_title_says_which_schemes_run(asked: dict[str, Any], added: str, sweep: Any) -> None:
    own = read_submission(SubmissionBody(preset="small")).spec.title
    submission = read_submission(SubmissionBody(preset="small", sweep=sweep, **asked))
    assert submission.job.title == submission.spec.title == own + added
    assert all(point.title.startswith(own + added) for point in submission.points)


def test_a_title_that_is_asked_for_is_the_title() -> None:
    body = SubmissionBody(preset="small", schemes=["ecmp"], set={"title": "Hashing alone"})
    assert read_submission(body).spec.title == "Hashing alone"


def test_what_is_asked_for_differs_and_all_else_stays() -> None:
    body = SubmissionBody(
        preset="small",
        name="mine",
        seed=7,
        repeats=3,
        schemes=["rps", "caps"],
        set={"workload.flows.count": 9, "warm_up_s": 0.25},
    )
    spec, base = read_submission(body).spec, read_submission(SubmissionBody(preset="small")).spec
    flows = dataclasses.replace(base.workload.flows, count=9)
    assert (spec.name, spec.seed, spec.repeats, spec.warm_up_s) == ("mine", 7, 3, 0.25)
    assert [choice.label for choice in spec.schemes] == ["rps", "caps"]
    assert spec.baseline == "rps"
    assert spec.workload == dataclasses.replace(base.workload, flows=flows)
    assert spec.fabric == base.fabric
    assert read_submission(SubmissionBody(text=read_submission(body).text)).spec == spec


def test_axes_whose_fields_end_alike_have_labels_of_their_own() -> None:
    rates = {"fabric.link.rate_mbps": [2, 3], "fabric.access.rate_mbps": [5, 9], "seed": [1]}
    spec = read_submission(SubmissionBody(preset="small", sweep=rates)).spec
    assert [axis.label for axis in spec.sweep] == ["fabric link rate mbps", "fabric access rate mbps", "seed"]
    assert len({axis.fields for axis in spec.sweep}) == 3


def test_baseline_and_claims_of_the_request_stay_beside_schemes_of_the_request() -> None:
    claim = {"text": "sooner", "compare": {"measure": "short-mean", "scheme": "caps", "against": "ecmp"}}
    claim["compare"]["at_most"] = 1  # type: ignore[index]
    spec = read_submission(
        SubmissionBody(
            preset="demo",
            schemes=["ecmp", "caps"],
            set={"baseline": "caps", "claims": [claim], "schemes": ["rps"]},
        )
    ).spec
    assert [choice.name for choice in spec.schemes] == ["ecmp", "caps"]
    assert spec.baseline == "caps"
    assert [one.text for one in spec.claims] == ["sooner"]
    lost = wrong(preset="demo", schemes=["ecmp", "caps"], set={"schemes.1.overrides": {"mode": None}})
    assert lost == [("set.schemes.1.overrides", "is not a field of this spec", 0)], (
        "and not left out silently"
    )


def test_other_schemes_beside_a_sweep_over_fields_of_a_spec_s_own_need_a_sweep() -> None:
    asked: dict[str, Any] = {"preset": "capton-fig9", "schemes": ["hyline", "pias"], "kind": "simulation"}
    ((field, said, _),) = wrong(**asked)
    assert field == "schemes"
    assert said.startswith(
        "the spec's sweep sets 'schemes.1.overrides.admission.load', of its own schemes: leave"
    )
    sweep = {"workload.flows.arrivals.load": [0.43, 0.57]}
    body = SubmissionBody(sweep=sweep, **asked)
    assert len(read_submission(body, lambda spec, links: "").points) == 2


def test_a_sweep_is_a_point_for_each_combination_and_the_last_axis_runs_fastest() -> None:
    sweep = {"workload.flows.arrivals.rate_per_s": [6, 12], "fabric.spines": [2, 4]}
    found = read_submission(SubmissionBody(preset="small", sweep=sweep, repeats=2))
    assert [point.at for point in found.points] == [(6, 2), (6, 4), (12, 2), (12, 4)]
    assert found.points[1].words == "rate per s = 6, spines = 4"
    assert found.job.runs == 4 * 3 * 2
    assert [point.spec["fabric"]["spines"] for point in found.points] == [2, 4, 2, 4]
    keys = [point.fabric for point in found.points]
    assert keys[0] == keys[2] != keys[1] == keys[3], "one lab for each fabric"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "", "exactly one of spec, text, preset"),
        ({"preset": "small", "text": SMALL}, "", "exactly one of"),
        ({"preset": "smal"}, "preset", "did you mean 'small'"),
        ({"preset": "../small"}, "preset", "is not known"),
        ({"preset": "small", "set": {"workload.flows.cout": 3}}, "preset.workload.flows.cout", "'count'"),
        ({"preset": "small", "set": {"name.first": 3}}, "set.name.first", "is not a field"),
        ({"preset": "small", "schemes": ["capz"]}, "preset.schemes[0]", "did you mean 'caps'"),
        ({"preset": "small", "schemes": ["/etc/shadow.yaml"]}, "preset.schemes[0]", "is a file"),
        ({"preset": "small", "schemes": ["no/such/file.yaml"]}, "preset.schemes[0]", "is a file"),
        (
            {
                "preset": "small",
                "set": {"schemes": [{"name": "ecmp"}]},
                "sweep": {"schemes.0.name": ["/etc/passwd", "caps"]},
            },
            "preset.sweep",
            "'/etc/passwd' is a file",
        ),
        (
            {"preset": "small", "sweep": {"schemes": [["ecmp", "/etc/x.yaml"], ["caps"]]}},
            "preset.sweep",
            "is a file",
        ),
        ({"preset": "small", "set": {"schemes.0": "/etc/passwd"}}, "preset.schemes[0]", "is a file"),
        ({"preset": "small", "set": {"x." * 100_000 + "y": 1}}, f"set.{'x.' * 50}", "is not a field"),
        (
            {"preset": "small", "set": {"description": "x" * 500_000}, "sweep": {"seed": list(range(20))}},
            "preset",
            "too large for a sweep of 20 points",
        ),
        (
            {"preset": "small", "set": {"claims": [{}] * 50_000}, "sweep": {"seed": list(range(20))}},
            "preset",
            "too large for a sweep of 20 points",
        ),
        ({"preset": "small", "sweep": {"seed": []}}, "preset.sweep[0].values", "at least"),
        ({"preset": "small", "sweep": {"seed": list(range(201))}}, "preset.sweep", "more than 200"),
        ({"preset": "small", "sweep": 3}, "preset.sweep", "list"),
        (
            {"preset": "small", "repeats": 20, "sweep": {"seed": list(range(200))}},
            "preset",
            "more than 10000 runs",
        ),
        ({"preset": "small", "kind": "simulation", "record": RecordBody()}, "record", "is for runs in a lab"),
        (
            {"preset": "small", "sweep": {"seed": list(range(11))}, "record": RecordBody()},
            "record",
            "is for 32 runs at most, one of each scheme at each point, and these are 33",
        ),
        ({"text": ""}, "text", "is empty"),
        ({"text": "["}, "text", "is not YAML"),
        ({"text": "[" * 100_000}, "text", "nested too deeply"),
        ({"text": "- " * 100_000}, "text", "nested too deeply"),
        ({"text": "x: 1\n" * (MOST_BYTES // 5 + 1)}, "text", "longer than 1024 KiB"),
        ({"spec": {"name": "x"}}, "spec", "'fabric' is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(body: dict[str, Any], field: str, words: str) -> None:
    problems = wrong(**body)
    assert problems[0][0] == field
    assert words in problems[0][1]


def test_a_text_has_lines_and_all_problems_are_reported_at_once() -> None:
    text = SMALL.replace("count: 20", "count: -1").replace("repeats: 1", "repeats: many")
    lines = {field: line for field, _, line in wrong(text=text)}
    assert lines == {
        "text.workload.flows.count": 1 + text[: text.index("count: -1")].count("\n"),
        "text.repeats": 1 + text[: text.index("repeats:")].count("\n"),
    }
    assert {line for _, _, line in wrong(text=text, seed=3)} == {0}, "it is not that text any more"
    assert [line for _, _, line in wrong(text=f"{text}\nseed: [", seed=3)] > [1], "it still is"


def test_a_few_lines_cannot_stand_for_billions_of_values() -> None:
    lines = ["a: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more than 100000 values" in wrong(text="\n".join(lines))[0][1]


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 200), repeats=st.integers(1, 5), rate=st.floats(5, 20))
def test_the_estimate_grows_with_what_is_to_be_done(count: int, repeats: int, rate: float) -> None:
    body = SubmissionBody(preset="small", repeats=repeats, set={"workload.flows.count": count})
    body.set["workload.flows.arrivals.rate_per_s"] = rate
    spec = read_submission(body).spec
    runs = repeats * len(spec.schemes)
    assert expected_s(spec) >= BRING_UP_S + runs * (count / rate + spec.warm_up_s)
    assert expected_s(spec) <= BRING_UP_S + runs * (count / rate + spec.warm_up_s + 6)


@pytest.mark.parametrize("sweep", [None, {"seed": [1, 2]}])
def test_a_window_to_record_is_that_of_all_that_is_queued(sweep: Any) -> None:
    plain = read_submission(SubmissionBody(preset="small", sweep=sweep))
    record = RecordBody(from_ms=400.0, for_ms=50.0)
    asked = read_submission(SubmissionBody(preset="small", sweep=sweep, record=record))
    assert [job.record for job in (plain.job, *plain.points)] == [None] * (1 + len(plain.points))
    window = {"from_ms": 400.0, "for_ms": 50.0}
    assert [job.record for job in (asked.job, *asked.points)] == [window] * (1 + len(plain.points))
    assert asked.text == plain.text, "how a run is watched is no part of its spec"


@pytest.mark.parametrize(
    "item", [{"name": 5}, {"name": None}, {"name": ["ecmp"]}, {"name": "x", "label": {}}, 5]
)
@pytest.mark.parametrize("schemes", [["ecmp"], []])
def test_a_title_is_made_of_whatever_the_schemes_are(item: Any, schemes: list[str]) -> None:
    """The spec's own schemes are replaced, and nothing has checked them."""
    text = yaml.safe_dump(yaml.safe_load(SMALL) | {"schemes": [item, "caps"]})
    if schemes:
        found = read_submission(SubmissionBody(text=text, schemes=schemes))
        assert [choice.name for choice in found.spec.schemes] == schemes
    else:
        assert wrong(text=text, schemes=schemes)
