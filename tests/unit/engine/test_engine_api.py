"""The engine's routes over a real controller that starts no workers: this test is the worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from controller.api.server import ApiSettings, make_app
from controller.live.event_log import ExperimentProgress
from controller.store.models import Experiment
from engine import dispatcher
from engine.executors import DaskWorkers, ExecutorError
from engine.serving import address_for_workers
from engine.worker_client import WorkerClient
from experiments.spec.check import preset_names
from figures.draw import FIGURES
from simulation.evidence_document import read_document
from tests.free_ports import free_port
from tests.unit.api_world import World, api_world
from tests.unit.experiments_store import flow_row

SWEEP = {"preset": "small", "sweep": {"workload.flows.count": [5, 6]}, "schemes": ["ecmp", "caps"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as found:
        yield found


def submit(world: World, **body: Any) -> int:
    number: int = world.ask("POST", "/experiments", 201, json=body or SWEEP)["id"]
    return number


def claim(world: World) -> Any:
    return world.ask("POST", "/engine/claims", json={"worker": "w@here:1"})["claim"]


def run_of(claimed: Any, label: str, mode: str = "on") -> dict[str, Any]:
    return {
        "scheme": label,
        "repeat": 0,
        "seed": 1,
        "started_at": 100.0,
        "finished_at": 101.0,
        "measures": {},
        "flows": [flow_row(1)],
        "modes": [{"at_s": 0.5, "leaf": "l1", "mode": mode, "cause": "first-packet"}],
        "attempt": claimed["attempt"],
    }


def report(claimed: Any, **changes: Any) -> dict[str, Any]:
    reported = {
        "attempt": claimed["attempt"],
        "worker": "w@here:1",
        "stage": "caps, repeat 1 of 1",
        "lab": "abc",
    }
    return (
        reported | {"run": 1, "runs": 2, "finished": 3, "flows": 5, "elapsed_s": 1.5, "left_s": 4.0} | changes
    )


def test_what_is_submitted_waits_and_says_where_it_is(world: World) -> None:
    number = submit(world)
    found = world.get(f"/experiments/{number}")
    assert (found["kind"], found["state"], found["points"], found["attempt"]) == ("sweep", "queued", 2, 0)
    assert [child["words"] for child in found["children"]] == ["count = 5", "count = 6"]
    assert found["progress"]["queue_position"] == 1
    assert found["progress"]["left_s"] > 10
    assert [one["id"] for one in world.get("/experiments")["experiments"]] == [number]
    assert len(world.get("/experiments?kind=all")["experiments"]) == 3
    assert len(world.get(f"/experiments?parent={number}&state=queued")["experiments"]) == 2
    assert world.get("/experiments?state=finished")["experiments"] == []
    assert [one["id"] for one in world.get("/experiments/heads")["experiments"]] == [number]
    heads = world.get(f"/experiments/heads?parent={number}&state=queued")["experiments"]
    assert [(one["kind"], one["points"]) for one in heads] == [("point", 0)] * 2
    assert world.get("/engine") == {
        "executor": "local",
        "address": None,
        "workers": 1,
        "simulation_workers": 0,
        "running": [],
        "queued": [number],
        "paused": None,
    }
    assert "count: 20" in world.get(f"/experiments/{number}/spec.yaml")
    world.get(f"/experiments/{number}/results.csv", 409)


def test_yaml_is_submitted_as_it_is_written(world: World) -> None:
    text = Path("experiments/presets/small.yaml").read_text()
    made = world.ask("POST", "/experiments", 201, data=text, content_type="application/yaml")
    assert made["kind"] == "experiment"
    assert world.get(f"/experiments/{made['id']}/spec.yaml") == text
    wrong = text.replace("count: 20", "cout: 20")
    reported = world.ask("POST", "/experiments", 422, data=wrong, content_type="text/yaml")
    assert reported["field"] == "body.text.workload.flows.cout"
    [first, *_] = reported["problems"]
    assert wrong.splitlines()[first["line"] - 1][first["column"] - 1 :].startswith("cout")
    world.ask("POST", "/experiments", 400, data=b"\xff\xfe", content_type="application/yaml")
    world.ask("POST", "/experiments", 413, data=b" " * (1 << 21), content_type="application/yaml")
    world.ask("POST", "/experiments", 415, data=text, content_type="text/plain")


@pytest.mark.slow
def test_check_keeps_nothing_and_reports_everything(world: World) -> None:
    good = world.ask("POST", "/experiments/check", json=SWEEP)
    assert (good["ok"], good["kind"], good["points"], good["runs"]) == (True, "sweep", 2, 4)
    bad = world.ask("POST", "/experiments/check", json=SWEEP | {"schemes": ["capz"], "repeats": 0})
    assert not bad["ok"]
    assert {one["field"] for one in bad["problems"]} == {"body.preset.schemes[0]", "body.preset.repeats"}
    assert world.get("/experiments")["experiments"] == []
    presets = world.get("/specs")["presets"]
    assert [one["name"] for one in presets] == preset_names()
    claims = next(one for one in presets if one["name"] == "capton-fig8")["claims"]
    assert {(claim["scheme"], claim["against"]) for claim in claims} >= {
        ("capton", "ecmp"),
        ("pias", "capton"),
    }
    assert world.get("/specs/schema")["properties"]["workload"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: !!bool foo", "cannot be read as bool"),
        ("name: !!int foo", "cannot be read as int"),
        ("name: !!float []x", "is not YAML"),
        ("name: !!int ''", "cannot be read as int"),
        ("seed: 1:30", "write it in decimal"),
        ("seed: " + "1" + ":59" * 50_000, "write it in decimal"),
        ("seed: " + "9" * 50_000, "write it in decimal"),
        ('name: "\\ud800"', "half a character"),
        ('"\\udfff": 1', "half a character"),
    ],
)
def test_yaml_that_python_cannot_read_is_a_problem_and_no_error_of_ours(
    world: World, text: str, said: str
) -> None:
    found = world.ask("POST", "/experiments/check", data=text, content_type="application/yaml")
    assert not found["ok"]
    assert any(said in one["message"] for one in found["problems"]), found["problems"]


def test_checks_have_a_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.serving.CHECK_BURST", 2)
    monkeypatch.setattr("engine.serving.CHECKS_PER_S", 0.001)
    with api_world(tmp_path) as world:
        for _ in range(2):
            world.ask("POST", "/experiments/check", json=SWEEP)
        assert "specs are checked" in world.ask("POST", "/experiments/check", 429, json=SWEEP)["detail"]
        world.ask("POST", "/experiments", 201, json=SWEEP)


def test_a_worker_from_claim_to_result(world: World) -> None:
    number = submit(world)
    while (claimed := claim(world)) is not None:
        path = f"/experiments/{claimed['experiment']}"
        assert claimed["spec"]["schemes"][0]["label"] == "ecmp"
        assert world.ask("PUT", f"{path}/progress", json=report(claimed)) == {"go_on": True}
        now = world.get(f"/experiments/{number}/progress")
        assert now["stage"] == f"count = {claimed['spec']['workload']['flows']['count']}: caps, repeat 1 of 1"
        assert now["workers"] == [
            {"name": "w@here:1", "point": now["points_done"], "lab": "abc", "stage": "caps, repeat 1 of 1"}
        ]
        assert now["flows_finished"] == 3
        world.ask(
            "PUT", f"{path}/equipment", json={"attempt": 1, "versions": {"capstan": "1"}, "machine": {}}
        )
        for label in ("ecmp", "caps"):
            world.ask("POST", f"{path}/runs", 201, json=run_of(claimed, label))
        again = world.ask("POST", f"{path}/runs", 201, json=run_of(claimed, "caps"))
        assert again["mode_events"] == 1, "sent twice, kept once"
        assert len(world.get(path)["runs"]) == 2
        assert {one["mode"] for one in world.get(f"{path}/modes")["modes"]} == {"on"}
        world.ask("PATCH", path, 409, json={"state": "finished"})
        world.ask("POST", f"{path}/end", 422, json={"attempt": 1, "state": "finished"})
        done = world.ask("POST", f"{path}/end", json={"attempt": 1, "state": "finished", "summary": {}})
        assert (done["state"], done["versions"]) == ("finished", {"capstan": "1"})
        world.ask("POST", f"{path}/end", 409, json={"attempt": 1, "state": "failed"})
    assert world.get(f"/experiments/{number}/progress")["runs_done"] == 4
    assert len(world.get(f"/experiments/{number}/flows")["flows"]) == 4, "those of all points"
    kinds = [event["kind"] for event in world.get("/events")["events"] if "experiment" in event]
    assert kinds[0] == "experiment-submitted"
    assert kinds.count("run-added") == 4
    assert kinds.count("experiment-ended") == 2
    reported = [one for one in world.running.events.since(0) if isinstance(one.data, ExperimentProgress)]
    assert 1 <= len(reported) <= 2, "at most one a second"


def test_a_worker_that_asks_again_gets_what_it_was_given(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = submit(world)
    asked: list[Any] = []

    def ask(client: ControllerClient, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        asked.append(body)
        answer: dict[str, Any] = world.ask(method, path, json=body)
        if len(asked) == 1:
            raise ControllerError("nothing came within 15 s")  # the answer is lost
        return answer

    monkeypatch.setattr(ControllerClient, "_ask", ask)
    with WorkerClient("http://127.0.0.1:9", sleep=lambda seconds: None) as client:
        first, second = client.claim("w@here:1", ""), client.claim("w@here:1", "")
    assert len(asked) == 3
    assert asked[0] == asked[1] != asked[2]
    assert first is not None
    assert second is not None
    assert [first["experiment"], second["experiment"]] == [number + 1, number + 2]
    assert world.get(f"/experiments/{number}/progress")["stage"].startswith("count = 5")


@pytest.mark.slow
def test_a_sweep_has_a_figure_of_its_own_and_its_points_have_theirs(world: World) -> None:
    number = submit(world)

    def names(experiment: int) -> list[str]:
        return [one["name"] for one in world.get(f"/experiments/{experiment}/figures")["figures"]]

    assert names(number) == names(number + 1) == []
    claimed = claim(world)
    world.ask("POST", f"/experiments/{claimed['experiment']}/runs", 201, json=run_of(claimed, "ecmp"))
    assert names(claimed["experiment"]) == list(FIGURES)
    assert names(number) == [], "it has no results yet"
    said = world.get(f"/experiments/{number}/figures/by-size.svg", 404)["detail"]
    assert said == f"experiment {number} is a sweep: its points have figure 'by-size'"
    assert "has no results" in world.get(f"/experiments/{number}/figures/sweep.png", 409)["detail"]
    world.get(f"/experiments/{number + 1}/figures/sweep.svg", 404)
    axis = {"label": "load", "unit": "", "fields": ["workload.flows.arrivals.load"], "values": [0.2, 0.4]}
    seeds = {"label": "seed", "unit": "", "fields": ["seed"], "values": [1, 2]}
    block = {"n": 5, "afct_ms": 9.0, "afct_ms_interval": [8.0, 10.0], "p99_shown": False}
    scheme = {"scheme": "ecmp", "cpu_limited": False, "short": block, "long": {}}
    points = [{"at": [at, seed], "schemes": {"ecmp": scheme}} for at in (0.2, 0.4) for seed in (1, 2)]
    summary = {
        "kind": "sweep",
        "title": "t",
        "sweep": [axis, seeds],
        "points": points,
        "repeats": 1,
        "cpu_limited": False,
    }
    with world.engine.begin() as connection:
        connection.execute(update(Experiment).where(Experiment.id == number).values(summary=summary))
    assert names(number) == ["sweep"]
    parts = []
    for part in (1, 2):
        path = f"/experiments/{number}/figures/sweep.svg?part={part}"
        parts.append(world.get(path))
        assert parts[-1].startswith("<?xml")
    assert parts[0] != parts[1]
    world.get(f"/experiments/{number}/figures/sweep.svg?part=3", 404)


@pytest.mark.slow
def test_claims_of_presets_come_with_what_the_document_says_of_them(world: World) -> None:
    document = read_document(Path("docs/evidence.md").read_text(encoding="utf-8"))
    claims = world.get("/evidence")["claims"]
    assert [one["row"] is not None for one in claims].count(True) == len(document.rows)
    of_preset = world.get("/evidence?preset=caps-fig26")["claims"]
    assert of_preset == [one for one in claims if one["preset"] == "caps-fig26"] != []
    for one in of_preset:
        cells = next(
            cells
            for (figure, text, compared), cells in document.rows.items()
            if (text, compared) == (one["text"], one["compared"]) and figure.endswith("`caps-fig26`")
        )
        assert one["row"]["simulated"]["verdict"] == cells.word
        assert all(f"{at['ratio']:.2f}" in cells.simulated for at in one["row"]["simulated"]["figures"])
    assert "did you mean 'caps-fig26'" in world.get("/evidence?preset=caps-fig6", 422)["detail"]


@pytest.mark.parametrize(
    "summary",
    [
        {"schemes": {"a": {"cpu_limited": "x"}}},
        {"schemes": []},
        {"kind": "sweep", "points": [[]], "sweep": []},
    ],
)
def test_a_summary_that_is_no_table_is_no_error_of_ours(world: World, summary: dict[str, Any]) -> None:
    number = submit(world, preset="small")
    end = {"attempt": claim(world)["attempt"], "state": "finished", "summary": summary}
    world.ask("POST", f"/experiments/{number}/end", json=end)
    assert "has no results" in world.get(f"/experiments/{number}/results.csv", 409)["detail"]


def test_cancel_and_rerun(world: World) -> None:
    number = submit(world)
    claimed = claim(world)
    assert world.ask("POST", f"/experiments/{number}/cancel", 202)["state"] == "cancelling"
    point = f"/experiments/{claimed['experiment']}"
    assert world.ask("PUT", f"{point}/progress", json=report(claimed)) == {"go_on": False}
    world.ask("POST", f"{point}/runs", 201, json=run_of(claimed, "ecmp"))  # it had finished: it is kept
    world.ask("POST", f"{point}/end", json={"attempt": 1, "state": "interrupted"})
    assert world.get(f"/experiments/{number}")["state"] == "cancelled"
    world.ask("POST", f"/experiments/{number}/cancel", 409)
    world.ask("POST", f"{point}/rerun", 409)
    assert world.ask("POST", f"/experiments/{number}/rerun", 202)["state"] == "queued"
    again = claim(world)
    assert (again["experiment"], again["attempt"]) == (claimed["experiment"], 2)
    assert [(one["label"], one["repeat"]) for one in again["kept"]] == [("ecmp", 0)]
    assert world.ask("PUT", f"{point}/progress", json=report(claimed)) == {"go_on": False}, "of attempt 1"
    for path in ("progress", "spec.yaml", "results.csv"):
        world.get(f"/experiments/999/{path}", 404)
    world.ask("POST", "/experiments/999/rerun", 404)


def test_a_controller_without_an_engine_says_where_to_submit(world: World) -> None:
    bare = make_app(world.running, world.store, ApiSettings(None, True), "0.1.0").test_client()
    reported = bare.post("/api/v1/experiments", json=SWEEP)
    assert reported.status_code == 405
    assert "submit to one of ./capstan serve --experiments" in reported.get_json()["detail"]
    assert bare.get("/api/v1/experiments").status_code == 200
    assert "experiments" not in bare.put("/api/v1/health").get_json()["detail"]


def test_workers_get_the_address_to_report_to() -> None:
    assert address_for_workers("http://0.0.0.0:81", None) == "http://127.0.0.1:81"
    assert address_for_workers("http://[::]:81", None) == "http://[::1]:81"
    assert address_for_workers("http://192.0.2.7:81", None) == "http://192.0.2.7:81"
    assert address_for_workers("http://0.0.0.0:81", "tcp://127.0.0.1:8786") == "http://127.0.0.1:81"
    assert address_for_workers("http://192.0.2.7:81", "tcp://127.0.0.1:8786") == "http://192.0.2.7:81"
    with pytest.raises(ExecutorError, match=r"there is no way to no\.such\.machine\.invalid"):
        address_for_workers("http://0.0.0.0:81", "tcp://no.such.machine.invalid:8786")


@pytest.mark.slow
def test_without_a_scheduler_it_is_said_where_none_is() -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ExecutorError, match=f"no Dask scheduler answers at {address}"):
        DaskWorkers(address, timeout_s=0.2)


@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.7:8786", "192.0.2.7:8786", "tcp://scheduler.invalid:8786"]
)
def test_a_scheduler_of_another_machine_needs_tls(address: str) -> None:
    with pytest.raises(ExecutorError, match=r"would get the API's token in clear.*--dask-without-tls"):
        DaskWorkers(address, timeout_s=0.1)


@pytest.mark.parametrize(
    ("address", "in_clear"),
    [
        ("tcp://127.0.0.1:1", False),
        ("[::1]:1", False),
        ("tcp://192.0.2.7:1", True),
    ],
)
def test_schedulers_that_may_be_asked(address: str, in_clear: bool) -> None:
    with pytest.raises(ExecutorError, match="no Dask scheduler answers"):
        DaskWorkers(address, timeout_s=0.1, in_clear=in_clear)


def test_a_scheduler_with_tls_and_no_certificates_of_ours_is_one_clear_line() -> None:
    with pytest.raises(ExecutorError, match=r"no certificates of ours for tls://127\.0\.0\.1:1"):
        DaskWorkers("tls://127.0.0.1:1", timeout_s=0.1)


def test_what_waits_has_a_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "MOST_WAITING", 3)
    submit(world)
    submit(world)
    assert (
        "4 experiments and points of sweeps wait"
        in world.ask("POST", "/experiments", 409, json=SWEEP)["detail"]
    )
    claim(world)
    claim(world)
    submit(world)


def test_what_a_worker_says_of_itself_has_a_length(world: World) -> None:
    number = submit(world)
    claimed = claim(world)
    words = "x" * 100_000
    path = f"/experiments/{claimed['experiment']}/progress"
    world.ask("PUT", path, 200, json=report(claimed, stage=words, worker=words))
    progress = world.get(f"/experiments/{number}/progress")
    assert len(progress["stage"]) < 1000
    assert {len(worker["name"]) for worker in progress["workers"]} == {dispatcher.MOST_WORDS}
