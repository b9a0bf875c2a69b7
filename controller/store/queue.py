"""The queue of submitted experiments: who waits, who runs, whose worker was lost. Plain data in, plain data out.

A sweep is an experiment whose points are experiments of their own; its state follows from theirs, and when all have
finished it is work once more: putting their results together. Every change is one transaction, so a process that is
killed at any moment leaves a queue that can be gone on with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from controller.store.experiments import StateError
from controller.store.models import Experiment, Job, Run
from controller.store.queue_lock import QueueLock
from controller.store.queue_order import (
    Waiting,
    backlog,
    finished_sweeps,
    next_job,
    standing,
    waiting_submissions,
)
from controller.store.queue_rows import (
    ACTIVE,
    AGAIN,
    AtWork,
    Change,
    begin,
    both,
    change_of,
    lock,
    parent_of,
    points_of,
    settle,
    stand_still,
    top,
)

Kind = Literal["experiment", "sweep", "point"]
_OF_EXPERIMENT: Final = ("name", "seed", "spec", "simulated")
"""Fields of a `NewJob` that are the experiment's, not its place's in the queue."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """One experiment to queue. runs: number of them; estimated_s: seconds that they may take; see `Job`.

    simulated: packet by packet, by a worker that has no lab. record: the window that is recorded, as `Job` has it.
    """

    name: str
    title: str
    seed: int
    spec: Mapping[str, Any]
    text: str
    runs: int
    estimated_s: float
    fabric: str = ""
    at: tuple[Any, ...] | None = None
    words: str = ""
    simulated: bool = False
    record: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a worker is to run. kept: (label, repeat, number) of runs that are there already.

    record: the window that is recorded, as `Job` has it.
    """

    experiment: int
    parent: int | None
    attempt: int
    spec: dict[str, Any]
    fabric: str
    kept: tuple[tuple[str, int, int], ...] = ()
    simulated: bool = False
    record: Mapping[str, Any] | None = None


