"""``capstan test``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from cli.console import progress
from cli.privileges import need_lab

_ROOT = Path(__file__).resolve().parents[2]
_CARGO: Final = [
    *("cargo", "test", "--quiet", "--workspace", "--locked"),
    *("--manifest-path", "native/Cargo.toml", "--target-dir", ".setup/native/target"),
]
_PYTEST: Final = [sys.executable, "-m", "pytest"]


@click.command(
    "test",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples:  ./capstan test    ./capstan test tests/unit -k scheme",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(arguments: tuple[str, ...]) -> None:
    """Check style and types, then run the tests: all of them, or what pytest's ARGUMENTS select."""
    if not arguments:
        need_lab("test")
        for step in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
            _check(step, [sys.executable, "-m", *step])
        _check(_CARGO, _CARGO)
        # Those without a lab share nothing, so all processors may; a lab leaves a part of them idle.
        _check(["pytest", "tests/unit"], [*_PYTEST, "tests/unit", "--numprocesses=auto", "--dist=worksteal"])
        labs_at_once = max(1, len(os.sched_getaffinity(0)) * 3 // 4)
        arguments = ("tests", "--ignore=tests/unit", f"--numprocesses={labs_at_once}", "--dist=loadfile")
    os.chdir(_ROOT)
    os.execv(sys.executable, [*_PYTEST, *arguments])


def _check(name: list[str], command: list[str]) -> None:
    """Run *command*; end the program with its exit code if it fails."""
    progress.print(f"$ {' '.join(name)}", markup=False)
    code = subprocess.run(command, cwd=_ROOT, check=False).returncode
    if code != 0:
        sys.exit(code)
