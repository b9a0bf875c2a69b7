"""The API over a real controller: control plane, OpenFlow port, agents' channel and database, all but switches.

Every answer that a test gets is held against the API's own OpenAPI document: by `World.ask` as a whole, and of all
others the status, once the test is over.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask, Response, request
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from controller.agents.settings import ChannelSettings
from controller.api.server import ApiSettings, make_app
from controller.lifecycle import RunningController
from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.finished_flows import FinishedFlowStore
from engine.serving import experiments_extension
from protocol.control import FlowEntry, FlowReport, PolicyApplied, Report, SetPolicy
from tests.unit.agents_channel import TOKEN, agent_config, running_channel
from tests.waiting import eventually

BASE = "/api/v1"
WORKER_SECRET = "what workers of this machine show"


@dataclass
class World:
    """A controller, its application and a client of it."""

    running: RunningController
    engine: Engine
    store: ExperimentStore
    app: Flask
    client: FlaskClient
    directory: Path
    document: dict[str, Any]

    def ask(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        """Return the answer's JSON (text, if it is none), once status and schema are as they have to be."""
        answer = self.client.open(BASE + path, method=method, **more)
        assert answer.status_code == status, answer.get_data(as_text=True)
        self.check(method, path, answer)
        return answer.get_json() if answer.is_json else answer.get_data(as_text=True)

    def get(self, path: str, status: int = 200) -> Any:
        return self.ask("GET", path, status)

    def check(self, method: str, path: str, answer: TestResponse) -> None:
        """Assert that the document describes this answer."""
        described = self._operation(method, BASE + path.partition("?")[0])
        if described is None:
            assert answer.status_code in (401, 404, 405), f"{method} {path} is not described"
            return
        reported = described["responses"][str(answer.status_code)]
        if answer.status_code == 304:
            assert "content" not in reported
            assert not answer.get_data()
            return
        contents = reported["content"]
        assert answer.mimetype in contents
        assert len(contents) == 1 or set(contents) == {"application/json", "text/event-stream"}
        if answer.is_json:
            schema = contents[answer.mimetype]["schema"]
            Draft202012Validator({**schema, "components": self.document["components"]}).validate(
                answer.get_json()
            )

    def _operation(self, method: str, path: str) -> dict[str, Any] | None:
        for template, operations in sorted(
            self.document["paths"].items()
        ):  # "/flows/report" before "/flows/{flow}"
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
                found: dict[str, Any] | None = operations.get(method.lower())
                return found
        return None


@contextmanager
def api_world(
    directory: Path, token: str | None = None, lab: bool = True, scheme: str = "ecmp"
) -> Iterator[World]:
    """Yield a controller with its files in *directory*; stop it at the end."""
    engine = open_database(f"sqlite:///{directory / 'capstan.db'}")
    store = ExperimentStore(engine)
    running = RunningController(
        key=b"0123456789abcdef",
        openflow=("127.0.0.1", 0),
        channel=ChannelSettings(directory / "agents.sock", directory / "members.json"),
        token=TOKEN,
        state_file=directory / "scheme.json",
        initial=(scheme, 0.004),
        finished_flows=FinishedFlowStore(engine, "world"),
    )
    extension = experiments_extension(1, dask=None)(
        engine, store, running.events.add, WORKER_SECRET
    )  # not started: nothing is run
    app = make_app(running, store, ApiSettings(token, lab), "0.1.0", extension=extension)
    app.testing = False  # errors become answers, as for everybody
    given = _answers_of(app)
    running.start()
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        client = app.test_client()
        document = client.get(f"{BASE}/openapi.json", headers=headers).get_json()
        yield World(running, engine, store, app, client, directory, document)
        for operation, path, status in sorted(given):
            path = re.sub(r"<(?:[^:>]*:)?(\w+)>", r"{\1}", path)
            assert str(status) in document["paths"][path][operation]["responses"], (
                f"{operation.upper()} {path} was answered with {status}, which is not described"
            )
    finally:
        running.stop()


def _answers_of(app: Flask) -> set[tuple[str, str, int]]:
    """Return what will hold method, path and status of all that the routes of *app* answer."""
    given: set[tuple[str, str, int]] = set()

    @app.after_request
    def note(response: Response) -> Response:
        rule = request.url_rule
        if rule is not None and rule.rule.startswith(BASE) and request.method not in ("HEAD", "OPTIONS"):
            given.add((request.method.lower(), rule.rule, response.status_code))
        return response

    return given


FLOW = FlowEntry("sender", 6, "10.128.1.1", 1, "10.128.1.2", 2, "short", 3, 4, 0.0, 1.0, {"3": 3})


@contextmanager
def obedient_agent(world: World, number: int = 1, refuses: str = "") -> Iterator[None]:
    """Run an agent's channel that confirms policies (or refuses them, with this reason) and reports one flow."""
    ended = threading.Event()

    def obey() -> None:
        seen = 0
        while not ended.wait(0.005):
            new = agent.got[seen:]
            seen += len(new)
            for message in new:
                if isinstance(message, SetPolicy):
                    agent.channel.send(PolicyApplied(message.policy["version"], refuses))
                elif isinstance(message, Report):
                    agent.channel.send(FlowReport(message.id, [FLOW]))

    path = world.directory / "agents.sock"
    with running_channel(agent_config(f"unix:{path}", number), number) as agent:
        thread = threading.Thread(target=obey)
        thread.start()
        try:
            eventually(lambda: f"h{number}" in _connected(world), f"h{number} connected")
            yield
        finally:
            ended.set()
            thread.join()


def _connected(world: World) -> list[str]:
    version = world.running.current.version
    return [
        agent.host
        for agent in world.running.agents.agents()
        if agent.connected and (agent.policy_version == version or agent.policy_error)
    ]