class ExperimentQueue:
    """Over one engine; safe to call from any thread. What changes states returns the `Change`s, points first."""

    def __init__(self, engine: Engine) -> None:
        # transactions read before they write: SQLite would refuse them half-way
        self._engine = engine.execution_options(capstan_begin="IMMEDIATE")
        self._reading = engine
        self.lock = QueueLock(engine)
        """Of the controller that runs what is queued."""

    def submit(self, job: NewJob, points: Sequence[NewJob] = ()) -> int:
        """Queue an experiment, or a sweep of *points*. Return its number."""
        now = time.time()
        with Session(self._engine) as session, session.begin():
            number = _add(
                session,
                job,
                kind="sweep" if points else "experiment",
                parent=None,
                point=None,
                points=len(points),
                now=now,
            )
            for index, point in enumerate(points):
                _add(session, point, kind="point", parent=number, point=index, points=0, now=now)
            return number

    def claim(
        self, worker: str, fabric: str = "", simulated: bool | None = None
    ) -> tuple[Claimed, list[Change]] | None:
        """Return the next job for *worker*, which has a lab of *fabric* up already; None if there is none.

        First come, first served; of a sweep's points those of the same fabric come first. simulated: only simulations,
        or only what needs a lab; None: both.
        """
        with Session(self._engine) as session, session.begin():
            while (row := session.execute(next_job(fabric, simulated)).first()) is not None:
                number, parent = row
                if parent is not None:
                    lock(session, parent)  # before its point, as all others do
                experiment, job = both(session, number, lock=True)
                if experiment.state != "queued":
                    continue  # another worker was quicker
                experiment.state, experiment.error = "running", ""
                begin(job, worker)
                claimed = _claimed(session, experiment, job)
                return claimed, [change_of(experiment, job), *settle(session, parent)]
            return None

    def going_on(self, number: int, attempt: int) -> bool:
        """Return whether the worker of this attempt is still to go on. Raises NotFoundError."""
        with Session(self._reading) as session:
            experiment, job = both(session, number)
            return experiment.state == "running" and job.attempt == attempt

    def end(
        self,
        number: int,
        attempt: int,
        state: Literal["finished", "failed", "interrupted", "queued"],
        *,
        summary: Mapping[str, Any] | None = None,
        error: str = "",
        stopping: bool = False,
    ) -> list[Change]:
        """End an attempt; return the changes. One that was to be cancelled is, unless it finished all the same.

        "queued" puts it back into the queue. stopping: the controller ends, and begins nothing more.

        Raises NotFoundError; StateError if that attempt is over already.
        """
        with Session(self._engine) as session, session.begin():
            parent = parent_of(session, number)
            if parent is not None:
                lock(session, parent)
            experiment, job = both(session, number, lock=True)
            if experiment.state not in ACTIVE or job.attempt != attempt:
                raise StateError(
                    f"attempt {attempt} of experiment {number} is over: it is {experiment.state}"
                )
            if experiment.state == "cancelling" and state != "finished":
                experiment.state, experiment.error = "cancelled", ""
            else:
                experiment.state, experiment.error = state, error
            if summary is not None:
                experiment.summary = dict(summary)
            job.worker = ""
            if experiment.state == "queued":
                job.started_at = None  # the pause does not count
            else:
                experiment.finished_at = time.time()
            if stopping or experiment.state == "queued":
                stand_still(session, parent)
            return [change_of(experiment, job), *settle(session, parent)]

    def equip(
        self, number: int, attempt: int, versions: Mapping[str, Any], machine: Mapping[str, Any]
    ) -> None:
        """Keep with what an attempt is run. Raises NotFoundError, StateError."""
        with Session(self._engine) as session, session.begin():
            experiment, job = both(session, number, lock=True)
            if experiment.state not in ACTIVE or job.attempt != attempt:
                raise StateError(
                    f"attempt {attempt} of experiment {number} is over: it is {experiment.state}"
                )
            experiment.versions, experiment.machine = dict(versions), dict(machine)

    def cancel(self, number: int) -> list[Change]:
        """Cancel what waits, have what runs stopped; return the changes. Raises NotFoundError, StateError."""
        with Session(self._engine) as session, session.begin():
            experiment, job = top(session, number)
            if experiment.state not in ("queued", *ACTIVE):
                raise StateError(f"experiment {number} is {experiment.state}: nothing is left to cancel")
            changes = []
            for part, its in (*points_of(session, number), (experiment, job)):
                if part.state not in ("queued", "running") or its.kind == "sweep":
                    continue
                over = part.state == "queued"
                part.state = "cancelled" if over else "cancelling"
                part.finished_at = time.time() if over else None
                changes.append(change_of(part, its))
            if job.kind == "sweep":
                experiment.state = "cancelling"
                changes += settle(session, number) or [change_of(experiment, job)]
            return changes

    def rerun(self, number: int) -> list[Change]:
        """Queue again what has not finished; return the changes; kept runs stay. Raises NotFoundError, StateError."""
        with Session(self._engine) as session, session.begin():
            experiment, job = top(session, number)
            if experiment.state not in AGAIN:
                raise StateError(
                    f"experiment {number} is {experiment.state}: only one that is {', '.join(AGAIN)} is run again"
                )
            changes = []
            for part, its in (*points_of(session, number), (experiment, job)):
                if part.state not in AGAIN:
                    continue
                part.state, part.error, part.finished_at = "queued", "", None
                its.worker, its.started_at = "", None
                changes.append(change_of(part, its))
            job.queued_at = time.time()
            return changes

    def whole(self) -> list[tuple[int, dict[str, Any], list[tuple[list[Any], dict[str, Any]]]]]:
        """Return the sweeps whose points have all finished and that have yet to be put together.

        Number, spec, and of each point what its axes show and its summary.
        """
        with Session(self._reading) as session:
            sweeps = []
            for number in session.scalars(finished_sweeps()).all():
                experiment, _ = both(session, number)
                points = [(its.at or [], point.summary or {}) for point, its in points_of(session, number)]
                sweeps.append((number, experiment.spec, points))
            return sweeps

    def complete(self, number: int, summary: Mapping[str, Any] | None, error: str = "") -> list[Change]:
        """End a sweep, as finished, or as failed without a summary; return the changes: none if it is over already."""
        with Session(self._engine) as session, session.begin():
            experiment, job = both(session, number, lock=True)
            if experiment.state not in ("queued", "running"):
                return []
            experiment.state, experiment.error = ("failed" if summary is None else "finished"), error
            experiment.summary = None if summary is None else dict(summary)
            experiment.finished_at = time.time()
            return [change_of(experiment, job)]

    def active(self) -> list[AtWork]:
        """Return all that workers are at, in the order of experiments."""
        query = (
            select(Experiment.id, Job.attempt, Job.worker, Experiment.simulated)
            .join(Job, Job.experiment_id == Experiment.id)
            .where(Job.worker != "")
        )
        with Session(self._reading) as session:
            return [AtWork(*row) for row in session.execute(query.order_by(Experiment.id))]

    def waiting(self) -> tuple[int, list[int]]:
        """Return how many jobs may be claimed now, and the numbers of the submissions that wait, the next first."""
        with Session(self._reading) as session:
            return waiting_submissions(session)

    def backlog(self) -> list[Waiting]:
        """Return what may be claimed now, by submission, the next first."""
        with Session(self._reading) as session:
            return backlog(session)

    def standing(self, number: int) -> list[dict[str, Any]]:
        """Return an experiment, and its points if it is a sweep, with `runs_kept` of each. Raises NotFoundError."""
        with Session(self._reading) as session:
            return standing(session, number)

    def text(self, number: int) -> str:
        """Return the spec as it was submitted. Raises NotFoundError."""
        with Session(self._reading) as session:
            return both(session, number)[1].text

    def parent(self, number: int) -> int | None:
        """Return the sweep of which it is a point; None if it is none. Raises NotFoundError."""
        with Session(self._reading) as session:
            return parent_of(session, number)


def _add(
    session: Session,
    job: NewJob,
    *,
    kind: Kind,
    parent: int | None,
    point: int | None,
    points: int,
    now: float,
) -> int:
    experiment = Experiment(
        name=job.name,
        seed=job.seed,
        spec=dict(job.spec),
        versions={},
        machine={},
        state="queued",
        created_at=now,
        simulated=job.simulated,
    )
    session.add(experiment)
    session.flush()
    fields = {name: value for name, value in asdict(job).items() if name not in _OF_EXPERIMENT}
    fields["at"] = None if job.at is None else list(job.at)
    own = {"kind": kind, "parent": parent, "point": point, "points": points, "queued_at": now}
    session.add(Job(experiment_id=experiment.id, started_at=None, attempt=0, worker="", **fields, **own))
    return experiment.id


def _claimed(session: Session, experiment: Experiment, job: Job) -> Claimed:
    number = experiment.id
    runs = session.execute(
        select(Run.label, Run.repeat, Run.id).where(Run.experiment_id == number).order_by(Run.id)
    )
    return Claimed(
        number,
        job.parent,
        job.attempt,
        experiment.spec,
        job.fabric,
        tuple((label, repeat, run) for label, repeat, run in runs),
        experiment.simulated,
        job.record,
    )
