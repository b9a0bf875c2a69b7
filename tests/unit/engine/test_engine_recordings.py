"""Recordings of runs on switches: asked for at a submission, kept with their runs, played again."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.lab_runs import recorder_of
from engine.recordings import kept_run
from experiments.results.packet_trace import PacketTrace, parse_trace, trace_bytes
from experiments.results.run_record import recording_body
from experiments.run.capture import CaptureError, LabRecorder, RecordedRun, Taken, first_short_ms
from experiments.spec.spec import spec_from_dict
from tests.lab.engine_server import TINY
from tests.unit.api_world import World, api_world
from tests.unit.experiments.results.test_captured_trace import BEGIN_NS, LINKS, MONOTONIC_NS, Way
from workloads.plan import Plan, PlannedFlow

SPEC = spec_from_dict(TINY)
PLAN = SPEC.plan(0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as found:
        yield found


def recorded(recorder: LabRecorder, label: str) -> PacketTrace:
    """Return the trace of a run in which one packet crossed the fabric 20 ms after the window's begin."""
    frames = Way(20_000_000, "s1", (1_000_000,) * 4, 4).frames(1)
    taken = Taken(LINKS, frames, BEGIN_NS, BEGIN_NS + 10**9, MONOTONIC_NS, cut=False)
    recorder.take(taken, RecordedRun(SPEC, label, 0, PLAN, ()))
    assert recorder.trace is not None, recorder.problem
    return recorder.trace


def run_body(label: str, attempt: int, trace: PacketTrace | None, repeat: int = 0) -> dict[str, Any]:
    run = {"scheme": label, "repeat": repeat, "seed": 1, "started_at": 100.0, "measures": {}, "modes": []}
    return run | {"attempt": attempt} | recording_body(trace)


def submitted(world: World, **body: Any) -> tuple[str, Any]:
    """Submit TINY; return its path, and what a worker claims of it."""
    made = world.ask("POST", "/experiments", 201, json={"spec": TINY, **body})
    claimed = world.ask("POST", "/engine/claims", json={"worker": "w@here:1"})["claim"]
    assert claimed["experiment"] == made["id"]
    assert claimed["record"] == made["record"]
    return f"/experiments/{made['id']}", claimed


def test_what_was_recorded_is_served_as_it_was_and_shown_with_its_run(world: World) -> None:
    path, claimed = submitted(world, record={})
    assert claimed["record"] == {"from_ms": None, "for_ms": 1000.0}
    trace = recorded(LabRecorder(180.0, 1000.0), "caps")
    world.ask("POST", f"{path}/runs", 201, json=run_body("ecmp", 1, None))
    world.ask("POST", f"{path}/runs", 201, json=run_body("caps", 1, trace))
    again = world.ask("POST", f"{path}/runs", 201, json=run_body("caps", 1, trace))
    window = {
        "from_ms": trace.begin_ps / 1e9,
        "for_ms": 1000.0,
        "hops": len(trace.hops["packet"]),
        "cut": False,
    }
    assert again["recording"] == window, "reported twice, kept once"
    assert [run["recording"] for run in world.get(path)["runs"]] == [None, window]
    answer = world.client.get(f"/api/v1{path}/recording?scheme=caps")
    assert (answer.status_code, answer.mimetype) == (200, "application/gzip")
    assert answer.data == trace_bytes(trace)
    assert parse_trace(answer.data) == parse_trace(trace_bytes(trace))
    why = world.ask("GET", f"{path}/recording?scheme=ecmp", 409)["detail"]
    assert "no recording of run 1 of ecmp: it has those of run 1 of caps" in why


def test_a_recording_outlives_its_controller(tmp_path: Path) -> None:
    trace = recorded(LabRecorder(180.0, 1000.0), "caps")
    with api_world(tmp_path) as world:
        path, _ = submitted(world, record={})
        world.ask("POST", f"{path}/runs", 201, json=run_body("caps", 1, trace))
    with api_world(tmp_path) as world:
        assert world.client.get(f"/api/v1{path}/recording?scheme=caps").data == trace_bytes(trace)


def test_where_nothing_was_recorded_it_is_said_what_to_do(world: World) -> None:
    path, _ = submitted(world)
    world.ask("POST", f"{path}/runs", 201, json=run_body("caps", 1, None))
    why = world.ask("GET", f"{path}/recording?scheme=caps", 409)["detail"]
    assert "begin it again with 'Record packets'" in why


@pytest.mark.parametrize(
    ("state", "words"),
    [("finished", "the notes of its result say why"), ("running", "is running, and no run")],
)
def test_where_a_recording_was_asked_for_it_is_said_why_there_is_none(state: str, words: str) -> None:
    experiment = {"id": 3, "kind": "experiment", "state": state, "runs": [], "record": {"for_ms": 1.0}}
    assert words in str(kept_run(experiment, "caps", 1))


@pytest.mark.parametrize("file", ["", "H4s", "no base64!", b64encode(b"plain").decode()])
def test_a_recording_that_is_none_is_refused(world: World, file: str) -> None:
    path, _ = submitted(world, record={})
    body = run_body("caps", 1, recorded(LabRecorder(180.0, 1000.0), "caps"))
    body["recording"]["file"] = file
    problem = world.ask("POST", f"{path}/runs", 422, json=body)
    assert problem["field"] == "body.recording.file"
    assert world.get(path)["runs"] == [], "all or nothing"


@pytest.mark.parametrize(
    ("record", "field"),
    [({"for_ms": 0}, "for_ms"), ({"for_ms": 1e7}, "for_ms"), ({"from_ms": -1}, "from_ms")],
)
def test_a_window_has_bounds(world: World, record: dict[str, float], field: str) -> None:
    problem = world.ask("POST", "/experiments", 422, json={"spec": TINY, "record": record})
    assert problem["field"] == f"body.record.{field}"
    assert " ms" in problem["detail"] or "negative" in problem["detail"]


def test_the_notes_name_every_scheme_that_was_recorded_and_why_another_was_not() -> None:
    recorder = recorder_of({"record": {"from_ms": 180.0, "for_ms": 1000.0}})
    assert recorder is not None
    assert recorder.notices() == []
    recorded(recorder, "ecmp")
    recorder.take(
        Taken(LINKS, (), BEGIN_NS, BEGIN_NS + 10**9, MONOTONIC_NS, cut=False),
        RecordedRun(SPEC, "rps", 0, PLAN, ()),
    )
    assert recorder.trace is None
    assert isinstance(recorder.problem, CaptureError)
    recorded(recorder, "caps")
    missing, made = recorder.notices()
    assert "run 1 of rps was not recorded packet by packet: no packet was under way" in missing
    assert "run 1 of ecmp, caps was recorded packet by packet" in made
    assert recorder_of({"record": None}) is None


def flow(number: int, start_s: float, traffic_class: Any, size: int | None) -> PlannedFlow:
    return PlannedFlow(number, "h1", "h2", 20000 + number, start_s, size, traffic_class)


def test_a_window_begins_just_before_the_first_short_flow() -> None:
    flows = (flow(0, 0.0, "long", None), flow(1, 0.25, "long", 10**6), flow(2, 0.4567, "short", 1000))
    plan = Plan(flows, (0.2, 1.0))
    begin_ms = first_short_ms(plan)
    assert 0 < 456.7 - begin_ms < 50
    assert begin_ms == int(begin_ms)
    assert first_short_ms(replace(plan, flows=flows[:2])) == 0.0
    assert first_short_ms(replace(plan, flows=(flow(0, 0.001, "short", 1000),))) == 0.0
