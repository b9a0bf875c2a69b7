"""Whole experiments on a real fabric: invariants of what comes out, and that nothing half-done ever does."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from capstan_client.errors import ControllerError
from experiments.results.document import text_of
from experiments.results.tables import tables
from experiments.run.deployment import Deployment
from experiments.run.experiment import Result
from experiments.run.parts import DeploymentError
from experiments.run.progress import RunProgress
from experiments.run.runner import RunOptions, run_experiment, run_sweep
from experiments.run.traffic import Traffic, TrafficError
from experiments.spec.check import load
from experiments.spec.spec import Axis, Spec
from tests.busy_loops import busy_loops
from tests.lab.lab_processes import pid_of

TEXT = """\
name: tiny
title: Two leaves, four paths, seconds
fabric:
  leaves: 2
  spines: 4
  hosts_per_leaf: 2
  link: {rate_mbps: 10, buffer_packets: 64}
  access: {rate_mbps: 20, buffer_packets: 64}
schemes: [ecmp, rps, caps]
policy: {long.release.packet_times: 8}
workload:
  flows:
    count: 12
    sizes: {kind: uniform, low_bytes: 20000, high_bytes: 90000}
    arrivals: {rate_per_s: 12}
  long_flows: {number: 2}
repeats: 2
seed: 5
warm_up_s: 0.3
timeout_s: 120
"""
FULL_QUEUES = """\
name: full
title: Sprayed long flows leave full queues to the next run, which takes no pause
fabric:
  leaves: 2
  spines: 4
  hosts_per_leaf: 2
  link: {rate_mbps: 2, buffer_packets: 256}
  access: {rate_mbps: 8, buffer_packets: 256}
schemes: [rps, ecmp]
policy: {long.release.packet_times: 32.5}
workload:
  flows:
    count: 4
    sizes: {kind: fixed, bytes: 5000}
    arrivals: {rate_per_s: 8}
  long_flows: {number: 4}
seed: 3
warm_up_s: 1.5
quiet_s: 0
"""
SCHEMES = ["ecmp", "rps", "caps"]


def spec_tiny() -> Spec:
    return load(TEXT, "tiny.yaml", SCHEMES)


def one_scheme(count: int = 12) -> Spec:
    """Return a spec of one run of so many short flows, twelve a second, on the least fabric that has two paths."""
    text = TEXT
    for more, fewer in (
        ("spines: 4", "spines: 2"),
        ("hosts_per_leaf: 2", "hosts_per_leaf: 1"),
        ("number: 2", "number: 1"),
    ):
        assert text.count(more) == 1
        text = text.replace(more, fewer)
    spec = load(text, "tiny.yaml", SCHEMES)
    workload = replace(spec.workload, flows=replace(spec.workload.flows, count=count))
    return replace(spec, schemes=spec.schemes[:1], repeats=1, workload=workload)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, dict[str, Any], list[RunProgress]]:
    """Return the result of one experiment, what the controller kept of it, and the progress that was reported."""
    kept: dict[str, Any] = {}
    seen: list[RunProgress] = []

    def ask(result: Result, deployment: Deployment) -> None:
        kept.update(deployment.client.results(result.experiment))
        run = result.document["runs"][-1]["run_id"]
        kept["modes"] = deployment.client.modes_of_run(result.experiment, run)

    result = run_experiment(
        spec_tiny(),
        TEXT,
        RunOptions(tmp_path_factory.mktemp("results"), on_progress=seen.append, on_result=ask),
    )
    return result, kept, seen


def rows(result: Result) -> list[dict[str, str]]:
    with (result.directory / "flows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def stamps(row: dict[str, str]) -> set[str]:
    return {word.split(":")[0] for word in row["paths"].split()}


Outcome = tuple[Result, dict[str, Any], list[RunProgress]]


def test_every_planned_flow_of_every_run_is_a_record(outcome: Outcome) -> None:
    flows = rows(outcome[0])
    assert len(flows) == 3 * 2 * 14
    for row in flows:
        assert row["state"] == ("finished" if row["size_bytes"] else "background"), row
        assert int(row["packets"]) > 0, "the sending agent counted it"
        assert row["paths"], "the receiving agent saw its paths"
        if row["size_bytes"]:
            assert float(row["fct_s"]) > int(row["size_bytes"]) * 8 / 20e6, "faster than its access link"
            assert int(row["bytes_acked"]) == int(row["size_bytes"])


def test_all_schemes_had_the_same_flows(outcome: Outcome) -> None:
    runs = outcome[0].document["runs"]
    plans = {(run["repeat"], run["plan"]) for run in runs}
    assert len(plans) == 2
    assert [run["scheme"] for run in runs] == ["ecmp", "rps", "caps", "rps", "caps", "ecmp"]


def test_ecmp_keeps_a_flow_on_one_path_and_spraying_uses_all(outcome: Outcome) -> None:
    flows = rows(outcome[0])
    every = set().union(*(stamps(row) for row in flows))
    assert len(every) == 4, "one stamp for each spine"
    for row in flows:
        if row["scheme"] == "ecmp":
            assert len(stamps(row)) == 1, row
        elif row["traffic_class"] == "short":
            assert len(stamps(row)) > 1, row
    for scheme in ("rps", "caps"):
        used = (stamps(row) for row in flows if (row["scheme"], row["traffic_class"]) == (scheme, "short"))
        assert set().union(*used) == every


def test_no_packet_of_a_run_is_counted_in_the_next(tmp_path: Path) -> None:
    """Both have the same ports, and the first one's packets took all paths."""
    flows = rows(run_experiment(load(FULL_QUEUES, "full.yaml", SCHEMES), FULL_QUEUES, RunOptions(tmp_path)))
    assert {len(stamps(row)) for row in flows if row["scheme"] == "rps" and not row["size_bytes"]} == {4}
    assert {len(stamps(row)) for row in flows if row["scheme"] == "ecmp"} == {1}


