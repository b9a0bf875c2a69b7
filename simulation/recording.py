"""Simulated results in the store of experiments, where the API, the page and the client find them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from controller.store.database import open_database
from controller.store.finished_experiments import FinishedExperiment, FinishedRun, keep_finished
from experiments.results.document import Run, json_text
from experiments.results.run_record import run_body
from simulation.experiment import SimulatedPoint


def keep_simulated(url: str, points: Sequence[SimulatedPoint]) -> list[int]:
    """Keep simulated experiments, all or none, in the database of this SQLAlchemy URL; return their numbers.

    Raises:
        DatabaseError: it cannot be opened.
        SQLAlchemyError: it takes no more.
    """
    engine = open_database(url)
    try:
        return keep_finished(engine, [_experiment(point) for point in points])
    finally:
        engine.dispose()


def _experiment(point: SimulatedPoint) -> FinishedExperiment:
    document: dict[str, Any] = json.loads(json_text(point.document))
    return FinishedExperiment(
        name=point.spec.name,
        seed=point.spec.seed,
        spec=document["spec"],
        versions=document["versions"],
        machine=document["machine"],
        created_at=point.started,
        finished_at=point.started + point.document["duration_s"],
        summary=document,
        simulated=True,
        runs=[_run(run, point) for run in point.runs],
    )


def _run(run: Run, point: SimulatedPoint) -> FinishedRun:
    body = run_body(run, point.spec.seed, point.started)
    flows = body.pop("flows")
    modes = [{name: change[name] for name in ("at_s", "leaf", "mode", "cause")} for change in run.modes]
    return FinishedRun(body | {"mode_events_complete": True}, flows, modes)
