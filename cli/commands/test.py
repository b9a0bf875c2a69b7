"""``capstan test``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from cli.console import progress
from cli.privileges import need_lab

_ROOT = Path(__file__).resolve().parents[2]


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
            progress.print(f"$ {' '.join(step)}", markup=False)
            done = subprocess.run([sys.executable, "-m", *step], cwd=_ROOT, check=False)
            if done.returncode != 0:
                sys.exit(done.returncode)
    os.chdir(_ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *(arguments or ("tests",))])
