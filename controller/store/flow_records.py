"""Flow records by the million: kept in batches, read in pages, deleted by age. Core SQL: an object a row costs more."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, func, or_, select

from controller.store.models import Experiment, FlowRecord, ModeEvent, Recording, Run

BATCH: Final = 1000
_TABLE: Final = FlowRecord.__table__
_COLUMNS: Final = tuple(column.name for column in _TABLE.columns if column.name != "id")
_EMPTY: Final[dict[str, Any]] = {"paths": {}, "error": ""}
_GOING: Final = 20_000
"""Records that are deleted in one transaction: others want to write, too."""


def insert_flows(connection: Connection, run: int, flows: Iterable[Mapping[str, Any]]) -> None:
    """Keep the records of a run. Raises IntegrityError for one that lacks a field that has to be there."""
    marks = ", ".join(["?" if connection.dialect.paramstyle == "qmark" else "%s"] * len(_COLUMNS))
    statement = f"INSERT INTO {FlowRecord.__tablename__} ({', '.join(_COLUMNS)}) VALUES ({marks})"
    rows = (_row(run, flow) for flow in flows)
    while batch := list(itertools.islice(rows, BATCH)):
        connection.exec_driver_sql(statement, batch)


def _row(run: int, flow: Mapping[str, Any]) -> tuple[Any, ...]:
    record = {**_EMPTY, **flow, "run_id": run}
    record["paths"] = json.dumps(record["paths"])
    return tuple([record.get(name) for name in _COLUMNS])


def page_of_flows(
    connection: Connection, runs: Sequence[int], after: int, limit: int
) -> list[dict[str, Any]]:
    """Return the first *limit* records of *runs* with a number above *after*, by number.

    A run's records are next to each other mostly, so few runs have any in a page. Which ones shows in each run's first
    number above *after*, a look into the index; all records of all runs would have to be sorted otherwise.
    """
    first = (
        select(func.min(_TABLE.c.id))
        .where(_TABLE.c.run_id == Run.id, _TABLE.c.id > after)
        .correlate(Run)
        .scalar_subquery()
    )
    page: list[dict[str, Any]] = []
    begins = [
        (begin, run)
        for start in range(0, len(runs), BATCH)
        for run, begin in connection.execute(
            select(Run.id, first).where(Run.id.in_(runs[start : start + BATCH]))
        )
        if begin is not None
    ]
    for begin, run in sorted(begins):
        if len(page) == limit and begin > page[-1]["id"]:
            break
        query = select(_TABLE).where(_TABLE.c.run_id == run, _TABLE.c.id > after)
        rows = connection.execute(query.order_by(_TABLE.c.id).limit(limit)).mappings()
        page = sorted([*page, *map(dict, rows)], key=lambda row: int(row["id"]))[:limit]
    return page


def forget_flows(engine: Engine, before: float, ending: Callable[[], bool] = lambda: False) -> int:
    """Delete records, mode events and recordings of experiments that ended before *before*; return how many records.

    before: Unix seconds. ending: asked before each transaction whether the rest is to be left for another time: there
    may be millions. The experiments, their runs with their measures and their summaries stay.
    """
    with engine.connect() as connection:
        old = select(Experiment.id).where(Experiment.finished_at < before, Experiment.state != "running")
        kept = [
            select(run_id).where(run_id == Run.id).exists()
            for run_id in (FlowRecord.run_id, ModeEvent.run_id, Recording.run_id)
        ]
        query = select(Run.id).where(Run.experiment_id.in_(old), or_(*kept)).order_by(Run.id)
        runs = list(connection.scalars(query))
    gone = 0
    writing = engine.execution_options(capstan_begin="IMMEDIATE")
    for run in runs:
        while True:
            if ending():
                return gone
            with writing.begin() as connection:
                some = select(_TABLE.c.id).where(_TABLE.c.run_id == run).order_by(_TABLE.c.id).limit(_GOING)
                count = connection.execute(delete(FlowRecord).where(_TABLE.c.id.in_(some))).rowcount
            gone += count
            if count < _GOING:
                break
        with writing.begin() as connection:
            connection.execute(delete(ModeEvent).where(ModeEvent.run_id == run))
            connection.execute(delete(Recording).where(Recording.run_id == run))
    return gone
