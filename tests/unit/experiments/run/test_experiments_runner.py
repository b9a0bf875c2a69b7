"""The runner's pure parts; what it does with a real fabric is tested in tests/lab."""

import json
from dataclasses import replace

import pytest

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from controller.api.bodies import RunBody
from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run
from experiments.results.notices import fabric_notices, types_notices
from experiments.results.outcome import OutcomeError, join
from experiments.results.run_record import rotated, run_body
from experiments.run.deployment import scheme_body
from experiments.run.experiment import learns_types, prove_agents_saw
from experiments.run.progress import RunProgress, Steps
from experiments.run.run_events import clock_notice, fabric_changes, gap_notice, path_splits, types_learnt
from experiments.spec.check import find_spec, load
from experiments.spec.spec import SchemeChoice, Spec, fabric_words
from plain.reading import build
from tests.unit.sent_flows import sent


def spec_demo() -> Spec:
    path = find_spec("demo")
    return load(path.read_text(), str(path), ["ecmp", "rps", "caps"])


def a_run() -> Run:
    plan = spec_demo().plan(0)
    outcomes = join(plan, sent(plan, lambda flow: 0.1), [], [])
    return Run("caps", "caps", 0, plan.digest(), 12.0, outcomes, CpuUse(0.5, 0.4, None, 0.1, False))


