"""Which jobs wait, in which order they are claimed, and how far each submission is, as the queue's tables say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from controller.store.models import Experiment, Job, Run
from controller.store.queue_rows import both


@dataclass(frozen=True, slots=True)
class Waiting:
    """So many jobs of a submission that may be claimed now."""

    submission: int
    simulated: bool
    jobs: int


def next_job(fabric: str, simulated: bool | None) -> Select[int, int | None]:
    """Return what is to be claimed next (number, sweep), by whom has a lab of *fabric*; simulated: as `claim`."""
    sweep = aliased(Job)
    query = (
        select(Experiment.id, Job.parent)
        .join(Job, Job.experiment_id == Experiment.id)
        .outerjoin(sweep, sweep.experiment_id == Job.parent)
        .where(Experiment.state == "queued", Job.kind != "sweep")
        .order_by(
            func.coalesce(sweep.queued_at, Job.queued_at),
            func.coalesce(Job.parent, Job.experiment_id),
            Job.fabric != fabric,
            Job.point,
        )
        .limit(1)
    )
    return query if simulated is None else query.where(Experiment.simulated.is_(simulated))


def finished_sweeps() -> Select[int]:
    """Return the sweeps whose points have all finished, and that are not put together yet."""
    point, of_point = aliased(Job), aliased(Experiment)
    unfinished = (
        select(point.experiment_id)
        .join(of_point, of_point.id == point.experiment_id)
        .where(point.parent == Experiment.id, of_point.state != "finished")
        .correlate(Experiment)
        .exists()
    )
    return (
        select(Experiment.id)
        .join(Job, Job.experiment_id == Experiment.id)
        .where(Experiment.state.in_(("queued", "running")), Job.kind == "sweep", ~unfinished)
        .order_by(Experiment.id)
    )


def waiting_submissions(session: Session) -> tuple[int, list[int]]:
    """Return how many jobs may be claimed now, and the numbers of the submissions that wait, the next first."""
    queued = session.execute(
        select(func.coalesce(Job.parent, Job.experiment_id), func.count())
        .join(Experiment, Experiment.id == Job.experiment_id)
        .where(Experiment.state == "queued", Job.kind != "sweep")
        .group_by(func.coalesce(Job.parent, Job.experiment_id))
    ).all()
    tops = {int(top) for top, _ in queued}
    order = list(
        session.scalars(
            select(Experiment.id)
            .join(Job, Job.experiment_id == Experiment.id)
            .where(Experiment.id.in_(tops), Experiment.state == "queued")
            .order_by(Job.queued_at, Experiment.id)
        )
    )
    return sum(count for _, count in queued), order


def backlog(session: Session) -> list[Waiting]:
    """Return what may be claimed now, by submission, the next first."""
    of, sweep = func.coalesce(Job.parent, Job.experiment_id), aliased(Job)
    queued_at = func.coalesce(sweep.queued_at, Job.queued_at)
    query = (
        select(of, Experiment.simulated, func.count())
        .join(Experiment, Experiment.id == Job.experiment_id)
        .outerjoin(sweep, sweep.experiment_id == Job.parent)
        .where(Experiment.state == "queued", Job.kind != "sweep")
        .group_by(of, Experiment.simulated, queued_at)
        .order_by(queued_at, of)
    )
    return [Waiting(number, simulated, jobs) for number, simulated, jobs in session.execute(query)]


def standing(session: Session, number: int) -> list[dict[str, Any]]:
    """Return an experiment, and its points if it is a sweep, with `runs_kept` of each. Raises NotFoundError."""
    both(session, number)
    finished_runs = (
        select(func.count()).where(Run.experiment_id == Experiment.id).correlate(Experiment).scalar_subquery()
    )
    rows = session.execute(
        select(
            Experiment.id,
            Experiment.state,
            Experiment.error,
            Experiment.finished_at,
            Experiment.simulated,
            Job,
            finished_runs,
        )
        .join(Job, Job.experiment_id == Experiment.id)
        .where((Experiment.id == number) | (Job.parent == number))
        .order_by(Job.parent.is_not(None), Job.point)
    )
    names = ("id", "state", "error", "finished_at", "simulated")
    of_job = (
        "kind",
        "point",
        "at",
        "words",
        "runs",
        "estimated_s",
        "started_at",
        "attempt",
        "worker",
    )
    return [
        dict(zip(names, of_experiment, strict=True))
        | {name: getattr(job, name) for name in of_job}
        | {"runs_kept": runs_kept}
        for *of_experiment, job, runs_kept in rows
    ]
