"""Each route of the application, asked in every wrong way: no answer has a status that its description leaves out.

`test_api_contract.py` asks a served controller as its document says; here what a document does not say is done as well.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest
from sqlalchemy import text
from werkzeug.exceptions import NotFound

from controller.api.server import ApiSettings, make_app
from engine.serving import experiments_extension
from tests.unit.api_world import World, api_world

JSON = "application/json"
OPERATE, READ = "a token that may do all", "a token that may only read"
WRONG_BODIES: Final[dict[str, dict[str, Any]]] = {
    "none": {},
    "no JSON": {"data": b"{", "content_type": JSON},
    "another type": {"data": b"x", "content_type": "text/plain"},
    "YAML": {"data": b"a: [", "content_type": "application/yaml"},
    "a list": {"json": []},
    "an empty object": {"json": {}},
    "a wrong field": {"json": {"no_such_field": 1}},
    "deep": {"data": b"[" * 100_000, "content_type": JSON},
    "surrogates": {"data": b'{"x": "\\ud800"}', "content_type": JSON},
}
HEADS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "a stream": {"Accept": "text/event-stream"},
    "an image": {"Accept": "image/webp"},
    "another host": {"Host": "elsewhere.example"},
    "another origin": {"Origin": "http://elsewhere.example"},
    "a tag": {"If-None-Match": "*"},
    "a wrong tag": {"If-None-Match": '"x'},
    "a range": {"Range": "bytes=0-3"},
    "a key": {"Idempotency-Key": "x" * 300},
}
NAMES: Final = ("1", "999999", "0" * 30, "x", "%ff", "a b", "9" * 19)
QUERIES: Final = ("", "?limit=x", "?limit=0&since=-1", "?format=none", "?run=x&part=x&host=%00", "?topics=,")


@dataclass
class Route:
    """An operation of the document: its statuses are all that it may give."""

    method: str
    path: str
    statuses: set[int]
    query: tuple[str, ...]
    seen: set[int] = field(default_factory=set)

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"

    def paths(self) -> list[str]:
        names = re.findall(r"\{\w+\}", self.path)
        if not names:
            return [self.path]
        return [re.sub(r"\{\w+\}", name, self.path) for name in NAMES]

    def targets(self) -> Iterator[str]:
        """Yield paths with queries: each path once, and each wrong value of each parameter."""
        paths = self.paths()
        wrong = [
            f"?{name}={value}" for name in self.query for value in ("", "x", "-1", "9" * 40, "%00", "%ff")
        ]
        yield from (path + query for path, query in itertools.product(paths[:1], (*QUERIES, *wrong)))
        yield from paths[1:]


def routes(document: dict[str, Any]) -> list[Route]:
    found = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            query = tuple(one["name"] for one in operation["parameters"] if one["in"] == "query")
            found.append(Route(method.upper(), path, {int(one) for one in operation["responses"]}, query))
    return found


def ask(world: World, route: Route, target: str, what: str, **more: Any) -> None:
    answer = world.client.open(target, method=route.method, **more)
    said = f"{route.label}: {target} ({what}) -> {answer.status_code}: {answer.get_data(as_text=True)[:200]}"
    answer.close()
    assert answer.status_code != 500, said
    try:
        world.app.url_map.bind("localhost").match(unquote(target.partition("?")[0]), route.method)
    except NotFound:  # as letters where a number has to be: no path of any route
        assert answer.status_code == 404, said
        return
    route.seen.add(answer.status_code)
    assert answer.status_code in route.statuses, said


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with api_world(tmp_path_factory.mktemp("statuses")) as made:
        yield made


@pytest.mark.slow
def test_no_wrong_request_has_an_answer_that_is_not_described(world: World) -> None:
    for route in routes(world.document):
        for target in route.targets():
            ask(world, route, target, "plain")
        for what, headers in HEADS.items():
            ask(world, route, route.paths()[0], what, headers=headers)
        if route.method != "GET":
            for what, body in WRONG_BODIES.items():
                ask(world, route, route.paths()[0], what, **body)


def test_bodies_that_are_too_long(world: World) -> None:
    body = b" " * (65 << 20)
    for route in routes(world.document):
        ask(world, route, route.paths()[0], "long", data=body, content_type=JSON)


@pytest.mark.slow
def test_tokens_that_are_missing_or_may_only_read(world: World) -> None:
    settings = ApiSettings(OPERATE, False, READ)
    make_extension = experiments_extension(1, dask=None)
    extension = make_extension(world.engine, world.store, world.running.events.add, "secret")
    app = make_app(world.running, world.store, settings, "0.1.0", extension=extension)
    client = app.test_client(use_cookies=False)  # POST /session gives one
    guarded = World(world.running, world.engine, world.store, app, client, world.directory, world.document)
    for route in routes(world.document):
        for token in ("", READ, OPERATE):
            ask(
                guarded, route, route.paths()[0], token, headers={"Authorization": f"Bearer {token}"}, json={}
            )
        assert 401 in route.seen, route.label


@pytest.mark.slow
def test_a_database_without_its_tables(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        with world.engine.begin() as connection:
            connection.execute(text("PRAGMA foreign_keys = OFF"))
            for (name,) in connection.execute(
                text("SELECT name FROM sqlite_master WHERE type = 'table'")
            ).all():
                connection.execute(text(f'DROP TABLE "{name}"'))
        asked = routes(world.document)
        for route in asked:
            ask(world, route, route.paths()[0], "no tables", json=None if route.method == "GET" else {})
        assert 503 in set().union(*(route.seen for route in asked))
