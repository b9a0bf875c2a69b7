"""A run that is kept and sent again is the run that was made, whatever fields it has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engine.finished_runs import finished_run
from engine.submitted_record import SubmittedRecord
from experiments.results.admissions import Admissions
from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run, machine
from experiments.results.outcome import FlowOutcome, OutcomeError
from experiments.results.run_record import run_body
from experiments.run.progress import Steps
from experiments.spec.spec import spec_from_dict
from tests.unit.api_world import api_world
from workloads.plan import Plan

FLOWS = {"workload.flows.count": 20, "workload.flows.lead_in_s": 0.5}
SUBMISSION: dict[str, Any] = {"preset": "small", "schemes": ["ecmp"], "set": FLOWS}


def reported(kind: Any, number: int) -> Any:
    """Return a value of a field of this type that is not its default."""
    text = str(kind)
    if "str" in text:
        return f"v{number}"
    if "bool" in text:
        return True
    return number + 0.5 if "float" in text else number


def outcome(plan: Plan, index: int) -> FlowOutcome:
    planned = plan.flows[index]
    values = {
        one.name: reported(one.type, 10 * index + number)
        for number, one in enumerate(dataclasses.fields(FlowOutcome))
    }
    own = {name: getattr(planned, name) for name in ("id", "traffic_class", "application", "counted")}
    fixed = {"state": "finished", "source": "h1", "destination": "h2", "paths": {"1": 5, "2": 7}}
    return FlowOutcome(**{**values, **own, **fixed, "fct_s": 0.5, "started_s": 0.25})


def whole_run(plan: Plan) -> Run:
    counted = tuple(outcome(plan, index) for index, one in enumerate(plan.flows) if one.counted)
    cpu = CpuUse(
        **{one.name: reported(one.type, number) for number, one in enumerate(dataclasses.fields(CpuUse))}
    )
    return Run(
        label="ecmp",
        scheme="ecmp",
        repeat=0,
        plan=plan.digest(),
        duration_s=2.5,
        flows=counted,
        cpu=cpu,
        modes=({"at_s": 0.5, "leaf": "l1", "mode": "on", "cause": "first-packet"},),
        splits=({"at_s": -1.0, "leaf": "l1", "low": [1]},),
        changes=({"at_s": 0.75, "kind": "link-down", "what": "l1-s1"},),
        types=({"at_s": 0.1, "types": 3},),
        run_id=1,
        disturbed=({"at_s": 1.0, "part": "agent h1", "how": "signal 9", "after_s": 0.4},),
        repeated=2,
        limited_before=1,
        notices=("the machine's clock was set",),
        drops={"leaf to spine": 3},
        admitted=Admissions(3, 1, 4, 250.0, None),
    )


def test_every_field_of_a_run_comes_back(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        number = world.ask("POST", "/experiments", 201, json=SUBMISSION)["id"]
        claimed = world.ask("POST", "/engine/claims", json={"worker": "w@here:1"})["claim"]
        spec = spec_from_dict(claimed["spec"])
        plan = Steps([spec], lambda progress: None).plans[0][0]
        run = whole_run(plan)
        for one in dataclasses.fields(Run):
            if one.default is not dataclasses.MISSING and one.name != "not_counted":
                assert getattr(run, one.name) != one.default, f"{one.name}: say something of it here, too"
        body = run_body(run, spec.seed, 100.0)
        modes = {"modes": list(run.modes), "attempt": claimed["attempt"]}
        added = world.ask("POST", f"/experiments/{number}/runs", 201, json={**body, **modes})
        [kept] = world.get(f"/experiments/{number}/results")["runs"]
        flows = world.get(f"/experiments/{number}/flows?run={added['id']}")["flows"]
        kept_modes = world.get(f"/experiments/{number}/modes?run={added['id']}")["modes"]
        left_out = len(plan.flows) - len(run.flows)
        assert left_out > 0, "flows before the first that counts"
        again = finished_run(kept, flows, kept_modes, plan)
        assert again == dataclasses.replace(run, run_id=added["id"], not_counted=left_out)


SPEC = {"name": "x", "title": "X", "fabric": {"leaves": 2}, "schemes": ["ecmp"], "workload": {"flows": {}}}


class Kept:
    """A controller that has a run of another version, or of another machine."""

    def __init__(self, run: dict[str, Any], made_on: dict[str, Any] | None = None) -> None:
        self._run = run
        self._versions: dict[str, Any] = {"capstan": "0.1.0"}
        self._machine = made_on or machine()

    def results(self, _: int) -> dict[str, Any]:
        experiment = {"versions": self._versions, "machine": self._machine}
        return {"runs": [self._run], "experiment": experiment}

    def equip(self, _: int, __: int, versions: dict[str, Any], machine: dict[str, Any]) -> None:
        self._versions, self._machine = versions, machine

    def flows_of(self, *_: int) -> list[dict[str, Any]]:
        return []

    def modes_of_run(self, *_: int) -> list[dict[str, Any]]:
        return []


def claim_of(attempt: int, runs: int, simulated: bool = False) -> dict[str, Any]:
    kept = [{"run": run} for run in range(runs)]
    return {"experiment": 1, "attempt": attempt, "simulated": simulated, "kept": kept}


@pytest.mark.parametrize(("kept", "version", "said"), [(1, "0.2.0", 1), (1, "0.1.0", 0), (0, "0.2.0", 0)])
def test_a_result_of_two_versions_says_so(kept: int, version: str, said: int) -> None:
    claim = claim_of(2, kept)
    record = SubmittedRecord(Kept({}), claim)  # type: ignore[arg-type]
    record.begin(spec_from_dict(SPEC), {"capstan": version})
    record.finish({"notices": ["as before"]})
    first, *others = record.summary["notices"]
    assert first == "as before"
    assert len(others) == said
    assert all(
        "1 runs were kept from an earlier attempt by Capstan 0.1.0; the others are by 0.2.0" in x
        for x in others
    )


@pytest.mark.parametrize("simulated", [False, True])
def test_a_result_of_two_machines_says_so_unless_it_was_simulated(
    monkeypatch: pytest.MonkeyPatch, simulated: bool
) -> None:
    """Also at a third attempt, which is on the machine of the second."""
    controller = Kept({}, {"cores": 4, "processor": "x86_64"})
    monkeypatch.setattr("engine.submitted_record.machine", lambda: {"cores": 8, "processor": "x86_64"})
    for attempt, runs in ((2, 2), (3, 3)):
        record = SubmittedRecord(controller, claim_of(attempt, runs, simulated))  # type: ignore[arg-type]
        record.begin(spec_from_dict(SPEC), {"capstan": "0.1.0"})
        record.finish({"notices": []})
        said = "2 runs were kept from an earlier attempt with cores 4 in place of 8: submit it anew"
        assert record.summary["notices"] == ([] if simulated else [f"{said} for runs that are alike in this"])


def test_a_third_attempt_knows_by_which_version_runs_of_the_first_were_made() -> None:
    controller = Kept({})
    for attempt, runs in ((2, 2), (3, 3)):
        claim = claim_of(attempt, runs)
        record = SubmittedRecord(controller, claim)  # type: ignore[arg-type]
        record.begin(spec_from_dict(SPEC), {"capstan": "0.2.0"})
        record.finish({"notices": []})
        (notice,) = record.summary["notices"]
        assert notice.startswith("2 runs were kept from an earlier attempt by Capstan 0.1.0; the others")


@pytest.mark.parametrize(
    "run",
    [
        {"id": 7, "repeat": 0},
        {"id": 7, "repeat": 5, "measures": {}},
        {
            "id": 7,
            "repeat": 0,
            "measures": {},
            "label": "a",
            "scheme": "a",
            "cpu": {"load": 1},
            "started_at": 0.0,
        },
    ],
)
def test_a_run_that_another_version_kept_fails_the_attempt_in_words(run: dict[str, Any]) -> None:
    claim = claim_of(2, 1)
    record = SubmittedRecord(Kept(run), claim)  # type: ignore[arg-type]
    with pytest.raises(
        OutcomeError, match=r"run 7 of an earlier attempt cannot be gone on from: .*; .*submit"
    ):
        list(record.finished_runs([Plan((), (0.0, 1.0))]))
