"""The API's description against the application and docs/api.md: nothing said that is not so, nothing left out."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from flask import Flask
from jsonschema import Draft202012Validator

from controller.api import views
from controller.api.describing import MOST, Open, With
from controller.api.openapi import openapi_document
from controller.api.schemas import Schemas
from controller.live.event_log import EventLog
from controller.live.topics import event_object
from controller.openflow.errors import SwitchError
from controller.plane.effects import ModeChanged
from controller.plane.naming import FabricNames
from controller.shell.shell_events import ModeSwitched, SwitchRefused
from controller.store.models import Run
from tests.unit.api_world import World, api_world
from tests.unit.fabric_shapes import CAPS, leaf_spine
from tests.unit.simulated_fabric import Simulation

DOCS = Path(__file__).resolve().parents[4] / "docs" / "api.md"
OPENAPI = json.loads(Path(__file__).parents[2].joinpath("openapi-3.1.schema.json").read_text())
"""The OpenAPI Initiative's schema of such documents (spec.openapis.org/oas/3.1/schema/2022-10-07, Apache-2.0)."""


@pytest.mark.slow
def test_the_document_is_openapi_3_1(world: World) -> None:
    assert world.document["openapi"] == "3.1.0"
    assert list(Draft202012Validator(OPENAPI).iter_errors(world.document)) == []
    for schema in world.document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    references = set(re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(world.document)))
    assert references == set(world.document["components"]["schemas"]), "none missing, none for nothing"
    for path, operations in world.document["paths"].items():
        for operation in operations.values():
            reported = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert reported == set(re.findall(r"\{(\w+)\}", path))


@pytest.mark.slow
def test_the_schema_of_openapi_is_not_content_with_anything(world: World) -> None:
    """The test above would be worth nothing if it were. One path is enough to see it, and is much quicker."""
    path = next(iter(world.document["paths"].items()))
    small = world.document | {"paths": dict([path])}
    validator = Draft202012Validator(OPENAPI)
    assert list(validator.iter_errors(small)) == []
    for change in ({"openapi": "2.0"}, {"info": {}}, {"paths": {"no-slash": {}}}, {"servers": 5}):
        assert list(validator.iter_errors(small | change))


@pytest.mark.slow
def test_with_a_token_the_document_says_so(tmp_path: Path) -> None:
    with api_world(tmp_path, token="a token of the API's own") as world:
        assert world.document["security"] == [{"token": []}]
        assert not list(Draft202012Validator(OPENAPI).iter_errors(world.document))


def described(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (method.upper(), re.sub(r"\{\w+\}", "*", path))
        for path, operations in document["paths"].items()
        for method in operations
    }


