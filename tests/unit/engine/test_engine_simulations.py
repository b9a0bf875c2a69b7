"""Submitted simulations: a real controller and its real workers, without a lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from capstan_client import Capstan
from capstan_client.errors import CapstanError
from capstan_client.progress import Progress
from cli.app import capstan
from cli.commands.submit import progress_line
from engine.recordings import problem
from experiments.results.packet_trace import parse_trace, trace_bytes
from experiments.spec.spec import spec_from_dict
from protocol.version import VERSION
from simulation.experiment import simulate_document
from simulation.link_samples import MOST_LINKS
from simulation.packet_trace import Recorder
from tests.lab.engine_server import TINY, Server, serving
from tests.unit.api_world import api_world
from tests.unit.experiments_store import flow_row
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)
LONG: dict[str, Any] = TINY | {
    "workload": {
        "flows": {
            "count": 4_000,
            "sizes": {"kind": "fixed", "bytes": 1_000_000},
            "arrivals": {"kind": "poisson", "load": 0.6},
            "pattern": "left-to-right",
        }
    },
    "repeats": 20,
}
"""Hours, if it is not cancelled."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("simulations") / "data"
    with serving(data, "--experiments", "--labs", "0", "--simulations", "2") as started:
        yield started


@pytest.mark.slow
def test_a_submitted_simulation_has_the_figures_of_one_from_the_command_line(server: Server) -> None:
    experiment = Capstan(f"http://{server.api}").submit(spec=TINY, kind="simulation").wait()
    described = experiment.describe()
    assert (described["simulated"], described["kind"]) == (True, "experiment")
    assert experiment.simulated
    document, _ = simulate_document(spec_from_dict(TINY))
    for label, scheme in document["schemes"].items():
        kept = experiment.summary()["schemes"][label]
        assert kept["short"]["afct_ms"] == pytest.approx(scheme["short"]["afct_ms"])
    assert len(experiment.flows()) == 2 * 6
    assert {run["label"]: run["cpu"] for run in described["runs"]} == {"ecmp": {}, "caps": {}}