def test_a_sweep_is_an_experiment_for_each_point_on_one_fabric(tmp_path: Path) -> None:
    axis = Axis("short flows", ("workload.flows.count",), (4, 8))
    up: list[Deployment] = []
    result = run_sweep(replace(one_scheme(4), sweep=(axis,)), TEXT, RunOptions(tmp_path, on_up=up.append))
    assert len(up) == 1, "both points share the fabric"
    assert len(result.experiments) == 2
    assert [point["at"] for point in result.document["points"]] == [[4], [8]]
    assert [point["schemes"]["ecmp"]["short"]["n"] for point in result.document["points"]] == [4, 8]
    for point in ("point-1", "point-2"):
        kept = json.loads((result.directory / point / "result.json").read_text())
        assert kept["experiment"] in result.experiments
        assert (result.directory / point / "flows.csv").exists()
    for name in ("result.json", "tables.txt", "spec.yaml", "sweep.png", "sweep.svg"):
        assert (result.directory / name).stat().st_size > 100


def test_the_document_is_whole_and_so_are_the_tables(outcome: Outcome) -> None:
    result = outcome[0]
    document = json.loads((result.directory / "result.json").read_text())
    assert document["schemes"]["caps"]["short"]["n"] == 24
    assert all(entry["long"]["goodput_mbps"] > 0 for entry in document["schemes"].values())
    assert document["schemes"]["caps"]["overhead"] > 0
    assert document["schemes"]["ecmp"]["overhead"] == 0
    assert {"open-vswitch", "mininet", "numpy"} <= document["versions"].keys()
    tables(document)
    assert "Completion time of short flows" in (result.directory / "tables.txt").read_text()
    assert (result.directory / "spec.yaml").read_text() == TEXT
    assert (result.directory / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (result.directory / "comparison.svg").read_text()


def test_modes_of_caps_are_kept_and_begin_with_on(outcome: Outcome) -> None:
    for run in outcome[0].document["runs"]:
        leaf1 = [change["mode"] for change in run["modes"] if change["leaf"] == "l1"]
        assert bool(leaf1) == (run["scheme"] == "caps")
        if leaf1:
            assert leaf1[0] == "on"
            assert all(a != b for a, b in pairwise(leaf1)), "modes alternate"


def test_the_controllers_database_has_the_same(outcome: Outcome) -> None:
    result, kept, _ = outcome
    assert kept["experiment"]["state"] == "finished"
    assert kept["experiment"]["seed"] == 5
    assert len(kept["runs"]) == 6
    assert kept["summary"]["schemes"]["rps"]["short"]["n"] == 24
    by_id = {run["run_id"]: run for run in result.document["runs"]}
    for run in kept["runs"]:
        ours = by_id[run["id"]]
        assert run["measures"]["short"]["afct_ms"] == pytest.approx(ours["short_afct_ms"], rel=1e-6)


def test_progress_is_reported_from_the_first_stage_to_the_last_flow(outcome: Outcome) -> None:
    seen = outcome[2]
    assert seen[0].run == 0
    assert {progress.run for progress in seen} == set(range(7))
    assert max(progress.finished for progress in seen) == 12
    assert all(progress.left_s is not None and progress.left_s >= 0 for progress in seen)


def fail_when_running(tmp_path: Path, harm: Any, error: type[BaseException]) -> str:
    """Do *harm* in a run of some seconds once flows have finished; returns what the error said."""
    up: list[Deployment] = []
    done: list[int] = []

    def watch(progress: RunProgress) -> None:
        if progress.run and progress.finished >= 2 and not done:
            done.append(1)
            harm(up[0])

    with pytest.raises(error) as caught:
        run_experiment(one_scheme(40), TEXT, RunOptions(tmp_path, on_progress=watch, on_up=up.append))
    assert done
    assert not list(tmp_path.glob("tiny-*")), "there is no half result"
    return str(caught.value)


def kill_in_runs(tmp_path: Path, words: str, runs: int) -> tuple[dict[str, Any], list[Deployment]]:
    """Kill a process once in each of the first *runs* attempts of a single run; return the result's document."""
    up: list[Deployment] = []
    attempts: list[float] = []
    """At most one an attempt: when each was harmed."""

    def watch(progress: RunProgress) -> None:
        if not progress.run:
            return
        if progress.finished < 2:
            attempts.append(0.0)
        elif attempts and attempts[-1] == 0.0 and sum(at > 0 for at in attempts) < runs:
            attempts.append(progress.elapsed_s)
            os.kill(pid_of(up[0].lab.lab_id, words), signal.SIGKILL)

    result = run_experiment(one_scheme(40), TEXT, RunOptions(tmp_path, on_progress=watch, on_up=up.append))
    assert sum(at > 0 for at in attempts) == runs
    return result.document, up


@pytest.mark.parametrize("words", ["host_agent --host h2", "-m controller --lab"])
def test_a_run_in_which_a_part_dies_is_repeated_with_the_same_flows(tmp_path: Path, words: str) -> None:
    document, _ = kill_in_runs(tmp_path, words, 1)
    (run,) = document["runs"]
    assert (run["repeated"], run["disturbed"]) == (1, [])
    assert document["disturbed"] is False
    assert run["finished"] == 40
    assert run["plan"] == one_scheme(40).plan(0).digest()
    assert any("ecmp's run 1 was repeated once with the same flows" in line for line in document["notices"])


def test_a_limited_run_is_done_again_and_the_second_counts(tmp_path: Path) -> None:
    seen: list[int] = []
    with ExitStack() as stack:
        ends: list[Callable[[], None]] = []

        def watch(progress: RunProgress) -> None:
            if progress.run:
                if not ends:
                    ends.append(stack.enter_context(busy_loops(a_core=2)))
                if seen and progress.finished < seen[-1]:
                    ends[0]()
                seen.append(progress.finished)

        result = run_experiment(
            one_scheme(40), TEXT, RunOptions(tmp_path, on_progress=watch, again=lambda run: run.cpu_limited)
        )
    (run,) = result.document["runs"]
    assert (run["limited_before"], run["repeated"]) == (1, 0)
    assert run["finished"] == 40
    assert run["plan"] == one_scheme(40).plan(0).digest()
    assert sum(later < earlier for earlier, later in pairwise(seen)) == 1, "there were two"
    assert any("measured again" in line for line in result.document["notices"])


def test_a_run_that_is_disturbed_each_time_counts_with_its_mark(tmp_path: Path) -> None:
    document, _ = kill_in_runs(tmp_path, "host_agent --host h2", 3)
    (run,) = document["runs"]
    assert run["repeated"] == 2
    (death,) = run["disturbed"]
    assert (death["part"], death["how"]) == ("agent h2", "signal 9")
    assert 0 < death["at_s"] < run["duration_s"]
    assert death["after_s"] > 0
    assert document["disturbed"] is True
    assert document["schemes"]["ecmp"]["disturbed"] is True
    assert "DISTURBED" in text_of(tables(document))
    assert run["finished"] == 40, "TCP has sent again what was lost"


def test_a_dead_switch_is_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    said = fail_when_running(
        tmp_path,
        lambda deployment: deployment.lab.kill_switch("s2", links_down=True),
        DeploymentError,
    )
    assert "3 of 4 switches" in said


def test_a_link_taken_down_on_purpose_is_reported_with_the_result(tmp_path: Path) -> None:
    up: list[Deployment] = []
    faults: list[int] = []

    def watch(progress: RunProgress) -> None:
        if progress.run and progress.finished >= 2 and not faults:
            faults.append(up[0].client.begin_fault("link-down", "l1-s1")["id"])

    result = run_experiment(one_scheme(40), TEXT, RunOptions(tmp_path, on_progress=watch, on_up=up.append))
    (run,) = result.document["runs"]
    assert [(change["kind"], change["name"], change["cause"]) for change in run["fabric_changes"]] == [
        ("link-down", "l1-s1", "port down")
    ]
    assert 0 < run["fabric_changes"][0]["at_s"] < run["duration_s"]
    assert any("link l1-s1 down at" in notice for notice in result.document["notices"])


def test_an_interrupt_ends_everything_and_the_experiment_is_kept_as_failed(tmp_path: Path) -> None:
    def interrupt(_: Deployment) -> None:
        raise KeyboardInterrupt

    fail_when_running(tmp_path, interrupt, KeyboardInterrupt)
    with Deployment(one_scheme(), database=f"sqlite:///{tmp_path / 'capstan.db'}") as deployment:
        kept = deployment.client.results(1)
    assert kept["experiment"]["state"] == "failed"


def test_a_dead_generator_is_an_error_that_names_its_host(tmp_path: Path) -> None:
    spec = one_scheme(1000)
    with Deployment(spec) as deployment:
        with Traffic(deployment.lab.popen, spec.endpoints(), tmp_path) as traffic:
            traffic.configure(spec.transport)
            traffic.prepare(spec.plan(0))
            killed: list[int] = []

            def harm(finished: int, failed: int) -> None:
                if not killed:
                    killed.append(1)
                    os.kill(pid_of(deployment.lab.lab_id, "workloads.generator"), signal.SIGKILL)

            with pytest.raises(
                TrafficError, match=r"the traffic generator of h\d has ended \(exit code -9\)"
            ):
                traffic.run(240, harm)
        with pytest.raises(ControllerError, match="99"):
            deployment.client.results(99)
