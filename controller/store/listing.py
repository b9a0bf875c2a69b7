"""Pages of experiments, newest first, with no more bytes than lists need: a summary may have 64 MiB."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from sqlalchemy import Select, Text, cast, func, inspect, select
from sqlalchemy.orm import Session, defer

from controller.store.models import Compared, Experiment, Job

MOST_LISTED_BYTES: Final = 8 << 20
"""Of specs, versions and machines on one page of a list, which may have 1 MiB each."""
_RECORDED: Final[dict[str, Any]] = {
    "kind": "recorded",
    "title": "",
    "parent": None,
    "point": None,
    "at": None,
    "words": "",
    "points": 0,
    "started_at": None,
    "attempt": 0,
    "record": None,
}
"""What an experiment shows of its place in the queue, where it was not submitted."""
_HEAD: Final = ("id", "name", "state", "simulated", "created_at", "finished_at")
_HEAD_OF_JOB: Final = ("kind", "points", "started_at")
"""Of both tables, what a head has: nothing whose length a spec or its results decide."""
Page = tuple[list[dict[str, Any]], int | None]
"""Experiments, and the number below which to go on; None: at the end."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which experiments a page of a list has, newest first."""

    limit: int
    """At most so many."""
    before: int | None = None
    """Only those with a number below this; None: from the newest on."""
    points: bool = True
    """Those of sweeps, too."""
    parent: int | None = None
    """Only the points of this sweep; None: of any."""
    state: str | None = None


def page(session: Session, wanted: PageQuery) -> Page:
    """Return the experiments *wanted*; of their summaries only what is to be compared is read.

    There are fewer than the limit where they would have more than `MOST_LISTED_BYTES`.
    """
    columns = (Experiment.spec, Experiment.versions, Experiment.machine)
    size = sum(
        (func.length(cast(column, Text)) for column in columns[1:]), func.length(cast(columns[0], Text))
    )
    lengths = [
        (number, length) for number, length in session.execute(_newest(select(Experiment.id, size), wanted))
    ]
    total = list(accumulate(length for _, length in lengths))
    numbers = [
        number for (number, _), so_far in zip(lengths, total, strict=True) if so_far <= MOST_LISTED_BYTES
    ]
    numbers = numbers or [number for number, _ in lengths[:1]]
    rows = (
        select(Experiment, Job, Compared.part)
        .outerjoin(Job, Job.experiment_id == Experiment.id)
        .outerjoin(Compared, Compared.experiment_id == Experiment.id)
        .where(Experiment.id.in_(numbers))
        .order_by(Experiment.id.desc())
        .options(defer(Experiment.summary, raiseload=True))
    )
    listed = [_listed(experiment, job, part) for experiment, job, part in session.execute(rows)]
    return listed, numbers[-1] if len(lengths) == wanted.limit or len(numbers) < len(lengths) else None


def heads(session: Session, wanted: PageQuery) -> Page:
    """Return the same experiments as `page`, of each what a list shows: a few hundred bytes."""
    columns = [getattr(Experiment, name) for name in _HEAD] + [getattr(Job, name) for name in _HEAD_OF_JOB]
    rows = [dict(row) for row in session.execute(_newest(select(*columns), wanted)).mappings()]
    listed = [row if row["kind"] else row | {name: _RECORDED[name] for name in _HEAD_OF_JOB} for row in rows]
    return listed, listed[-1]["id"] if len(listed) == wanted.limit else None


def place_of(job: Job | None) -> dict[str, Any]:
    """Return what an experiment shows of its place in the queue; None: it was not submitted."""
    return {name: getattr(job, name) for name in _RECORDED} if job is not None else dict(_RECORDED)


def _newest(query: Select[Any], wanted: PageQuery) -> Select[Any]:
    """Return *query*, of experiments and their jobs, newest first, with the conditions of *wanted*."""
    query = query.outerjoin(Job, Job.experiment_id == Experiment.id)
    query = query.order_by(Experiment.id.desc()).limit(wanted.limit)
    if wanted.before is not None:
        query = query.where(Experiment.id < wanted.before)
    if wanted.parent is not None:
        query = query.where(Job.parent == wanted.parent)
    elif not wanted.points:
        query = query.where(Job.parent.is_(None))
    return query if wanted.state is None else query.where(Experiment.state == wanted.state)


def _listed(experiment: Experiment, job: Job | None, part: dict[str, Any] | None) -> dict[str, Any]:
    """Return an experiment as plain data, but of its summary, which was not read, the *part* that lists show."""
    columns = (column.key for column in inspect(experiment).mapper.column_attrs)
    own = {name: getattr(experiment, name) for name in columns if name != "summary"}
    return {**own, "summary": part, **place_of(job)}
