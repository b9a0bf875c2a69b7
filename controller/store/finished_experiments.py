"""Experiments that are kept when they are over, with all their runs at once: those of programs without a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, insert
from sqlalchemy.orm import Session

from controller.store.flow_records import insert_flows
from controller.store.models import Experiment, ModeEvent, Run


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A row of `Run` without its numbers, and its flows and mode events."""

    run: Mapping[str, Any]
    flows: Sequence[Mapping[str, Any]]
    modes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class FinishedExperiment:
    """One experiment with its results. Times are Unix seconds."""

    name: str
    seed: int
    spec: Mapping[str, Any]
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    created_at: float
    finished_at: float
    summary: Mapping[str, Any]
    simulated: bool
    runs: Sequence[FinishedRun]


def keep_finished(engine: Engine, experiments: Sequence[FinishedExperiment]) -> list[int]:
    """Keep experiments, all or none of them; return their numbers."""
    with Session(engine.execution_options(capstan_begin="IMMEDIATE")) as session, session.begin():
        return [_keep(session, experiment) for experiment in experiments]


def _keep(session: Session, experiment: FinishedExperiment) -> int:
    row = Experiment(
        name=experiment.name,
        seed=experiment.seed,
        spec=dict(experiment.spec),
        versions=dict(experiment.versions),
        machine=dict(experiment.machine),
        state="finished",
        summary=dict(experiment.summary),
        created_at=experiment.created_at,
        finished_at=experiment.finished_at,
        simulated=experiment.simulated,
    )
    session.add(row)
    session.flush()
    for finished in experiment.runs:
        run = Run(experiment_id=row.id, **finished.run)
        session.add(run)
        session.flush()
        insert_flows(session.connection(), run.id, finished.flows)
        if finished.modes:
            session.execute(insert(ModeEvent), [{**mode, "run_id": run.id} for mode in finished.modes])
    return row.id
