"""How much is kept of experiments, and how fast it comes: what is refused then, and that all else goes on."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capstan_client.errors import ControllerError
from controller.api import server
from controller.api.describing import END_BYTES
from controller.store.flow_records import forget_flows
from controller.store.room import GIB, kept_bytes
from engine.worker import Attempt, Worker
from engine.worker_client import WorkerClient
from tests.unit.api_world import World, api_world
from tests.unit.controller.api.test_api_experiments import EXPERIMENT, FLOW, begin, run_body

FLOWS = [FLOW] * 2000
SUMMARY = {"state": "finished", "summary": {"text": "x" * END_BYTES}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as made:
        yield made


def size_of(world: World) -> int:
    with world.engine.connect() as connection:
        return kept_bytes(connection)


def bound(world: World, most_bytes: int) -> None:
    world.store._most_bytes = most_bytes


def test_results_are_refused_while_the_database_is_full_and_why_is_said(world: World) -> None:
    number, ending = begin(world), begin(world)
    full = size_of(world)
    world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, flows=FLOWS))
    assert size_of(world) > full + 2000 * 100
    bound(world, full)
    for method, path, body in (
        ("POST", "/experiments/recorded", EXPERIMENT),
        ("POST", "/experiments", {"preset": "small"}),
        ("POST", f"/experiments/{number}/runs", run_body(world, 1)),
        ("PATCH", f"/experiments/{ending}", SUMMARY),
    ):
        said = world.ask(method, path, 507, json=body)["detail"]
        assert f"{size_of(world) / GIB:.3g} GiB, more than the {full / GIB:.3g} GiB" in said
        assert "--keep-results-gib" in said
        assert "--keep-records-days" in said
    world.ask("PATCH", f"/experiments/{ending}", 200, json={"state": "failed", "error": "no room"})
    assert len(world.get(f"/experiments/{number}")["runs"]) == 1
    bound(world, GIB)
    world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, 1))


def test_what_was_deleted_is_room_again(world: World) -> None:
    number = begin(world)
    world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, flows=FLOWS))
    world.ask("PATCH", f"/experiments/{number}", json={"state": "finished", "summary": {}})
    bound(world, size_of(world) - 1)
    world.ask("POST", "/experiments/recorded", 507, json=EXPERIMENT)
    assert forget_flows(world.engine, time.time() + 1) == 2000
    world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)


def test_results_have_a_rate_of_all_clients_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RESULTS_BURST", 3 * server.RESULTS_LEAST)
    monkeypatch.setattr(server, "RESULTS_PER_S", 1)
    with api_world(tmp_path) as world:
        number = begin(world)
        for repeat in range(3):
            world.ask("POST", f"/experiments/{number}/runs", 201, json=run_body(world, repeat))
        said = world.ask("POST", f"/experiments/{number}/runs", 429, json=run_body(world, 3))["detail"]
        assert said.startswith("too many results come: try again in ")
        world.ask("PATCH", f"/experiments/{number}", 429, json={"state": "finished", "summary": {}})
        end = {"attempt": 1, "state": "failed", "error": "x"}
        world.ask("POST", f"/experiments/{number}/end", 429, json=end)
        world.get("/experiments")
        world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)


class FullController(WorkerClient):
    """One experiment, whose summary finds no room."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.claims: list[dict[str, Any]] = [{"experiment": 1, "attempt": 1, "spec": {"name": "x"}}]
        self.ends: list[tuple[str, Any, str]] = []

    def claim(self, *_: Any) -> dict[str, Any] | None:
        return self.claims.pop() if self.claims else None

    def end(self, experiment: int, attempt: int, state: str, summary: Any = None, error: str = "") -> None:
        self.ends.append((state, summary, error))
        if summary is not None:
            raise ControllerError("the database is full", status=507)


def test_a_worker_whose_results_find_no_room_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    client, attempts = FullController(), list[Attempt]()
    monkeypatch.setattr(Worker, "_experiment", lambda *_: {"schemes": {}})
    assert Worker(client, "w", on_attempt=attempts.append).run() == 1
    assert [state for state, _, _ in client.ends] == ["finished", "failed"]
    assert "full" in client.ends[-1][2]
    assert [attempt.state for attempt in attempts] == ["running", "failed"]


@pytest.mark.parametrize("value", [b"[],", b"1,"])
def test_a_body_has_a_number_of_values_whatever_is_in_them(world: World, value: bytes) -> None:
    """64 MiB of empty lists were 1.4 GiB once they were read."""
    number = begin(world)
    values = value * 4_100_000
    body = b'{"measures": [' + values + b"0" + b"]" * (1 + values.count(b"[") - values.count(b"]")) + b"}"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path = f"/experiments/{number}/runs"
    said = world.ask("POST", path, 413, data=body, content_type="application/json")["detail"]
    assert "a body may have 4,000,000 values, not " in said
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 150, "the body itself, and some copies of it"
