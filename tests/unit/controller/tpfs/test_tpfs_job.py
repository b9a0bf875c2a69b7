"""The process that computes types: another one comes where it was killed, and it ends with its controller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from controller.tpfs.job import Job, TypesRequest
from controller.tpfs.types import LearntTypes
from tests.unit.application_records import FOUR, addresses, records_of
from tests.waiting import PATIENCE_S, eventually

PROGRAM = """
import sys, time
from pathlib import Path
from controller.tpfs.job import Job, TypesRequest
if __name__ == "__main__":
    job = Job()
    job.ask(TypesRequest(Path(sys.argv[1]), (), (1000,), 0.5, None)).exception()
    print(*job.processes(), flush=True)
    time.sleep(60)
"""


def _request(directory: Path) -> TypesRequest:
    records, _ = records_of(FOUR, 2000, np.random.default_rng(0))
    path = directory / "records"
    records.tofile(path)
    return TypesRequest(path, tuple(addresses()), (10_000, 100_000), 0.6, None)


@pytest.mark.slow
def test_a_process_that_was_killed_is_replaced(tmp_path: Path) -> None:
    request, job = _request(tmp_path), Job()
    try:
        first = job.ask(request).result(PATIENCE_S)
        assert isinstance(first, LearntTypes)
        assert first.features == ("destination_port",)
        (process,) = job.processes()
        os.kill(process, signal.SIGKILL)
        eventually(lambda: not _alive(process), "it is gone")
        for _ in range(2):  # the pool may take a request before it knows
            with suppress(Exception):
                again = job.ask(request).result(PATIENCE_S)
                break
        assert again == first
    finally:
        job.close()
    assert job.processes() == []


@pytest.mark.slow
def test_a_process_that_was_prepared_answers(tmp_path: Path) -> None:
    job = Job()
    try:
        job.prepare()
        prepared = job.processes()
        job.prepare()
        assert isinstance(job.ask(_request(tmp_path)).result(PATIENCE_S), LearntTypes)
        assert job.processes() == prepared
        assert len(prepared) == 1
    finally:
        job.close()


def test_it_ends_with_a_controller_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "asker.py"
    program.write_text(PROGRAM)
    root = Path(__file__).resolve().parents[4]
    controller = subprocess.Popen(
        [sys.executable, program, tmp_path / "none"],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert controller.stdout is not None
    process = int(controller.stdout.readline())
    assert _alive(process)
    controller.kill()
    controller.wait()
    eventually(lambda: not _alive(process), "it is gone")


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
