"""The store at size: how fast flow records are kept, and how long a page of them takes among five million.

Records go in as the API hands them over (`ExperimentStore.add_run`). The five million are then made by the database
itself, from those: copies of runs, which takes a minute instead of five. Pages are asked for from any place of an
experiment, of all its runs and of one. `CAPSTAN_BENCH_DATABASE` (an SQLAlchemy URL of an empty database) measures
another database than SQLite.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Engine, insert, literal, select

from benchmarks.figures import Figure, document, percentile
from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.listing import PageQuery
from controller.store.models import FlowRecord, Run

RECORDS: Final = 5_000_000
OF_A_RUN: Final = 20_000
MEASURED_RUNS: Final = 10
PAGE: Final = 200
"""Records of a page, as the dashboard asks for them."""
PAGES: Final = 200
INSERT_GOAL: Final = 20_000.0
PAGE_GOAL_MS: Final = 50.0
URL: Final = "CAPSTAN_BENCH_DATABASE"


def run(records: int = RECORDS, of_a_run: int = OF_A_RUN, pages: int = PAGES) -> dict[str, Any]:
    """Return all figures. *records*: in the database at the end, *of_a_run* each run."""
    with _database() as engine:
        store = ExperimentStore(engine)
        number = int(store.create("bench", 1, {}, versions={}, machine={})["id"])
        rates = [_keep(store, number, repeat, of_a_run) for repeat in range(MEASURED_RUNS)]
        _fill(engine, number, of_a_run, records)
        rng = np.random.default_rng(1)
        among = [_keep(store, number, 10**6 + repeat, of_a_run) for repeat in range(3)]
        runs = [run["id"] for run in store.experiment(number)["runs"]]
        took = {
            "page_of_experiment": [
                _page(store, number, None, int(after)) for after in rng.integers(0, records, pages)
            ],
            "page_of_run": [
                _page(store, number, int(run), int(rng.integers(0, records)))
                for run in rng.choice(runs, pages)
            ],
            "page_of_experiments": [_timed(lambda: store.page(PageQuery(50))) for _ in range(20)],
        }
        size = _size(engine)
        dialect = engine.dialect.name
    figures = {
        "kept": Figure(statistics.median(rates), "records/s", INSERT_GOAL, "higher"),
        "kept_among_all": Figure(statistics.median(among), "records/s", INSERT_GOAL, "higher"),
    }
    for name, seconds in took.items():
        figures[f"{name}_median"] = Figure(statistics.median(seconds), "ms")
        figures[f"{name}_p99"] = Figure(percentile(seconds, 99), "ms", PAGE_GOAL_MS)
    if size is not None:
        figures["size"] = Figure(size / 1e9, "GB")
    return document(figures, (f"{dialect}, {records} records in runs of {of_a_run}; pages of {PAGE}",))


@contextmanager
def _database() -> Iterator[Engine]:
    url = os.environ.get(URL)
    with tempfile.TemporaryDirectory(prefix="capstan-bench-") as directory:
        engine = open_database(url or f"sqlite:///{Path(directory) / 'capstan.db'}")
        try:
            yield engine
        finally:
            engine.dispose()


def _size(engine: Engine) -> int | None:
    path = engine.url.database if engine.dialect.name == "sqlite" else None
    return None if path is None else Path(path).stat().st_size


def _keep(store: ExperimentStore, number: int, repeat: int, count: int) -> float:
    """Return the records a second of a run that is kept."""
    flows = [_flow(index) for index in range(count)]
    head = {
        "scheme": "caps",
        "label": "caps",
        "repeat": repeat,
        "seed": repeat,
        "started_at": 0.0,
        "finished_at": 1.0,
        "cpu_limited": False,
        "cpu": {},
        "measures": {},
        "mode_events_complete": True,
    }
    began = time.perf_counter()
    store.add_run(number, head, flows, [])
    return count / (time.perf_counter() - began)


def _flow(number: int) -> dict[str, Any]:
    """Return a record as experiments make it: every field that a finished short flow has."""
    return {
        "flow": number,
        "source": f"h{number % 16}",
        "destination": f"h{(number + 5) % 16}",
        "traffic_class": "short",
        "state": "finished",
        "size_bytes": 52_000 + number,
        "source_port": 20_000,
        "destination_port": 7000,
        "planned_s": number * 1e-3,
        "started_s": number * 1e-3,
        "finished_s": number * 1e-3 + 0.07,
        "fct_s": 0.07,
        "bytes_acked": 52_000 + number,
        "retransmissions": 0,
        "rtt_ms": 3.1,
        "packets": 38,
        "repairs": 4,
        "recovered": 1,
        "paths": {str(2049 + path): 3 for path in range(8)},
    }


def _fill(engine: Engine, experiment: int, of_a_run: int, records: int) -> None:
    """Copy the first run, by the database itself, until there are *records*."""
    columns = [column for column in FlowRecord.__table__.columns if column.name not in ("id", "run_id")]
    heads = [column for column in Run.__table__.columns if column.name not in ("id", "repeat")]
    with engine.begin() as connection:
        first = connection.scalar(
            select(Run.id).where(Run.experiment_id == experiment).order_by(Run.id).limit(1)
        )
        for repeat in range(MEASURED_RUNS, records // of_a_run):
            head = select(*heads, literal(repeat)).where(Run.id == first)
            made = connection.execute(
                insert(Run).from_select([*(head.name for head in heads), "repeat"], head).returning(Run.id)
            ).scalar_one()
            flows = select(literal(made), *columns).where(FlowRecord.run_id == first)
            connection.execute(
                insert(FlowRecord).from_select(["run_id", *(column.name for column in columns)], flows)
            )


def _page(store: ExperimentStore, number: int, run: int | None, after: int) -> float:
    return _timed(lambda: store.flows(number, run, after, PAGE))


def _timed(work: Any) -> float:
    """Return what it takes, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
