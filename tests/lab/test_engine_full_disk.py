"""A database that can take no more, in the middle of a run: said clearly, what was written stays, and it goes on."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.lab.engine_server import ROOT, TINY, serving

pytestmark = pytest.mark.timeout(200)
FULL = "the database refuses: database or disk is full; what it has taken before stays"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
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
    with serving(disk / "data", "--patience-s", "2") as server:
        number = server.submit(spec={**TINY, "repeats": 2})
        server.wait(lambda: server.progress(number)["runs_done"] >= 1, 120)
        worker = server.worker(number)
        filler = fill(disk)
        assert FULL in server.ask("POST", "/experiments", 503, json={"preset": "small"})["detail"]
        server.wait(lambda: not Path(f"/proc/{worker}").exists(), 60)
        first = {run["id"] for run in server.ask("GET", f"/experiments/{number}")["runs"]}
        assert first, "what was written can be read"
        filler.unlink()
        assert server.until(number, "interrupted", "failed", timeout_s=20)
        assert FULL in server.ask("GET", f"/experiments/{number}")["error"]
        server.ask("POST", f"/experiments/{number}/rerun", 202)
        assert server.until(number, "finished", "failed", "interrupted") == "finished"
        runs = {run["id"] for run in server.ask("GET", f"/experiments/{number}")["runs"]}
        assert first < runs
        assert len(runs) == 4


def test_a_run_by_hand_ends_with_the_reason_and_can_be_begun_again(disk: Path, tmp_path: Path) -> None:
    spec = tmp_path / "tiny.yaml"
    spec.write_text(yaml.safe_dump({**TINY, "schemes": ["ecmp"], "repeats": 3}))
    argv = [ROOT / "capstan", "run", spec, "--results", tmp_path / "results"]
    argv += ["--database", f"sqlite:///{disk / 'capstan.db'}"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (
            (disk / "capstan.db").exists() and runs_kept(disk / "capstan.db")
        ):
            time.sleep(0.02)
        filler = fill(disk)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait() == 1, said
    assert FULL in said
    assert "Traceback" not in said
    kept = runs_kept(disk / "capstan.db")
    assert kept >= 1
    filler.unlink()
    subprocess.run(argv, check=True, capture_output=True, timeout=100)
    assert runs_kept(disk / "capstan.db") == kept + 3
