"""The API's routes about experiments, and what every route does with requests that cannot be."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.api.bodies import FlowBody
from controller.api.body_limits import long_bodies
from controller.api.describing import RESULTS_BYTES
from controller.api.front.limits import FrontSettings
from controller.api.request_values import DEEPEST
from controller.api.server import MAX_BODY_BYTES
from controller.plane.effects import ModeChanged
from controller.store.models import FlowRecord
from tests.unit.api_world import BASE, World, api_world

EXPERIMENT = {"name": "demo", "seed": 1, "spec": {"title": "a spec"}}
FLOW = {
    "flow": 1, "source": "h1", "destination": "h5", "traffic_class": "short", "state": "finished",
    "size_bytes": 52_000, "started_s": 1.2, "finished_s": 1.27, "fct_s": 0.07, "retransmissions": 0,
    "paths": {"1": 3, "2": 4}, "recovered": 1,
}  # fmt: skip

HEAD = {"id", "name", "state", "kind", "points", "simulated", "created_at", "started_at", "finished_at"}


def run_body(world: World, repeat: int = 0, **changes: Any) -> dict[str, Any]:
    now = world.running.events.began_at()
    return {
        "scheme": "caps", "repeat": repeat, "seed": 17, "started_at": now, "finished_at": now + 15,
        "measures": {"short": {"n": 1, "afct_ms": 70.0}}, "flows": [FLOW], **changes,
    }  # fmt: skip


def begin(world: World) -> int:
    number: int = world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)["id"]
    return number


def test_an_experiment_from_its_beginning_to_its_results(world: World) -> None:
    number = begin(world)
    run = world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world))
    assert (run["label"], run["cpu_limited"], run["mode_events_complete"]) == ("caps", False, True)
    ended = world.ask("PATCH", f"/experiments/{number}", json={"state": "finished", "summary": {"x": 1}})
    assert ended["state"] == "finished"
    results = world.get(f"/experiments/{number}/results")
    assert results["summary"] == {"x": 1}
    assert [one["id"] for one in results["runs"]] == [run["id"]]
    assert results["experiment"]["spec"] == EXPERIMENT["spec"]
    (flow,) = world.get(f"/experiments/{number}/flows")["flows"]
    assert FLOW.items() <= flow.items()
    assert world.get(f"/experiments/{number}")["runs"] == results["runs"]


def test_mode_changes_are_kept_by_the_controller_and_known_to_be_complete(world: World) -> None:
    number = begin(world)
    before = run_body(world)["started_at"]
    world.running.events.add(ModeChanged(world.running.shell.now(), 0xCA1, "on", "first-packet"))
    answer = world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world))
    assert (answer["mode_events"], answer["mode_events_complete"]) == (1, True)
    (kept,) = world.get(f"/experiments/{number}/modes?run={answer['id']}")["modes"]
    assert (kept["mode"], kept["cause"], kept["run"]) == ("on", "first-packet", answer["id"])
    assert 0 <= kept["at_s"] <= 15
    # a run that began before this controller did: it cannot know all of its mode changes
    early = run_body(world, 1, started_at=before - 60)
    answer = world.ask("POST", f"/experiments/{number}/runs", 201, json=early)
    assert answer["mode_events_complete"] is False


def test_lists_go_on_where_they_ended(world: World) -> None:
    number = begin(world)
    flows = [{**FLOW, "flow": one} for one in range(25)]
    world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, flows=flows))
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = world.get(f"/experiments/{number}/flows?after={after}&limit=10")
        seen += [flow["flow"] for flow in page["flows"]]
        after = page["next"]
    assert seen == list(range(25))
    newest = [begin(world) for _ in range(5)][::-1]
    first = world.get("/experiments?limit=3")
    second = world.get(f"/experiments?limit=2&before={first['next']}")
    assert [one["id"] for one in first["experiments"] + second["experiments"]] == newest


def test_heads_are_a_list_in_the_same_order_without_what_is_long(world: World) -> None:
    number = begin(world)
    world.ask("PATCH", f"/experiments/{number}", json={"state": "finished", "summary": {"schemes": {"a": 1}}})
    begin(world)
    for query in ("", "?limit=2", "?limit=1&state=finished", f"?before={number + 1}", "?parent=1"):
        whole, heads = (world.get(f"/experiments{path}{query}") for path in ("", "/heads"))
        assert heads["next"] == whole["next"]
        assert heads["experiments"] == [
            {name: value for name, value in listed.items() if name in HEAD} for listed in whole["experiments"]
        ]
    assert world.get("/experiments/heads?limit=501", 422)["field"] == "query.limit"


def test_the_csv_has_every_field_of_every_flow(world: World) -> None:
    number = begin(world)
    flows = [{**FLOW, "flow": one, "error": 'a "word", and\na line'} for one in range(1500)]
    world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, flows=flows))
    rows = list(csv.DictReader(io.StringIO(world.get(f"/experiments/{number}/flows.csv"))))
    kept = list(world.store.all_flows(number, None))
    assert [int(row["flow"]) for row in rows] == list(range(1500))
    assert list(rows[0]) == list(kept[0])
    assert json.loads(rows[7]["paths"]) == FLOW["paths"]
    assert rows[7]["error"] == 'a "word", and\na line'


def test_bodies_have_every_column_that_a_flow_has() -> None:
    columns = {column.key for column in FlowRecord.__table__.columns}
    assert {one.name for one in dataclasses.fields(FlowBody)} == columns - {"id", "run_id"}


@pytest.mark.parametrize(
    "path", ["", "/results", "/flows", "/flows.csv", "/modes", "/flows?run=1", "/flows.csv?run=1"]
)
def test_what_is_not_there_is_404_also_past_every_number(world: World, path: str) -> None:
    assert "no experiment 987654321" in world.get(f"/experiments/987654321{path}", 404)["detail"]
    for number in (2**63, 10**30):
        assert world.get(f"/experiments/{number}{path}", 404)["status"] == 404


def test_a_run_of_another_experiment_is_404(world: World) -> None:
    one, two = begin(world), begin(world)
    run = world.ask("POST", f"/experiments/{one}/runs", 201, json=run_body(world))
    assert "has no run" in world.get(f"/experiments/{two}/flows?run={run['id']}", 404)["detail"]


def test_what_has_ended_or_is_there_already_is_409(world: World) -> None:
    number = begin(world)
    path = f"/experiments/{number}"
    run = run_body(world)
    kept = world.ask("POST", f"{path}/runs", 201, json=run)
    assert world.ask("POST", f"{path}/runs", 201, json=run)["id"] == kept["id"], (
        "its answer may have been lost"
    )
    later = {**run, "started_at": run["started_at"] + 1.0}
    assert "already" in world.ask("POST", f"{path}/runs", 409, json=later)["detail"]
    world.ask("PATCH", path, json={"state": "cancelled", "error": "it gave way"})
    assert "is cancelled" in world.ask("POST", f"{path}/runs", 409, json=run_body(world, 1))["detail"]
    assert "is cancelled" in world.ask("PATCH", path, 409, json={"state": "finished"})["detail"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"seed": "one"}, "body.seed"),
    ({"seed": 2**63}, "body.seed"),
    ({"seed": -(2**70)}, "body.seed"),
    ({"seed": True}, "body.seed"),
    ({"seed": 1.5}, "body.seed"),
    ({"name": None}, "body.name"),
    ({"name": "nul \0"}, "body.name"),
    ({"spec": []}, "body.spec"),
    ({"spec": {"deep": [2**64]}}, "body.spec.deep[0]"),
    ({"sped": {}}, "body"),
]


@pytest.mark.parametrize(("change", "field"), BAD, ids=[str(change) for change, _ in BAD])
def test_a_wrong_field_is_422_and_named(world: World, change: dict[str, Any], field: str) -> None:
    assert world.ask("POST", "/experiments/recorded", 422, json=EXPERIMENT | change)["field"] == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"state": "done"}, "body.flows[1].state"),
        ({"traffic_class": "medium"}, "body.flows[1].traffic_class"),
        ({"bytes_acked": 2**63}, "body.flows[1].bytes_acked"),
        ({"paths": {"1": "x"}}, "body.flows[1].paths.1"),
        ({"rtt_ms": "3"}, "body.flows[1].rtt_ms"),
        ({"retransmissons": 1}, "body.flows[1]"),
    ],
)
def test_a_wrong_flow_is_named_and_nothing_of_its_run_is_kept(
    world: World, change: dict[str, Any], field: str
) -> None:
    number = begin(world)
    body = run_body(world, flows=[FLOW, FLOW | change])
    assert world.ask("POST", f"/experiments/{number}/runs", 422, json=body)["field"] == field
    assert world.get(f"/experiments/{number}")["runs"] == []


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"name": "x", "seed": NaN, "spec": {}}', "application/json", 400),
        (b'{"name": "x", "seed": 1, "spec": {"a": -Infinity}}', "application/json", 400),
        (b'{"name": "x", "seed": 1, "spec": {"a": 1e999}}', "application/json", 400),
        (b'{"name": "half a pair \\ud800", "seed": 1, "spec": {}}', "application/json", 400),
        (b'{"a":' * 50_000, "application/json", 400),
        (b'{"name": "x", "seed": 1, "spec": ' + b'{"a":' * 70 + b"1" + b"}" * 71, "application/json", 422),
        (b"[]", "application/json", 422),
        (b"null", "application/json", 422),
        (b'"text"', "application/json", 422),
        (b"name=x", "application/x-www-form-urlencoded", 415),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
    ],
)
def test_a_body_that_is_none_is_refused(world: World, data: bytes, kind: str, status: int) -> None:
    said = world.ask("POST", "/experiments/recorded", status, data=data, content_type=kind)
    assert said["detail"]


def test_a_body_may_be_as_large_as_its_limit(world: World) -> None:
    data = json.dumps(EXPERIMENT).encode()
    padded = data + b" " * (MAX_BODY_BYTES - len(data))
    world.ask("POST", "/experiments/recorded", 201, data=padded, content_type="application/json")


def test_a_body_that_is_too_large_is_413(world: World) -> None:
    said = world.ask(
        "POST",
        "/experiments/recorded",
        413,
        data=b" " * (MAX_BODY_BYTES + 1),
        content_type="application/json",
    )
    assert said["title"]


def test_only_results_may_be_longer_than_1_mib(world: World) -> None:
    """What the HTTP process is given is what the application does, and what the document says."""
    long = long_bodies(world.app)
    assert sorted((one.method, one.path.partition("{1,19}")[2]) for one in long) == [
        ("PATCH", ""),
        ("POST", "/end"),
        ("POST", "/runs"),
    ]
    front = FrontSettings(1, long_bodies=long)
    number = world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)["id"]
    for method, path, status in (
        ("POST", f"/experiments/{number}/runs", 400),
        ("PATCH", f"/experiments/{number}", 400),
        ("POST", f"/experiments/{number}/end", 400),
        ("POST", "/experiments/recorded", 413),
        ("PUT", "/scheme", 413),
    ):
        body = b" " * (MAX_BODY_BYTES + 1)
        world.ask(method, path, status, data=body, content_type="application/json")
        most = front.most_body_bytes(method, BASE + path)
        assert most == (RESULTS_BYTES if status == 400 else MAX_BODY_BYTES), path
        described = world.document["paths"][BASE + path.replace(str(number), "{experiment}")][method.lower()]
        assert described["requestBody"]["description"] == f"At most {most >> 20} MiB."


def test_wrong_methods_and_paths_are_problem_documents_too(world: World) -> None:
    answer = world.client.delete(f"{BASE}/health")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]
    assert answer.mimetype == "application/problem+json"
    for path in (
        "/api/v1/helth",
        "/api",
        "/api/v1/experiments/x",
        "/api/v1/experiments/-1",
        "/api/v2/health",
    ):
        answer = world.client.get(path)
        assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


def test_on_other_addresses_every_route_needs_the_token(tmp_path: Path) -> None:
    token = "a token of the API's own"
    with api_world(tmp_path, token=token) as world:
        routes = [(method, path) for path, one in world.document["paths"].items() for method in one]
        assert len(routes) > 15
        for header in (None, "", token, f"Basic {token}", f"Bearer {token}x", "Bearer", "Bearer é"):
            headers = {} if header is None else {"Authorization": header}
            for method, path in routes:
                answer = world.client.open(path, method=method.upper(), headers=headers)
                assert answer.status_code == 401, (method, path, header)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert answer.mimetype == "application/problem+json"
        for header in (f"Bearer {token}", f"bearer  {token}"):
            answer = world.client.get(f"{BASE}/health", headers={"Authorization": header})
            assert answer.status_code == 200


FIELDS = (
    *[
        "name",
        "seed",
        "spec",
        "scheme",
        "repeat",
        "measures",
        "flows",
        "state",
        "summary",
        "error",
        "loss",
        "forget",
        "timeout_s",
        "overrides",
    ],
    *["packet_time_us", "started_at", "finished_at", "short", "coding", "max_k", "paths"],
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=JSON,
    path=st.sampled_from(
        [
            "/experiments",
            "/experiments/recorded",
            "/experiments/1/runs",
            "/experiments/1/end",
            "/engine/claims",
            "/flows/report",
            "/agents/h1/impairment",
            "/scheme",
            "/experiments/1",
        ]
    ),
)
def test_no_body_whatever_is_an_unexpected_error(world: World, body: Any, path: str) -> None:
    method = {"/scheme": "PUT", "/agents/h1/impairment": "PUT", "/experiments/1": "PATCH"}.get(path, "POST")
    answer = world.client.open(
        BASE + path, method=method, data=json.dumps(body), content_type="application/json"
    )
    assert answer.status_code in (200, 201, 400, 404, 409, 422)
    world.check(method, path, answer)


def test_events_report_experiments(world: World) -> None:
    since = world.get("/events")["cursor"]
    made = world.ask("POST", "/experiments/recorded", 201, json={"name": "reported", "seed": 1, "spec": {}})
    run = {"scheme": "caps", "repeat": 2, "seed": 3, "started_at": time.time(), "measures": {}}
    added = world.ask("POST", f"/experiments/{made['id']}/runs", 201, json=run)
    world.ask("PATCH", f"/experiments/{made['id']}", json={"state": "failed", "error": "no"})
    reported = world.get(f"/events?since={since}")["events"]
    assert [one["kind"] for one in reported] == ["experiment-created", "run-added", "experiment-ended"]
    assert {one["experiment"] for one in reported} == {made["id"]}
    assert {"run": added["id"], "label": "caps", "repeat": 2, "state": "running"}.items() <= reported[
        1
    ].items()
    assert reported[2]["state"] == "failed"


def test_of_runs_that_come_at_once_one_is_kept_after_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side in one interpreter, the first would be kept as late as the last, and their workers go on as late."""
    number, keep = begin(world), world.store.add_run
    inside, most = 0, []

    def note(*arguments: Any, **more: Any) -> dict[str, Any]:
        nonlocal inside
        inside += 1
        most.append(inside)
        time.sleep(0.05)
        inside -= 1
        return keep(*arguments, **more)

    monkeypatch.setattr(world.store, "add_run", note)
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(
            lambda repeat: world.app.test_client().post(
                f"{BASE}/experiments/{number}/runs", json=run_body(world, repeat)
            ),
            range(4),
        )
        assert [answer.status_code for answer in answers] == [201] * 4
    assert most == [1] * 4


def test_nesting_is_counted_to_the_innermost_value(world: World) -> None:
    deep: Any = 1
    for _ in range(DEEPEST - 1):
        deep = [deep]
    spec = {**EXPERIMENT, "spec": deep}  # the body and its fields are two levels more
    world.ask("POST", "/experiments/recorded", 422, json={**spec, "spec": {"x": [[deep]]}})
    world.ask("POST", "/experiments/recorded", 201, json={**spec, "spec": {"x": deep[0]}})
