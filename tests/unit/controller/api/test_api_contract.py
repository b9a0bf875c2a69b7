"""A served controller held to its own OpenAPI document by schemathesis: all of its checks, over 2000 requests.

Requests are made from the document: what it allows has to be accepted, what it forbids refused; no answer may have a
status, a content type or a body that the document does not describe; none may be a server error.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SETTINGS = Path(__file__).parents[2].joinpath("schemathesis.toml")
FEWEST = 2000
PATIENCE_S = 300
"""It gets what tests of labs leave of the processors."""
EXAMPLES = 6
"""Of each operation, besides those that cover what the document says, which are most of the cases."""


@contextmanager
def served(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield the API's URL and the log of a controller of a lab without switches, run as people run it."""
    argv = [sys.executable, "-m", "cli", "serve", "--lab", "--data", str(directory / "data")]
    argv += ["--experiments", "--labs", "0"]  # what is submitted waits
    argv += [
        "--openflow",
        "127.0.0.1:0",
        "--api",
        "127.0.0.1:0",
        "--agents-socket",
        str(directory / "agents"),
    ]
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        endpoints = directory / "data" / "endpoints.json"
        deadline = time.monotonic() + PATIENCE_S
        while not endpoints.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield json.loads(endpoints.read_text())["api"], log
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_api_does_what_its_document_says(tmp_path: Path) -> None:
    with served(tmp_path) as (api, log):
        # schemathesis itself gives the document 10 s, whatever its settings say.
        document = tmp_path / "openapi.json"
        with urllib.request.urlopen(f"{api}/api/v1/openapi.json", timeout=PATIENCE_S) as answer:
            document.write_bytes(answer.read())
        argv = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(SETTINGS), "run"]
        argv += [
            str(document),
            "--url",
            api,
            "--checks",
            "all",
            "--phases",
            "examples,coverage,fuzzing,stateful",
        ]
        argv += ["--max-examples", str(EXAMPLES), "--seed", "1", "--continue-on-failure", "--no-color"]
        ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        said = ran.stdout + ran.stderr
        assert ran.returncode == 0, said[-20_000:]
        selected = re.search(r"Selected: (\d+)/(\d+)", said)
        made = re.search(r"(\d+) generated", said)
        assert selected is not None
        assert made is not None
        assert selected[1] == selected[2], "all operations"
        assert int(made[1]) >= FEWEST
        assert "unexpected error" not in log.read_text()
        assert "Traceback" not in log.read_text()
