"""Keeping and finding experiments, runs, flows and mode events: plain data in, plain data out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from controller.store.flow_records import BATCH, insert_flows, page_of_flows
from controller.store.models import Base, Experiment, FlowRecord, ModeEvent, Run


class NotFoundError(LookupError):
    """No experiment or run of that number."""


class StateError(RuntimeError):
    """The experiment is not in a state that allows it."""


class ExperimentStore:
    """All of it, over one engine; safe to call from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(
        self,
        name: str,
        seed: int,
        spec: Mapping[str, Any],
        versions: Mapping[str, Any],
        machine: Mapping[str, Any],
    ) -> dict[str, Any]:
        """A new running experiment."""
        with Session(self._engine) as session, session.begin():
            experiment = Experiment(
                name=name,
                seed=seed,
                spec=dict(spec),
                versions=dict(versions),
                machine=dict(machine),
                created_at=time.time(),
            )
            session.add(experiment)
            session.flush()
            return _plain(experiment)

    def experiment(self, number: int, runs: bool = True) -> dict[str, Any]:
        """One experiment with its runs. Raises NotFoundError."""
        with Session(self._engine) as session:
            experiment = _get(session, number)
            data = _plain(experiment)
            if runs:
                data["runs"] = [_plain(run) for run in experiment.runs]
            return data

    def experiments(self, before: int | None, limit: int) -> list[dict[str, Any]]:
        """The newest first, those with a number below *before*."""
        query = select(Experiment).order_by(Experiment.id.desc()).limit(limit)
        if before is not None:
            query = query.where(Experiment.id < before)
        with Session(self._engine) as session:
            return [_plain(experiment) for experiment in session.scalars(query)]

    def add_run(
        self,
        experiment_id: int,
        run: Mapping[str, Any],
        flows: Sequence[Mapping[str, Any]],
        modes: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Keep a finished run with its flows and mode events, all or nothing.

        Raises:
            NotFoundError, StateError: the experiment is not running, or has this label and repeat already.
        """
        try:
            with Session(self._engine) as session, session.begin():
                _lock_running(session, experiment_id)
                row = Run(experiment_id=experiment_id, **run)
                session.add(row)
                session.flush()
                insert_flows(session.connection(), row.id, flows)
                if modes:
                    session.execute(insert(ModeEvent), [{**mode, "run_id": row.id} for mode in modes])
                return {**_plain(row), "mode_events": len(modes)}
        except IntegrityError:
            raise StateError(
                f"experiment {experiment_id} has repeat {run['repeat']} of {run['label']!r} already"
            ) from None

    def finish(
        self, number: int, state: str, summary: Mapping[str, Any] | None = None, error: str = ""
    ) -> dict[str, Any]:
        """End an experiment as finished or failed. Raises NotFoundError, StateError."""
        with Session(self._engine) as session, session.begin():
            experiment = _lock_running(session, number)
            experiment.state, experiment.error = state, error
            experiment.summary = dict(summary) if summary is not None else None
            experiment.finished_at = time.time()
            session.flush()
            return _plain(experiment)

    def flows(self, number: int, run: int | None, after: int, limit: int) -> list[dict[str, Any]]:
        """Flow records with a number above *after*, oldest first. Raises NotFoundError."""
        with Session(self._engine) as session:
            return page_of_flows(session.connection(), _run_ids(session, number, run), after, limit)

    def all_flows(self, number: int, run: int | None) -> Iterator[dict[str, Any]]:
        """All flow records, in pages."""
        after = 0
        while page := self.flows(number, run, after, BATCH):
            yield from page
            after = page[-1]["id"]

    def modes(self, number: int, run: int | None) -> list[dict[str, Any]]:
        """Mode events of an experiment or of one run, in order. Raises NotFoundError."""
        with Session(self._engine) as session:
            ids = _run_ids(session, number, run)
            query = select(ModeEvent).where(ModeEvent.run_id.in_(ids)).order_by(ModeEvent.id)
            rows = [_plain(event) for event in session.scalars(query)]
        return [{"run": row.pop("run_id"), **{key: row[key] for key in row if key != "id"}} for row in rows]


def flow_columns() -> list[str]:
    """Names of a flow record's columns, in order."""
    return [column.name for column in FlowRecord.__table__.columns]


def _get(session: Session, number: int) -> Experiment:
    experiment = session.get(Experiment, number)
    if experiment is None:
        raise NotFoundError(f"there is no experiment {number}")
    return experiment


def _lock_running(session: Session, number: int) -> Experiment:
    """The experiment, in which nobody else changes anything before this transaction ends.

    The first statement writes, so that the database lets one transaction at a time past it; to read the state
    first and to write later would let two end one experiment.
    """
    touched = session.execute(
        update(Experiment)
        .where(Experiment.id == number, Experiment.state == "running")
        .values(state="running")
        .returning(Experiment.id)
    )
    found = touched.scalar_one_or_none() is not None
    experiment = _get(session, number)
    if not found:
        raise StateError(f"experiment {number} is {experiment.state}, not running")
    return experiment


def _run_ids(session: Session, number: int, run: int | None) -> list[int]:
    _get(session, number)
    ids = list(session.scalars(select(Run.id).where(Run.experiment_id == number)))
    if run is None:
        return ids
    if run not in ids:
        raise NotFoundError(f"experiment {number} has no run {run}")
    return [run]


def _plain(row: Base) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in inspect(row).mapper.column_attrs}
