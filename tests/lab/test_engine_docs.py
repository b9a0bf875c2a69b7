"""What the engine's page and notebook ask people to type does what they say, literally."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.engine_server import ROOT, Server, serving

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served") / "data") as one:
        yield one


def test_a_sweep_by_curl_followed_by_events_and_read_by_pandas(server: Server, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", (ROOT / "docs/engine.md").read_text(), re.M | re.S)
    shell = "\n".join(text for kind, text in blocks if kind == "sh")
    python = next(text for kind, text in blocks if kind == "python")
    typed = subprocess.run(
        ["bash", "-eu", "-c", shell],
        cwd=tmp_path,
        env={**os.environ, "API": f"http://{server.api}/api/v1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout[-2000:] + typed.stderr
    events = [json.loads(line) for line in (tmp_path / "events.txt").read_text().splitlines()]
    number = json.loads((tmp_path / "submitted.json").read_text())["id"]
    whole = server.ask("GET", f"/experiments/{number}")
    assert whole["state"] == "finished"
    kinds = [event.get("kind", "hello") for event in events]
    assert kinds.count("run-added") == 12
    assert kinds.count("experiment-ended") == 3, "two points and the sweep"
    left = [event["progress"]["left_s"] for event in events if event.get("kind") == "experiment-progress"]
    assert left[0] > left[-1] >= 0, "seconds"
    assert left[0] > 10, "twelve runs that last for more than a second each"
    assert server.ask("GET", f"/experiments/{number}/figures/sweep.svg").startswith("<?xml")
    printed = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert printed.returncode == 0, printed.stderr
    rows = {line.split()[0]: line.split()[1:] for line in printed.stdout.splitlines()}
    assert rows["load"] == ["0.2", "0.4"]
    for scheme in ("ecmp", "rps", "caps"):
        assert all(float(value) > 0 for value in rows[scheme]), printed.stdout


def test_the_notebook_runs_from_its_first_cell_to_its_last(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = json.loads((ROOT / "docs/notebooks/sweep.ipynb").read_text())
    monkeypatch.setenv("CAPSTAN_API", f"http://{server.api}")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["experiment"].state == "finished"
    assert "4 of 4 runs" in capsys.readouterr().out
    assert len(names["table"]) == 4
    assert (names["table"]["short_afct_ms"] > 0).all()
    assert len(names["flows"]) == 2 * (8 + 1), "a long flow beside the short ones, for each scheme"
