"""What docs/engine.md tells people to type does what it says: a sweep by curl, followed by SSE, read by pandas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.engine_server import ROOT, serving

pytestmark = pytest.mark.timeout(200)


def test_a_sweep_by_curl_followed_by_events_and_read_by_pandas(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", (ROOT / "docs/engine.md").read_text(), re.M | re.S)
    shell = "\n".join(text for kind, text in blocks if kind == "sh")
    [python] = [text for kind, text in blocks if kind == "python"]
    with serving(tmp_path / "data") as server:
        typed = subprocess.run(
            ["bash", "-eu", "-c", shell],
            cwd=tmp_path,
            env={**os.environ, "API": f"http://{server.api}/api/v1"},
            capture_output=True,
            text=True,
            timeout=150,
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
    assert left[0] > 10 > left[-1] >= 0, "seconds"
    printed = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert printed.returncode == 0, printed.stderr
    rows = {line.split()[0]: line.split()[1:] for line in printed.stdout.splitlines()}
    assert rows["load"] == ["0.2", "0.4"]
    for scheme in ("ecmp", "rps", "caps"):
        assert all(float(value) > 0 for value in rows[scheme]), printed.stdout
