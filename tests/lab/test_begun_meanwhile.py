"""Experiments that are begun by the API while `run --keep` and a demo have a fabric up."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from capstan_client.client import Capstan
from capstan_client.controller import ControllerClient
from tests.waiting import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[2]
SPEC: Final[dict[str, Any]] = {
    "name": "least",
    "title": "Few flows",
    "fabric": {
        "leaves": 2,
        "spines": 2,
        "hosts_per_leaf": 1,
        "link": {"rate_mbps": 10},
        "access": {"rate_mbps": 20},
    },
    "schemes": ["ecmp"],
    "workload": {
        "flows": {
            "count": 5,
            "sizes": {"kind": "fixed", "bytes": 20000},
            "arrivals": {"rate_per_s": 10},
        }
    },
    "warm_up_s": 0.2,
}
DEMO = """
import sys
from pathlib import Path
from cli.lab_runs import asked_for, run_in_lab
from cli.sizing import sized
from cli.specs import SpecChanges

asked = asked_for(sys.argv[1], SpecChanges(), None)
run_in_lab(asked, sized(asked.spec, fitting=False, scale=None), Path(sys.argv[2]), None, demo=True)
"""
"""`capstan demo` on a spec of ours in place of its own, which takes three minutes."""


@pytest.fixture
def least(tmp_path: Path) -> Path:
    file = tmp_path / "least.yaml"
    file.write_text(json.dumps(SPEC))
    return file


@contextmanager
def started(directory: Path, *command: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start Python with *command*; its process, and the file of what it prints on its error output."""
    errors = directory / "errors"
    with errors.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        yield process, errors
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate()


def page_of(process: subprocess.Popen[str], errors: Path) -> str:
    """Return the URL of its controller, once it has one."""

    def found() -> str | None:
        assert process.poll() is None, errors.read_text()
        line = re.search(r"^page (\S+)/watch ", errors.read_text(), re.MULTILINE)
        return line[1] if line else None

    return str(eventually(found, errors.read_text, 120))


def experiments(results: Path) -> list[tuple[str, str]]:
    """Return names and states of what the database has, the first experiment first."""
    with closing(sqlite3.connect(results / "capstan.db")) as database:
        return database.execute("select name, state from experiments order by id").fetchall()


def test_experiments_begun_while_a_fabric_is_kept_run_on_it_or_beside_it(least: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with started(tmp_path, "-m", "cli", "run", str(least), "--keep", "--results", str(results)) as (
        process,
        errors,
    ):
        page = page_of(process, errors)
        with Capstan(page) as client:
            here = client.submit(spec=SPEC, name="here", schemes=["rps"])
            beside = client.submit(spec=SPEC, name="beside", set={"fabric.spines": 1})
            for experiment in (here, beside):
                experiment.wait()
                assert {flow["state"] for flow in experiment.flows()} == {"finished"}
            switches = {switch["name"] for switch in client.fabric()["switches"]}
        with ControllerClient(page) as controller:
            eventually(lambda: controller.scheme()["base"] == "ecmp", "the scheme of the run, not of `here`")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors.read_text()
    assert switches == {"l1", "l2", "s1", "s2"}, "the fabric that is kept stays as it is"
    assert out.count("Completion time of short flows") == 1
    assert "Traceback" not in errors.read_text()
    assert experiments(results) == [("least", "finished"), ("here", "finished"), ("beside", "finished")]


def test_an_experiment_begun_during_a_demo_runs_after_it_and_ends_it(least: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    arrivals = {"rate_per_s": 0.5}  # so it goes on for as long as a busy machine needs to submit
    flows = {**SPEC["workload"]["flows"], "arrivals": arrivals}
    least.write_text(json.dumps({**SPEC, "workload": {"flows": flows}}))
    with started(tmp_path, "-c", DEMO, str(least), str(results)) as (process, errors):
        with Capstan(page_of(process, errors)) as client:
            client.submit(spec=SPEC, name="meanwhile", schemes=["rps"])
        out, _ = process.communicate(timeout=240)
    said = errors.read_text()
    assert process.returncode == 0, said
    assert "Completion time of short flows" in out
    begun, ended = "(meanwhile) runs", "(meanwhile) has finished"
    assert said.index("run 1 of 1") < said.index(begun) < said.index(ended)
    # in either order: the page is there before the demo's own experiment is in the database
    assert sorted(experiments(results)) == [("least", "finished"), ("meanwhile", "finished")]
