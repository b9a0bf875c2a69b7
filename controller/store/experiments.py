"""Keeping and finding experiments, runs, flows and mode events: plain data in, plain data out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Engine, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from capstan_client.errors import CapstanError
from controller.store import listing
from controller.store.flow_records import BATCH, insert_flows, page_of_flows
from controller.store.listing import Page, PageQuery, place_of
from controller.store.models import Base, Compared, Experiment, FlowRecord, Job, ModeEvent, Recording, Run
from controller.store.room import MOST_BYTES, check_room

WINDOW: Final = ("from_ms", "for_ms", "hops", "cut")
"""What a run shows of its recording."""


class NotFoundError(CapstanError, LookupError):
    """No experiment or run of that number."""


class StateError(CapstanError, RuntimeError):
    """The experiment is not in a state that allows it."""


class ExperimentStore:
    """All of it, over one engine; safe to call from any thread."""

    def __init__(self, engine: Engine, most_bytes: int = MOST_BYTES) -> None:
        """Keep in a database that may have *most_bytes*, by `check_room`."""
        self._engine = engine
        self._most_bytes = most_bytes

    def check_room(self) -> None:
        """Raise FullError if no more results are to be kept."""
        check_room(self._engine, self._most_bytes)

    def create(
        self,
        name: str,
        seed: int,
        spec: Mapping[str, Any],
        *,
        versions: Mapping[str, Any],
        machine: Mapping[str, Any],
        simulated: bool = False,
    ) -> dict[str, Any]:
        """Return a new running experiment."""
        with Session(self._engine) as session, session.begin():
            experiment = Experiment(
                name=name,
                seed=seed,
                spec=dict(spec),
                versions=dict(versions),
                machine=dict(machine),
                created_at=time.time(),
                simulated=simulated,
            )
            session.add(experiment)
            session.flush()
            return _with_job(experiment, None)

    def experiment(self, number: int, runs: bool = True) -> dict[str, Any]:
        """Return one experiment with its runs. Raises NotFoundError."""
        with Session(self._engine) as session:
            experiment = _get(session, number)
            data = _with_job(experiment, session.get(Job, number))
            if runs:
                windows = _windows(session, number)
                data["runs"] = [{**_plain(run), "recording": windows.get(run.id)} for run in experiment.runs]
            return data

    def page(self, wanted: PageQuery) -> Page:
        """Return the experiments *wanted* as `listing.page` reads them."""
        with Session(self._engine) as session:
            return listing.page(session, wanted)

    def heads(self, wanted: PageQuery) -> Page:
        """Return the same experiments as `page`, of each what a list shows: a few hundred bytes."""
        with Session(self._engine) as session:
            return listing.heads(session, wanted)

    def children(self, number: int) -> list[dict[str, Any]]:
        """Return the points of a sweep, in order; none of anything else."""
        query = (
            select(
                Experiment.id, Experiment.state, Experiment.error, Job.point, Job.at, Job.words, Compared.part
            )
            .join(Job, Job.experiment_id == Experiment.id)
            .outerjoin(Compared, Compared.experiment_id == Experiment.id)
            .where(Job.parent == number)
            .order_by(Job.point)
        )
        with Session(self._engine) as session:
            return [
                {
                    **{name: getattr(row, name) for name in ("point", "at", "words", "id", "state", "error")},
                    "cpu_limited": None if row.part is None else row.part.get("cpu_limited"),
                }
                for row in session.execute(query)
            ]

    def add_run(
        self,
        experiment_id: int,
        run: Mapping[str, Any],
        flows: Iterable[Mapping[str, Any]],
        modes: Sequence[Mapping[str, Any]],
        *,
        attempt: int | None = None,
        recording: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keep a finished run with flows, mode events and recording (a row of `Recording`), or nothing; return the run.

        A run may be reported twice (same label, repeat and start): it is kept once, and then has an ``again``.

        attempt: of an experiment that was submitted: in which it was run.

        Raises:
            NotFoundError, StateError: the experiment is not running, has this label and repeat already from another
                time, or is at another attempt.
        """
        more = {
            "mode_events": len(modes),
            "recording": None if recording is None else {name: recording[name] for name in WINDOW},
        }
        try:
            with Session(self._engine) as session, session.begin():
                _lock_running(session, experiment_id, ("running", "cancelling"))
                job = session.get(Job, experiment_id)
                if job is not None and job.attempt != attempt:
                    raise StateError(
                        f"experiment {experiment_id} is run by its worker, in attempt {job.attempt}"
                    )
                row = Run(experiment_id=experiment_id, **run)
                session.add(row)
                session.flush()
                insert_flows(session.connection(), row.id, flows)
                if modes:
                    session.execute(insert(ModeEvent), [{**mode, "run_id": row.id} for mode in modes])
                if recording is not None:
                    session.execute(insert(Recording), [{**recording, "run_id": row.id}])
                return {**_plain(row), **more}
        except IntegrityError:
            again = self._kept(experiment_id, run)
            if again is not None:  # its answer was lost on the way
                return {**again, **more, "again": True}
            raise StateError(
                f"experiment {experiment_id} has repeat {run['repeat']} of {run['label']!r} already"
            ) from None

    def _kept(self, experiment_id: int, run: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the very same run, if it is here already."""
        same = [getattr(Run, name) == run[name] for name in ("label", "repeat", "started_at")]
        with Session(self._engine) as session:
            stored = session.scalars(
                select(Run).where(Run.experiment_id == experiment_id, *same)
            ).one_or_none()
            return None if stored is None else _plain(stored)

    def finish(
        self, number: int, state: str, summary: Mapping[str, Any] | None = None, error: str = ""
    ) -> dict[str, Any]:
        """End an experiment as finished, failed or cancelled; return it. It may be ended twice, if in the same way.

        Raises:
            NotFoundError, StateError: it has ended otherwise, or its worker ends it.
        """
        kept = None if summary is None else dict(summary)
        with Session(self._engine) as session, session.begin():
            try:
                experiment = _lock_running(session, number)
            except StateError:
                ended = _get(session, number)
                if (ended.state, ended.error, ended.summary) != (state, error, kept):
                    raise
                return _with_job(ended, session.get(Job, number))  # its answer was lost on the way
            if session.get(Job, number) is not None:
                raise StateError(
                    f"experiment {number} was submitted: its worker ends it", remedy="cancel it instead"
                )
            experiment.state, experiment.error = state, error
            experiment.summary = kept
            experiment.finished_at = time.time()
            session.flush()
            return _with_job(experiment, None)

    def flows(self, number: int, run: int | None, after: int, limit: int) -> list[dict[str, Any]]:
        """Return the flow records with a number above *after*, oldest first. Raises NotFoundError."""
        with Session(self._engine) as session:
            return page_of_flows(session.connection(), _run_ids(session, number, run), after, limit)

    def all_flows(self, number: int, run: int | None) -> Iterator[dict[str, Any]]:
        """Yield all flow records, in pages."""
        after = 0
        while page := self.flows(number, run, after, BATCH):
            yield from page
            after = page[-1]["id"]

    def recording(self, run: int) -> bytes | None:
        """Return the file of a run's recording; None: it has none."""
        with Session(self._engine) as session:
            return session.scalar(select(Recording.file).where(Recording.run_id == run))

    def modes(self, number: int, run: int | None) -> list[dict[str, Any]]:
        """Return the mode events of an experiment or of one run, in order. Raises NotFoundError."""
        with Session(self._engine) as session:
            ids = _run_ids(session, number, run)
            query = select(ModeEvent).where(ModeEvent.run_id.in_(ids)).order_by(ModeEvent.id)
            rows = [_plain(event) for event in session.scalars(query)]
        return [{"run": row.pop("run_id"), **{key: row[key] for key in row if key != "id"}} for row in rows]


def flow_columns() -> list[str]:
    """Return names of a flow record's columns, in order."""
    return [column.name for column in FlowRecord.__table__.columns]


def _with_job(experiment: Experiment, job: Job | None) -> dict[str, Any]:
    """Return an experiment as plain data, with its place in the queue if it was submitted."""
    return {**_plain(experiment), **place_of(job)}


def _get(session: Session, number: int) -> Experiment:
    experiment = session.get(Experiment, number)
    if experiment is None:
        raise NotFoundError(f"there is no experiment {number}")
    return experiment


def _lock_running(session: Session, number: int, states: Sequence[str] = ("running",)) -> Experiment:
    """Return the experiment, if in one of these *states*, locked against changes until this transaction ends.

    The first statement writes, so that the database lets one transaction at a time past it; to read the state
    first and to write later would let two end one experiment.
    """
    touched = session.execute(
        update(Experiment)
        .where(Experiment.id == number, Experiment.state.in_(states))
        .values(state=Experiment.state)
        .returning(Experiment.id)
    )
    locked = touched.scalar_one_or_none() is not None
    experiment = _get(session, number)
    if not locked:
        raise StateError(f"experiment {number} is {experiment.state}, not running")
    return experiment


def _windows(session: Session, number: int) -> dict[int, dict[str, Any]]:
    """Return what is shown of the recordings of an experiment's runs, by run."""
    shown = [getattr(Recording, name) for name in WINDOW]
    query = select(Recording.run_id, *shown).join(Run, Run.id == Recording.run_id)
    rows = session.execute(query.where(Run.experiment_id == number))
    return {run: dict(zip(WINDOW, values, strict=True)) for run, *values in rows}


def _run_ids(session: Session, number: int, run: int | None) -> list[int]:
    """Return the ids of runs of an experiment, or of all points of a sweep."""
    _get(session, number)
    points = select(Job.experiment_id).where(Job.parent == number)
    own = (Run.experiment_id == number) | Run.experiment_id.in_(points)
    ids = list(session.scalars(select(Run.id).where(own).order_by(Run.id)))
    if run is None:
        return ids
    if run not in ids:
        raise NotFoundError(f"experiment {number} has no run {run}")
    return [run]


def _plain(row: Base) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in inspect(row).mapper.column_attrs}
