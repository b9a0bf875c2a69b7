"""Routes about experiments: what the runner reports, and what people read of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from collections.abc import Iterator
from typing import Any

from flask import Blueprint, Response

from controller.api.bodies import EndBody, ExperimentBody, RunBody, body, number
from controller.running import RunningController
from controller.store.experiments import ExperimentStore, flow_columns


def experiment_routes(running: RunningController, store: ExperimentStore) -> Blueprint:
    """The blueprint."""
    routes = Blueprint("experiments", __name__, url_prefix="/api/v1/experiments")

    @routes.post("")
    def create() -> tuple[dict[str, Any], int]:
        wanted = body(ExperimentBody)
        return store.create(wanted.name, wanted.seed, wanted.spec, wanted.versions, wanted.machine), 201

    @routes.get("")
    def listing() -> dict[str, Any]:
        limit = number("limit", 50, 1, 500) or 50
        found = store.experiments(number("before", None), limit)
        return {"experiments": found, "next": found[-1]["id"] if len(found) == limit else None}

    @routes.get("/<int:experiment>")
    def one(experiment: int) -> dict[str, Any]:
        return store.experiment(experiment)

    @routes.patch("/<int:experiment>")
    def end(experiment: int) -> dict[str, Any]:
        wanted = body(EndBody)
        return store.finish(experiment, wanted.state, wanted.summary, wanted.error)

    @routes.post("/<int:experiment>/runs")
    def add_run(experiment: int) -> tuple[dict[str, Any], int]:
        wanted = body(RunBody)
        finished_at = wanted.finished_at if wanted.finished_at is not None else time.time()
        modes = running.mode_events(wanted.started_at, finished_at)
        run = {
            "scheme": wanted.scheme,
            "label": wanted.label or wanted.scheme,
            "repeat": wanted.repeat,
            "seed": wanted.seed,
            "started_at": wanted.started_at,
            "finished_at": finished_at,
            "cpu_limited": wanted.cpu_limited,
            "cpu": wanted.cpu,
            "measures": wanted.measures,
            "mode_events_complete": running.events.began_at() <= wanted.started_at,
        }
        flows = [dataclasses.asdict(flow) for flow in wanted.flows]
        return store.add_run(experiment, run, flows, modes), 201

    @routes.get("/<int:experiment>/results")
    def results(experiment: int) -> dict[str, Any]:
        data = store.experiment(experiment)
        return {"runs": data.pop("runs"), "summary": data.pop("summary"), "experiment": data}

    @routes.get("/<int:experiment>/flows")
    def flows(experiment: int) -> dict[str, Any]:
        limit = number("limit", 1000, 1, 10_000) or 1000
        found = store.flows(experiment, number("run", None), number("after", 0) or 0, limit)
        return {"flows": found, "next": found[-1]["id"] if len(found) == limit else None}

    @routes.get("/<int:experiment>/flows.csv")
    def flows_csv(experiment: int) -> Response:
        run = number("run", None)
        store.flows(experiment, run, 0, 1)  # a wrong number is told before the first byte goes out

        def lines() -> Iterator[str]:
            buffer = io.StringIO()
            writer = csv.DictWriter(buffer, flow_columns())
            writer.writeheader()
            for flow in store.all_flows(experiment, run):
                writer.writerow({**flow, "paths": json.dumps(flow["paths"])})
                if buffer.tell() > 65536:
                    yield _drain(buffer)
            yield _drain(buffer)

        return Response(lines(), mimetype="text/csv")

    @routes.get("/<int:experiment>/modes")
    def modes(experiment: int) -> dict[str, Any]:
        return {"modes": store.modes(experiment, number("run", None))}

    return routes


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