def test_the_command_submits_follows_and_prints(server: Server, tmp_path: Path) -> None:
    spec = tmp_path / "tiny.yaml"
    spec.write_text(json.dumps(TINY), encoding="utf-8")  # which is YAML, too
    arguments = ["submit", str(spec), "--simulation", "--api", f"http://{server.api}", "--scheme", "rps"]
    done = CliRunner().invoke(
        capstan, [*arguments, "--json", str(tmp_path / "r.json")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    assert "Completion time of short flows" in done.stdout
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (document["kind"], list(document["schemes"])) == ("simulation", ["rps"])


def test_a_submission_that_fails_ends_the_command_with_the_reason(server: Server) -> None:
    large = {"kind": "fixed", "bytes": 20_000_000}  # 16 s on a link
    flows = TINY["workload"]["flows"] | {"sizes": large, "arrivals": {"kind": "poisson", "rate_per_s": 0.05}}
    hopeless = TINY | {"schemes": ["ecmp"], "workload": {"flows": flows | {"count": 1}}, "timeout_s": 1}
    failing = Capstan(f"http://{server.api}").submit(spec=hopeless, kind="simulation")
    with pytest.raises(CapstanError, match=r"is failed: .*no long flow"):
        failing.wait()


def test_a_line_of_progress_says_what_is_left() -> None:
    running = Progress("running", "caps", 3, 8, 0, 0, 20, 0, 50, 12.0, 30.0, None)
    at = datetime(2026, 1, 1, 12, 0, 0)
    assert progress_line(running, at) == "caps: 3 of 8 runs, 20 of 50 flows, 30 s left, until 12:00:30"
    assert (
        progress_line(replace(running, state="queued", queue_position=2), at)
        == "waits, number 2 in the queue"
    )


@pytest.mark.slow
def test_points_of_a_simulated_sweep_name_their_experiments(server: Server) -> None:
    axes = [{"label": "flows", "fields": ["workload.flows.count"], "values": [2, 3]}]
    sweep = Capstan(f"http://{server.api}").submit(spec={**TINY, "sweep": axes}, kind="simulation").wait()
    children = [point.number for point in sweep.points()]
    assert [point["experiment"] for point in sweep.summary()["points"]] == children


@pytest.mark.slow
def test_a_finished_simulation_is_recorded_again_as_it_was(server: Server) -> None:
    client = Capstan(f"http://{server.api}")
    experiment = client.submit(spec=TINY, kind="simulation").wait()
    spec = spec_from_dict(TINY)
    only = replace(spec, schemes=spec.schemes[:1])
    recorder = Recorder(from_ms=1, for_ms=900)
    _, (run,) = simulate_document(replace(only, repeats=1), recorder=recorder)
    assert recorder.trace is not None
    recorded = experiment.recording(run.label, from_ms=1, for_ms=900)
    assert recorded == trace_bytes(recorder.trace)
    assert parse_trace(recorded).scheme == run.label
    with pytest.raises(CapstanError, match="no packet was under way"):
        experiment.recording(run.label, from_ms=0, for_ms=1)
    with pytest.raises(CapstanError, match="there is no repeat 9 of scheme"):
        experiment.recording(run.label, repeat=9)


def test_a_recording_is_refused_where_there_is_no_such_run(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        for kind, words in (("experiment", "ran in a lab"), ("simulation", "is queued")):
            made = world.ask("POST", "/experiments", 201, json={"spec": TINY, "kind": kind})
            path = f"/experiments/{made['id']}/recording"
            assert words in world.ask("GET", f"{path}?scheme=caps", 409)["detail"]
            assert "query.scheme" in world.ask("GET", path, 422)["detail"]
            assert "query.for_ms" in world.ask("GET", f"{path}?scheme=caps&for_ms=900000", 422)["detail"]
        world.get("/experiments/99/recording?scheme=caps", 404)


def test_the_rate_of_recordings_comes_before_their_spec_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token for reading alone could have a large spec read, for seconds each time."""
    monkeypatch.setattr("engine.serving.CHECK_BURST", 1)
    monkeypatch.setattr("engine.serving.CHECKS_PER_S", 0.001)
    with api_world(tmp_path) as world:
        made = world.ask("POST", "/experiments", 201, json={"spec": TINY, "kind": "simulation"})
        path = f"/experiments/{made['id']}/recording?scheme=caps"
        world.ask("GET", path, 409)
        monkeypatch.setattr("engine.recordings.problem", lambda experiment: pytest.fail("is not looked at"))
        said = world.ask("GET", path, 429)["detail"]
    assert said.startswith("too many specs are checked or recordings asked for: try again in ")


def finished(**changes: Any) -> dict[str, Any]:
    """Return an experiment as the store has it, whose runs can be recorded."""
    return {"id": 7, "kind": "experiment", "simulated": True, "state": "finished", "spec": TINY} | {
        "versions": {"capstan": VERSION},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sweep"}, "one of its points"),
        ({"versions": {"capstan": "0.0.1"}}, "simulated by version 0.0.1"),
        ({"spec": LONG}, "s of processor time, more than 20 s"),
        ({"spec": TINY | {"description": "x" * (200 << 10)}}, "KiB, more than 128 KiB"),
        ({"spec": {"name": "x"}}, "does not read"),
        ({"spec": TINY | {"schemes": [7]}}, "does not read"),
        ({"spec": TINY | {"schemes": ["/etc/passwd"]}}, "a scheme of a file, /etc/passwd"),
    ],
)
def test_what_cannot_be_recorded_again_is_said(changes: dict[str, Any], words: str) -> None:
    assert problem(finished()) == ""
    assert words in problem(finished(**changes))


@pytest.mark.slow
def test_points_of_a_sweep_are_simulated_and_put_together(server: Server) -> None:
    sweep = {"workload.flows.arrivals.rate_per_s": [5, 10, 15, 20]}
    number = server.submit(spec=TINY, kind="simulation", sweep=sweep)
    assert server.until(number, "finished", "failed", "interrupted") == "finished"
    found = server.ask("GET", f"/experiments/{number}")
    assert (found["summary"]["kind"], found["summary"]["simulated"]) == ("sweep", True)
    assert len(found["summary"]["points"]) == 4
    assert all(server.ask("GET", f"/experiments/{one['id']}")["simulated"] for one in found["children"])


@pytest.mark.slow
def test_one_that_runs_reports_where_it_is_and_can_be_cancelled(server: Server) -> None:
    number = server.submit(spec=LONG, kind="simulation")
    server.wait(lambda: server.progress(number)["flows_finished"] > 0, 120)
    now = server.progress(number)
    assert now["runs"] == 40
    assert now["workers"][0]["lab"] is None
    server.ask("POST", f"/experiments/{number}/cancel", 202)
    assert server.until(number, "cancelled", "finished", "failed") == "cancelled"
    server.wait(lambda: not server.ask("GET", "/engine")["running"], 60)


def test_the_command_cancels_an_experiment_by_its_number(server: Server) -> None:
    number = server.submit(spec=LONG, kind="simulation")
    arguments = ["submit", "--cancel", str(number), "--api", f"http://{server.api}"]
    done = CliRunner().invoke(capstan, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert server.until(number, "cancelled", "finished", "failed") == "cancelled"
    both = CliRunner().invoke(capstan, ["submit", "small", "--cancel", "1"])
    assert (both.exit_code, "either SPEC or --cancel" in both.output) == (2, True)


def test_where_there_is_no_lab_the_engine_says_what_waits_in_vain_and_goes_on_simulating(
    server: Server,
) -> None:
    in_lab = server.submit(spec=TINY)
    simulated = server.submit(spec=TINY, kind="simulation")
    assert server.until(simulated, "finished", "failed") == "finished"
    assert server.state(in_lab) == "queued"
    engine = server.ask("GET", "/engine")
    assert (engine["workers"], engine["simulation_workers"]) == (0, 2)
    assert "no worker of this controller takes labs" in engine["paused"]
    server.ask("POST", f"/experiments/{in_lab}/cancel", 202)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schemes": ["tpfs"], "set": {"keep_learnt": True}}, "scheme tpfs: `keep_learnt`"),
        ({"set": {"transport.congestion_control": "bbr"}}, "bbr is not simulated"),
        (
            {"set": {"fabric.link.rate_mbps": 0.01, "workload.flows.arrivals.rate_per_s": 0.1}},
            "with a packet time of 1200 ms, policy.short",
        ),
        ({"sweep": {"transport.congestion_control": ["cubic", "bbr"]}}, "= bbr: transport."),
    ],
)
def test_what_a_simulation_cannot_do_is_refused_when_it_is_submitted(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with api_world(tmp_path) as world:
        body = {"spec": TINY, "kind": "simulation"} | changes
        assert words in world.ask("POST", "/experiments", 422, json=body)["detail"]
        checked = world.ask("POST", "/experiments/check", json=body)
        assert words in checked["problems"][0]["message"]
        assert world.ask("POST", "/experiments/check", json={"spec": TINY, "kind": "simulation"})["simulated"]


def test_a_worker_gets_what_it_takes_and_a_finished_run_once(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        for kind in ("simulation", "experiment"):
            world.ask("POST", "/experiments", 201, json={"spec": TINY, "kind": kind})

        def claim(takes: str) -> Any:
            return world.ask("POST", "/engine/claims", json={"worker": "w@h:1", "takes": takes})["claim"]

        lab, simulation = claim("labs"), claim("simulations")
        assert (lab["simulated"], simulation["simulated"]) == (False, True)
        assert claim("all") is None
        body = {"scheme": "ecmp", "repeat": 0, "seed": 1, "started_at": 1.0, "measures": {}, "attempt": 1}
        path = f"/experiments/{simulation['experiment']}/runs"
        first = world.ask("POST", path, 201, json=body | {"flows": [flow_row(1)], "modes": []})
        again = world.ask("POST", path, 201, json=body | {"flows": [flow_row(1)], "modes": []})
        assert again["id"] == first["id"]


@pytest.mark.slow
def test_a_simulated_run_that_goes_on_shows_its_fabric_and_links(server: Server) -> None:
    client = Capstan(f"http://{server.api}")
    axes = [{"label": "flows", "fields": ["workload.flows.count"], "values": [4_000]}]
    sweep = client.submit(spec={**LONG, "sweep": axes}, kind="simulation")
    try:
        links = eventually(lambda: links_of(server, sweep.number), "a sample", seconds=60)
        (point,) = sweep.points()
        assert links["experiment"] == point.number
        assert (links["scheme"], links["repeat"]) in {("ecmp", 1), ("caps", 1)}
        assert links["at_s"] >= links["loads"]["interval_s"] > 0
        fabric = links["fabric"]
        names = {link["name"] for link in fabric["links"]} | {host["link"] for host in fabric["hosts"]}
        assert {link["name"] for link in links["loads"]["links"]} == names
        assert any(link["ab"]["share"] > 0.2 for link in links["loads"]["links"])
        later = eventually(
            lambda: (newer := links_of(server, point.number)) and newer["at_s"] > links["at_s"] and newer,
            "a newer sample",
            seconds=60,
        )
        assert later["loads"]["at"] > links["loads"]["at"]
    finally:
        sweep.cancel()
    eventually(
        lambda: links_of(server, sweep.number) is None, "no sample of a run that has ended", seconds=60
    )


def links_of(server: Server, number: int) -> dict[str, Any] | None:
    answer = httpx.get(f"http://{server.api}/api/v1/experiments/{number}/links")
    assert answer.status_code == 200, answer.text
    run: dict[str, Any] | None = answer.json()["run"]
    return run


def test_counts_of_links_that_are_not_the_fabrics_are_refused(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        number = world.ask("POST", "/experiments", 201, json={"spec": TINY, "kind": "simulation"})["id"]
        worker = {"worker": "w@here:1", "takes": "simulations"}
        claimed = world.ask("POST", "/engine/claims", json=worker)["claim"]
        reported = {"attempt": claimed["attempt"], "worker": worker["worker"], "stage": "ecmp"}
        path = f"/experiments/{number}"
        assert world.get(f"{path}/links") == {"run": None}
        right = [0] * 2 * 6
        names = ("delivered_bytes", "delivered_packets", "dropped_packets", "queued_packets")
        sample = {"label": "ecmp", "repeat": 1, "at_s": 1.0, "interval_s": 0.5} | dict.fromkeys(names, right)
        for wrong in (
            {"interval_s": 0},
            {"at_s": -1},
            {"queued_packets": [-1] * 12},
            {"delivered_bytes": [2**63] * 12},
        ):
            world.ask("PUT", f"{path}/progress", 422, json=reported | {"links": sample | wrong})
        for large in ({"delivered_packets": [0] * (2 * MOST_LINKS + 1)}, {"label": "e" * 501}):
            world.ask("PUT", f"{path}/progress", json=reported | {"links": sample | large})
            assert world.get(f"{path}/links") == {"run": None}, "what no sampler makes is not kept"
        world.ask("PUT", f"{path}/progress", json=reported | {"links": sample | {"queued_packets": [1] * 11}})
        assert "other links" in world.ask("GET", f"{path}/links", 409)["detail"]
        world.ask(
            "PUT",
            f"{path}/progress",
            json=reported | {"links": sample | {"delivered_bytes": [2**53 - 1] * 12}},
        )
        world.ask("PUT", f"{path}/progress", json=reported)
        run = world.get(f"{path}/links")["run"]
        assert run["loads"]["interval_s"] == 0.5, "the newest sample stays"
        assert (run["fabric"]["scheme"], run["experiment"]) == ("ecmp", number)
        assert "links" not in world.get(f"{path}/progress")
        world.ask(
            "POST", f"{path}/end", json={"attempt": claimed["attempt"], "state": "failed", "error": "x"}
        )
        assert world.get(f"{path}/links") == {"run": None}
        world.ask("GET", "/experiments/99/links", 404)