def test_the_document_has_every_route_and_only_those(world: World) -> None:
    routes = {
        (method, re.sub(r"<[^>]+>", "*", rule.rule))
        for rule in world.app.url_map.iter_rules()
        if rule.endpoint != "page.page"
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert described(world.document) == routes
    ids = [one["operationId"] for path in world.document["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)


def test_the_pages_for_people_have_every_route_and_only_those(world: World) -> None:
    text = DOCS.read_text()
    reported = {
        (method, "/api/v1" + re.sub(r"\b[A-Z]{2,}\b", "*", path))
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (?:/api/v1)?(/[\w/.]*)", text)
    }
    assert reported == described(world.document)


def test_the_pages_for_people_name_every_query_parameter_and_every_field_of_a_body(world: World) -> None:
    text = DOCS.read_text()
    for path, operations in world.document["paths"].items():
        for operation in operations.values():
            names = [one["name"] for one in operation["parameters"] if one["in"] == "query"]
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                name = schema["$ref"].rpartition("/")[2]
                names += world.document["components"]["schemas"][name]["properties"]
            for name in names:
                assert re.search(rf"\b{name}\b", text), f"{path}: {name} is not in docs/api.md"


def test_bodies_oblige_to_what_has_no_default(world: World) -> None:
    schemas = world.document["components"]["schemas"]
    assert schemas["ExperimentRequest"]["required"] == ["name", "seed", "spec"]
    assert schemas["SchemeRequest"]["properties"]["timeout_s"]["default"] == 10.0
    assert schemas["SchemeRequest"]["properties"]["scheme"]["anyOf"][0]["type"] == "string"
    assert schemas["ImpairmentRequest"]["properties"]["loss"] == {
        "type": "number", "minimum": 0, "maximum": 1, "default": 0.0,
    }  # fmt: skip
    assert schemas["FlowRequest"]["properties"]["state"] == {"enum": ["finished", "background", "failed"]}


def test_a_fabric_with_switches_links_and_modes_fits_its_description(world: World) -> None:
    """The other tests have no switches: views of a simulated fabric are held against the same schemas."""
    simulation = Simulation(leaf_spine(2, 4, 2), start=time.monotonic())
    simulation.set_scheme(CAPS)
    simulation.start()
    simulation.run(3.0)
    simulation.kill(next(iter(simulation.shape.leaves)))
    simulation.run(1.0)
    snapshot = simulation.plane.snapshot()
    events = EventLog()
    for event in simulation.events:
        events.add(event)
    leaf = snapshot.modes[0].leaf
    events.add(ModeChanged(time.monotonic(), leaf, "on", "first-packet"))
    events.add(SwitchRefused(time.monotonic(), SwitchError(leaf, "group 3", "OFPET_X", "OFPX_Y", 1.0)))
    events.add(ModeSwitched(time.monotonic(), leaf, "on", "first-packet", 1.0, 1.001, 1.002))
    for name, view in (
        ("FabricView", views.fabric_view(snapshot, {}, {})),
        ("ModesView", views.modes_view(snapshot, events, 0)),
        (
            "EventsView",
            {
                "events": [event_object(one, FabricNames(snapshot)) for one in events.since(0)],
                "cursor": 1,
            },
        ),
    ):
        schema = world.document["components"]["schemas"][name]
        plain = world.app.json.loads(world.app.json.dumps(view))
        Draft202012Validator({**schema, "components": world.document["components"]}).validate(plain)
    assert snapshot.links
    assert snapshot.modes


@dataclass
class Inner:
    number: int | None = None


@dataclass
class Outer:
    inner: list[Inner]
    choice: Literal["a", "b"] = "a"
    table: dict[str, tuple[float, ...]] = field(default_factory=dict)


class Head(TypedDict):
    kind: str


def test_types_become_schemas() -> None:
    components: dict[str, Any] = {}
    assert Schemas(components, whole=False).of(Outer) == {"$ref": "#/components/schemas/OuterRequest"}
    outer = components["OuterRequest"]
    assert outer["required"] == ["inner"]
    assert outer["properties"]["choice"] == {"enum": ["a", "b"], "default": "a"}
    assert outer["properties"]["table"]["additionalProperties"]["items"]["type"] == "number"
    assert components["InnerRequest"]["properties"]["number"]["anyOf"] == [
        {"type": "integer", "minimum": -MOST, "maximum": MOST},
        {"type": "null"},
    ]
    whole = Schemas(components, whole=True)
    assert whole.of(int) == {"type": "integer"}
    whole.of(list[Outer])
    assert components["Outer"]["required"] == ["inner", "choice", "table"]
    assert whole.of(Annotated[dict[str, Any], Open(Head)])["additionalProperties"] is True
    run = whole.of(Annotated[dict[str, Any], With(Run, {"mode_events": int})])
    assert run["required"][-1] == "mode_events"
    assert run["properties"]["cpu_limited"] == {"type": "boolean"}
    with pytest.raises(TypeError, match="no form in JSON"):
        whole.of(complex)


def test_two_types_of_one_name_are_refused() -> None:
    @dataclass
    class Inner:
        other: str

    schemas = Schemas({}, whole=True)
    schemas.of(Outer)
    with pytest.raises(TypeError, match="two types of the API are called 'Inner'"):
        schemas.of(Inner)


def test_a_route_without_a_description_is_an_error() -> None:
    app = Flask("x", static_folder=None)
    app.get("/bare")(lambda: {})
    with pytest.raises(LookupError, match="has no description: decorate it"):
        openapi_document(app, "1", False)
