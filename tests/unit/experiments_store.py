"""Rows for tests of the store, and a program that writes until it is killed."""

from __future__ import annotations

import gzip
import sys
from typing import Any

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore


def run_row(repeat: int = 0, label: str = "caps", **changes: Any) -> dict[str, Any]:
    """Return a finished run as the API hands it to the store."""
    return {
        "scheme": "caps",
        "label": label,
        "repeat": repeat,
        "seed": 17,
        "started_at": 1_760_000_000.0,
        "finished_at": 1_760_000_015.0,
        "cpu_limited": False,
        "cpu": {"idle_share": 0.41},
        "measures": {"short": {"n": 3, "afct_ms": 71.0}},
        "mode_events_complete": True,
        **changes,
    }


def flow_row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "flow": number,
        "source": "h1",
        "destination": "h5",
        "traffic_class": "short",
        "state": "finished",
        "size_bytes": 52_000 + number,
        "fct_s": 0.07,
        "paths": {"1": 3, "2": number},
        **changes,
    }


def recording_row() -> dict[str, Any]:
    """Return a run's recording as the API hands it to the store: some gzip, for all that the store knows."""
    file = gzip.compress(b"{}", mtime=0)
    return {"from_ms": 180.0, "for_ms": 412.5, "hops": 7, "cut": False, "file": file}


def new_experiment(store: ExperimentStore, name: str = "one", seed: int = 1) -> int:
    number: int = store.create(
        name, seed, {"name": name}, versions={"capstan": "0.1.0"}, machine={"cores": 4}
    )["id"]
    return number


def write_for_ever(url: str) -> None:
    """Add runs of 300 flows, and print a run's number once the store has returned."""
    store = ExperimentStore(open_database(url))
    experiment = new_experiment(store)
    print("experiment", experiment, flush=True)
    repeat = 0
    while True:
        row = store.add_run(
            experiment,
            run_row(repeat),
            [flow_row(number) for number in range(300)],
            [{"at_s": 0.1, "leaf": "l1", "mode": "on", "cause": "first-packet"}],
        )
        print("run", row["id"], flush=True)
        repeat += 1


if __name__ == "__main__":
    write_for_ever(sys.argv[1])