def test_every_scheme_is_first_in_turn() -> None:
    schemes = tuple(SchemeChoice(name, name) for name in ("a", "b", "c"))
    assert [[choice.name for choice in rotated(schemes, repeat)] for repeat in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_splits_of_paths_are_kept_with_the_run() -> None:
    split = {"kind": "partition-changed", "low_latency": [1, 2], "throughput": [3], "share": 0.6}
    events = [
        {"at": 99.5, **split},
        {"at": 100.0, "kind": "link-down"},
        {"at": 101.25, **split},
        {"at": 113.0, **split},
    ]
    kept = path_splits(events, 100.0, 12.0)
    assert [one["at_s"] for one in kept] == [-0.5, 1.25]
    assert kept[0] == {"at_s": -0.5, "low_latency": [1, 2], "throughput": [3], "share": 0.6}
    run = replace(a_run(), splits=kept)
    assert run_body(run, 7, 1e9)["measures"]["path_splits"] == list(kept)


def test_a_run_whose_first_events_are_gone_says_so() -> None:
    kept = [{"cursor": cursor} for cursor in range(11, 15)]
    assert gap_notice(kept, 10, "caps", 0) == gap_notice([], 10, "caps", 0) == ""
    assert gap_notice(kept, 3, "caps", 1).startswith(
        "caps's run 2 had more events than the controller keeps: the first 7"
    )


def test_a_run_during_which_the_clock_was_set_says_so() -> None:
    assert [clock_notice(moved_s, "caps", 0) for moved_s in (0.0, 0.05, -0.05)] == ["", "", ""]
    assert clock_notice(-3.04, "caps", 2).startswith(
        "the machine's clock was set by -3.0 s during caps's run 3: "
    )


def test_a_link_that_went_during_a_run_is_reported() -> None:
    events = [
        {"at": 99.0, "kind": "link-up", "link": "l1-s1"},
        {"at": 103.25, "kind": "link-down", "link": "l1-s2", "cause": "no LLDP"},
        {"at": 104.0, "kind": "host-moved", "host": "h1"},
        {"at": 104.5, "kind": "link-up", "link": "l1-s2"},
        {"at": 112.5, "kind": "switch-down", "switch": "s1"},
    ]
    changes = fabric_changes(events, 100.0, 12.0)
    assert [(one["at_s"], one["kind"], one["name"], one["cause"]) for one in changes] == [
        (3.25, "link-down", "l1-s2", "no LLDP"),
        (4.5, "link-up", "l1-s2", None),
    ]
    run = replace(a_run(), changes=changes)
    assert run_body(run, 7, 1e9)["measures"]["fabric_changes"] == list(changes)
    (notice,) = fabric_notices("ecmp", 0, changes)
    assert notice == (
        "the fabric changed during ecmp's run 1: link l1-s2 down at 3.2 s (no LLDP), and 1 more; "
        "flows took other paths meanwhile"
    )
    assert fabric_notices("ecmp", 0, ()) == []


def test_a_run_reports_when_types_of_flows_were_known_and_the_result_if_that_was_late() -> None:
    said = {"kind": "types-learnt", "flows": 900, "unknown_flows": 3, "seconds": 0.4}
    events = [
        {**said, "at": 98.0, "features": (), "types": 0, "sent": True},
        {**said, "at": 103.5, "features": ["destination_port"], "types": 4, "sent": True},
        {**said, "at": 105.5, "features": ["destination_port"], "types": 4, "sent": False},
        {**said, "at": 130.0, "features": ["source"], "types": 2, "sent": True},
    ]
    learnt = types_learnt(events, 100.0, 12.0)
    assert [(one["at_s"], one["types"]) for one in learnt] == [(-2.0, 0), (3.5, 4)]
    assert types_notices("tpfs", 1, learnt, 4.0) == []
    (late,) = types_notices("tpfs", 1, learnt, 3.0)
    assert late.startswith("tpfs's run 2: types of flows were at 3.5 s known, and flows count from 3.0 s on")
    (never,) = types_notices("tpfs", 0, (), 3.0)
    assert "never known" in never
    assert learns_types({"priority": {"prediction": {"interval_s": 1.0}}})
    assert not any(map(learns_types, ({}, {"priority": None}, {"priority": {"prediction": None}})))


def test_flows_of_the_lead_in_are_in_no_body_of_a_run() -> None:
    run = a_run()
    run = replace(
        run, flows=tuple(replace(flow, counted=index % 2 == 0) for index, flow in enumerate(run.flows))
    )
    sent = [flow["flow"] for flow in run_body(run, 7, 1e9)["flows"]]
    assert sent == [flow.id for flow in run.flows[::2]]


def test_a_run_is_what_the_controllers_api_reads() -> None:
    run = a_run()
    plain = json.loads(json.dumps(run_body(run, 7, 1e9), allow_nan=False))
    body = build(RunBody, plain, "body")
    assert len(body.flows) == len(run.flows)
    assert body.flows[-1].finished_s == pytest.approx(run.flows[-1].planned_s + 0.1)
    assert body.flows[0].finished_s is None
    assert body.measures["short"] == {"n": len(spec_demo().plan(0).sized), "afct_ms": pytest.approx(100)}


def test_a_finished_flow_that_no_agent_saw_makes_the_run_no_result() -> None:
    run = a_run()
    with pytest.raises(OutcomeError, match="finished flows are missing in the agents' reports"):
        prove_agents_saw(run.flows)
    prove_agents_saw(tuple(replace(flow, packets=3, paths={"1": 3}) for flow in run.flows))


def test_progress_counts_down_to_nothing() -> None:
    seen: list[RunProgress] = []
    spec = spec_demo()
    steps = Steps([spec], seen.append)
    steps.stage("building")
    whole = seen[-1].left_s
    assert whole is not None
    runs = spec.repeats * len(spec.schemes)
    assert whole > sum(plan.window_s[1] for plan in steps.plans[0]) * len(spec.schemes)
    left = []
    for number in range(1, runs + 1):
        steps.begin_run("caps", steps.plans[0][(number - 1) // len(spec.schemes)])
        left.append(seen[-1].left_s)
        steps.flows(5, 1)
        assert (seen[-1].finished, seen[-1].failed, seen[-1].flows) == (5, 1, len(steps.plans[0][0].sized))
        steps.end_run(1.0)
    assert left == sorted(left, reverse=True)
    assert seen[-1].run == seen[-1].runs == runs
    steps.stage("computing")
    assert seen[-1].left_s == 0


def test_a_scheme_of_the_users_is_sent_whole() -> None:
    assert scheme_body("caps") == "caps"
    body = scheme_body("controller/schemes/caps.yaml")
    assert isinstance(body, dict)
    assert body["long"]["by_mode"] == {"on": "hash", "off": "spray"}


def test_a_fabric_is_said_in_words() -> None:
    rate = spec_demo().fabric.link.rate_mbps
    assert fabric_words(spec_demo()) == f"2 leaves x 16 spines, 8 hosts, links of {rate:g} Mbit/s"


def test_a_controller_that_is_not_there_is_an_error_with_its_address() -> None:
    with (
        ControllerClient("http://127.0.0.1:9") as client,
        pytest.raises(ControllerError, match=r"127\.0\.0\.1:9"),
    ):
        client.health()
