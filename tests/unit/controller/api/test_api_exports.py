"""What experiments leave in other forms than JSON, the page for people, and answers that need not be sent twice."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from controller.api.exporting import MOST_WAITING, PLACES, printed
from controller.app import API_THREADS
from controller.store.experiments import ExperimentStore
from tests.unit.api_world import BASE, World
from tests.unit.experiments_store import flow_row, new_experiment, run_row
from tests.waiting import eventually

FLOWS = 6000
VOID = {"meta", "br", "img", "link"}


@pytest.fixture(scope="module")
def experiment(world: World) -> int:
    """Return the number of an experiment with two runs, of more flows than a group in a Parquet file has."""
    number = new_experiment(world.store)
    for repeat, label in enumerate(("caps", "ecmp")):
        flows = [
            flow_row(one, fct_s=0.01 * (1 + one % 97), size_bytes=10_000 + 13 * one, lost=None)
            for one in range(FLOWS // 2)
        ]
        modes = [
            {"at_s": 0.5 * one, "leaf": "l1", "mode": ("on", "off")[one % 2], "cause": "x"}
            for one in range(6)
        ]
        world.store.add_run(number, run_row(repeat, label, scheme=label), flows, modes)
    return number


@pytest.mark.slow
def test_parquet_holds_what_the_csv_does(world: World, experiment: int) -> None:
    answer = world.client.get(f"{BASE}/experiments/{experiment}/flows.parquet")
    world.check("GET", f"/experiments/{experiment}/flows.parquet", answer)
    table = pyarrow.parquet.read_table(io.BytesIO(answer.get_data()))
    text = world.get(f"/experiments/{experiment}/flows.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert table.num_rows == len(rows) == FLOWS
    assert table.column_names == list(rows[0])
    for mine, theirs in zip(table.to_pylist(), rows, strict=True):
        assert {name: "" if value is None else str(value) for name, value in mine.items()} == theirs
    run = world.get(f"/experiments/{experiment}")["runs"][1]["id"]
    some = world.client.get(f"{BASE}/experiments/{experiment}/flows.parquet?run={run}")
    assert set(pyarrow.parquet.read_table(io.BytesIO(some.get_data()))["run_id"].to_pylist()) == {run}
    world.get(f"/experiments/{experiment}/flows.parquet?run=999", 404)
    world.get("/experiments/999/flows.parquet", 404)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_are_pictures(world: World, experiment: int, kind: str) -> None:
    names = [one["name"] for one in world.get(f"/experiments/{experiment}/figures")["figures"]]
    assert names == ["completion-times", "by-size", "path-balance", "modes"]
    for name in names if kind == "svg" else names[:1]:
        answer = world.client.get(f"{BASE}/experiments/{experiment}/figures/{name}.{kind}")
        world.check("GET", f"/experiments/{experiment}/figures/{name}.{kind}", answer)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        image = answer.get_data()
        assert image.startswith(b"<?xml" if kind == "svg" else b"\x89PNG")
        assert len(image) > 5000


@pytest.mark.slow
def test_a_run_that_is_kept_while_a_figure_is_drawn_is_no_part_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reading of the runs and that of their flows a running experiment's next run is stored."""
    number = new_experiment(world.store, "running")
    world.store.add_run(number, run_row(0), [flow_row(one) for one in range(50)], [])
    read = ExperimentStore.all_flows

    def one_run_later(self: ExperimentStore, experiment: int, run: int | None) -> Iterator[dict[str, Any]]:
        self.add_run(experiment, run_row(1, "ecmp", scheme="ecmp"), [flow_row(one) for one in range(50)], [])
        return read(self, experiment, run)

    path = f"/experiments/{number}/figures/completion-times.svg"
    before = world.client.get(BASE + path).get_data()
    monkeypatch.setattr(ExperimentStore, "all_flows", one_run_later)
    assert world.get(path).encode() == before
    monkeypatch.undo()
    assert world.client.get(BASE + path).get_data() != before, "the next drawing has it"


def test_figures_that_cannot_be_say_so(world: World, experiment: int) -> None:
    said = world.get(f"/experiments/{experiment}/figures/mode.svg", 404)
    assert said["detail"] == "there is no figure 'mode'; did you mean 'modes'?"
    empty = new_experiment(world.store, "empty")
    assert world.get(f"/experiments/{empty}/figures") == {"figures": []}, (
        "none is offered that cannot be drawn"
    )
    for name in ("completion-times", "modes"):
        assert (
            "has not enough for figure"
            in world.get(f"/experiments/{empty}/figures/{name}.svg", 404)["detail"]
        )
    world.get("/experiments/999/figures", 404)


@pytest.mark.slow
def test_figures_that_wait_have_a_number_and_others_are_answered(
    world: World, experiment: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first is not done before the pipe is written; what waits behind it takes no more threads than it may."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "slow.py").write_text(f"print(open({str(pipe)!r}).read(), end='')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made: list[bytes] = []
    waiting = [
        threading.Thread(target=lambda: made.append(printed("a figure", "drawn", ("slow",), ())))
        for _ in range(MOST_WAITING)
    ]
    for thread in waiting:
        thread.start()
    path = f"/experiments/{experiment}/figures/by-size.svg"

    def is_full() -> bool:
        if PLACES.acquire(blocking=False):
            PLACES.release()
            return False
        return True

    eventually(is_full)
    assert "others wait" in world.get(f"/experiments/{experiment}/figures/by-size.svg", 503)["detail"]
    assert API_THREADS > MOST_WAITING
    for number in range(MOST_WAITING):
        pipe.write_text("x")
        eventually(lambda number=number: len(made) > number)
    for thread in waiting:
        thread.join()
    assert made == [b"x"] * MOST_WAITING
    assert world.client.get(BASE + path).status_code == 200, "there is room again"


def test_an_answer_that_the_client_has_is_not_sent_again(world: World, experiment: int) -> None:
    path = f"/experiments/{experiment}/results"
    first = world.client.get(BASE + path)
    tag = first.headers["ETag"]
    assert tag
    headers = {"If-None-Match": tag}
    world.ask("GET", path, 304, headers=headers)
    world.store.add_run(experiment, run_row(7, "drb"), [], [])
    changed = world.client.get(BASE + path, headers=headers)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    assert "ETag" not in world.client.get(f"{BASE}/health").headers, "what changes by itself has none"
    for same in ("/schemes", "/openapi.json", "/docs"):
        tag = world.client.get(BASE + same).headers["ETag"]
        world.ask("GET", same, 304, headers={"If-None-Match": f'"other", {tag}'})


class Reader(HTMLParser):
    """Checks that tags close as they open, and takes the anchors and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "link", "img", "form"), "self-contained, and without scripts"
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                assert value is not None
                assert value not in self.ids, "twice"
                self.ids.add(value)
            elif name == "href":
                assert value is not None
                self.links.add(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_all_of_the_document_and_needs_nothing_else(world: World) -> None:
    answer = world.client.get(f"{BASE}/docs")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    reader = Reader()
    reader.feed(answer.get_data(as_text=True))
    assert reader.open == []
    document: dict[str, Any] = world.document
    for path, operations in document["paths"].items():
        assert path in reader.text
        for operation in operations.values():
            assert f"do-{operation['operationId']}" in reader.ids
            assert operation["summary"] in reader.text
    assert {f"type-{name}" for name in document["components"]["schemas"]} <= reader.ids
    for link in reader.links:
        if link.startswith("#"):
            assert link[1:] in reader.ids, "leads somewhere"
        else:
            assert link == "openapi.json" or link in document["paths"], "on this controller"
    assert json.dumps("slow-link") in reader.text
