"""A database that is full or gone in the middle of a run: said clearly, what was written stays, and it goes on."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.lab.engine_server import ROOT, TINY, Server, gone, serving
from tests.unit.postgresql import postgresql_server

pytestmark = pytest.mark.timeout(1200)
FULL = "the database refuses: database or disk is full; what it has taken before stays"
DOWN = r"the database refuses: .*; what it has taken before stays"
SPEC = {**TINY, "schemes": ["ecmp"], "repeats": 4}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory with a file system of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "capstan-test", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(disk: Path) -> Path:
    """Leave no room; returns the file to remove."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return path


def runs_kept(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            [(count,)] = connection.execute("select count(*) from runs").fetchall()
        except sqlite3.OperationalError:  # no table yet
            return 0
    return int(count)


def test_a_worker_gives_up_on_a_full_database_and_is_gone_on_with(disk: Path) -> None:
    with serving(disk / "data", "--patience-s", "1") as server:
        number = server.submit(spec=SPEC)
        server.wait(lambda: server.progress(number)["runs_done"] >= 1, 120)
        worker = server.worker(number)
        filler = fill(disk)
        assert FULL in server.ask("POST", "/experiments", 503, json={"preset": "small"})["detail"]
        server.wait(lambda: gone(worker), 120)
        first = {run["id"] for run in server.ask("GET", f"/experiments/{number}")["runs"]}
        assert first, "what was written can be read"
        filler.unlink()
        finish_again(server, number, first, FULL)


def test_a_worker_gives_up_on_a_database_that_is_down_and_is_gone_on_with(tmp_path: Path) -> None:
    with (
        postgresql_server() as database,
        serving(tmp_path / "data", "--patience-s", "1", "--database", database.new()) as server,
    ):
        number = server.submit(spec=SPEC)
        server.wait(lambda: server.progress(number)["runs_done"] >= 1, 120)
        worker = server.worker(number)
        first = {run["id"] for run in server.ask("GET", f"/experiments/{number}")["runs"]}
        database.stop(signal.SIGQUIT)
        for method, path in (("GET", f"/experiments/{number}"), ("GET", "/engine")):
            assert re.match(DOWN, server.ask(method, path, 503)["detail"])
        server.ask("GET", "/health")  # the fabric goes on
        server.wait(lambda: gone(worker), 120)
        database.start()
        finish_again(server, number, first, DOWN)


def finish_again(server: Server, number: int, first: set[int], words: str) -> None:
    """Assert that an experiment ended with *words*, and that a rerun keeps its first runs and adds the others."""
    server.until(number, "interrupted", "failed", timeout_s=120)
    assert re.search(words, server.ask("GET", f"/experiments/{number}")["error"])
    server.ask("POST", f"/experiments/{number}/rerun", 202)
    assert server.until(number, "finished", "failed", "interrupted") == "finished"
    runs = {run["id"] for run in server.ask("GET", f"/experiments/{number}")["runs"]}
    assert first < runs
    assert len(runs) == SPEC["repeats"]


def test_a_run_by_hand_ends_with_the_reason_and_keeps_what_was_written(disk: Path, tmp_path: Path) -> None:
    spec = tmp_path / "tiny.yaml"
    spec.write_text(yaml.safe_dump({**SPEC, "repeats": 8}))
    argv = [ROOT / "capstan", "run", spec, "--results", tmp_path / "results"]
    argv += ["--database", f"sqlite:///{disk / 'capstan.db'}"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (
            (disk / "capstan.db").exists() and runs_kept(disk / "capstan.db")
        ):
            time.sleep(0.02)
        fill(disk)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait() == 1, said
    assert FULL in said
    assert "Traceback" not in said
    assert runs_kept(disk / "capstan.db") >= 1
