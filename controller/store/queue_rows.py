"""Experiments with their places in the queue as rows, and how a sweep's state follows from its points'."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from controller.store.experiments import NotFoundError, StateError
from controller.store.models import Experiment, Job

ACTIVE: Final = ("running", "cancelling")
AGAIN: Final = ("failed", "cancelled", "interrupted")
"""States from which an experiment may be run again."""


@dataclass(frozen=True, slots=True)
class Change:
    """An experiment that is now in another state."""

    experiment: int
    parent: int | None
    name: str
    state: str
    error: str


@dataclass(frozen=True, slots=True)
class AtWork:
    """What a worker is at. worker: its name, "@", and its machine and process."""

    experiment: int
    attempt: int
    worker: str
    simulated: bool

    @property
    def name(self) -> str:
        """Return the worker's name."""
        return self.worker.partition("@")[0]

    def is_on(self, machine: str) -> bool:
        """Return whether the worker is on a machine of that name."""
        return self.worker.partition("@")[2].startswith(f"{machine}:")


def begin(job: Job, worker: str) -> None:
    """Note that a worker begins with a job: one more attempt."""
    job.worker = worker
    job.attempt += 1
    if job.started_at is None:
        job.started_at = time.time()


def lock(session: Session, number: int) -> None:
    """Lock this sweep against being settled elsewhere until this transaction ends (SQLite has one writer anyway)."""
    session.execute(select(Experiment.id).where(Experiment.id == number).with_for_update())


def both(session: Session, number: int, lock: bool = False) -> tuple[Experiment, Job]:
    """Return an experiment and its job. lock: until the transaction ends. Raise NotFoundError."""
    query = (
        select(Experiment, Job).join(Job, Job.experiment_id == Experiment.id).where(Experiment.id == number)
    )
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    row = session.execute(query).first()
    if row is None:
        raise NotFoundError(f"there is no experiment {number} that was submitted here")
    return row[0], row[1]


def top(session: Session, number: int) -> tuple[Experiment, Job]:
    """Return both, locked, of what was submitted as a whole. Raise NotFoundError; StateError for a point of a sweep."""
    experiment, job = both(session, number, lock=True)
    if job.parent is not None:
        raise StateError(f"experiment {number} is a point of sweep {job.parent}: ask for that one")
    return experiment, job


def parent_of(session: Session, number: int) -> int | None:
    """Return the sweep that an experiment is a point of, or None. Raise NotFoundError."""
    row = session.execute(select(Job.parent).where(Job.experiment_id == number)).first()
    if row is None:
        raise NotFoundError(f"there is no experiment {number} that was submitted here")
    return None if row[0] is None else int(row[0])


def points_of(session: Session, number: int) -> list[tuple[Experiment, Job]]:
    """Return the points of a sweep, in order; of anything else an empty list."""
    rows = session.execute(
        select(Experiment, Job)
        .join(Job, Job.experiment_id == Experiment.id)
        .where(Job.parent == number)
        .order_by(Job.point)
    )
    return [(row[0], row[1]) for row in rows]


def change_of(experiment: Experiment, job: Job) -> Change:
    """Return the state that an experiment is in now, for those who are to know of the change."""
    return Change(experiment.id, job.parent, experiment.name, experiment.state, experiment.error)


def settle(session: Session, sweep: int | None) -> list[Change]:
    """Set the state of a sweep by those of its points. Return what changed, if it did."""
    if sweep is None:
        return []
    session.flush()
    experiment, job = both(session, sweep, lock=True)
    points = points_of(session, sweep)
    state = sweep_state(
        experiment.state, [point.state for point, _ in points], any(its.attempt for _, its in points)
    )
    if job.started_at is None and any(point.state in ACTIVE for point, _ in points):
        job.started_at = time.time()
    if state == experiment.state:
        return []
    experiment.state = state
    if state in AGAIN:
        experiment.finished_at = time.time()
        experiment.error = _words(points)
    session.flush()
    return [change_of(experiment, job)]


def stand_still(session: Session, sweep: int | None) -> None:
    """Note that the controller ends: a sweep that waits, with no point at work, counts from when it goes on."""
    if sweep is None:
        return
    states = {point.state for point, _ in points_of(session, sweep)}
    if "queued" not in states or states & set(ACTIVE):
        return
    both(session, sweep)[1].started_at = None


def sweep_state(now: str, points: Iterable[str], begun: bool) -> str:
    """Return the state of a sweep that is in state *now*, whose points are in these states.

    begun: a point was begun. When all points have finished the sweep goes on running: it has yet to be put together.
    """
    present = set(points)
    if present & set(ACTIVE):
        return "cancelling" if now == "cancelling" else "running"
    if "queued" in present:
        return "running" if begun else "queued"
    if present == {"finished"}:
        return "cancelled" if now == "cancelling" else "running"
    if now == "cancelling":
        return "cancelled"
    return next(state for state in ("failed", "interrupted", "cancelled") if state in present)


def _words(points: Sequence[tuple[Experiment, Job]]) -> str:
    """Return what became of the points that did not finish."""
    bad = [(point, its) for point, its in points if point.state != "finished"]
    first = next(((point, its) for point, its in bad if point.error), None)
    text = f"{len(bad)} of {len(points)} points did not finish"
    return text if first is None else f"{text}; {first[1].words}: {first[0].error}"
