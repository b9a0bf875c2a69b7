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
SMALL_LAB: Final = "tests/lab/test_cli_run.py::test_json_on_standard_output_is_one_document_and_nothing_else"
"""A whole experiment of a few flows: every part of the lab, the controller and the agents take part."""
_PYTEST: Final = [sys.executable, "-m", "pytest"]


@click.command(
    "test",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples:  ./capstan test    ./capstan test --quick    ./capstan test tests/unit -k scheme",
)
@click.option("--quick", is_flag=True, help="Style, types, unit tests and one small lab: minutes.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(arguments: tuple[str, ...], quick: bool) -> None:
    """Check style and types, then run the tests: all of them, or what pytest's ARGUMENTS select."""
    if quick and arguments:
        raise click.UsageError(
            f"--quick runs a choice of its own: leave {' '.join(arguments)!r} or --quick out"
        )
    if not arguments:
        need_lab("test")
        for step in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
            _check(step, [sys.executable, "-m", *step])
        if not quick:
            _check(_CARGO, _CARGO)
        # Those without a lab share nothing, so all processors may; a lab leaves a part of them idle.
        _check(["pytest", "tests/unit"], [*_PYTEST, "tests/unit", "--numprocesses=auto", "--dist=worksteal"])
    if quick:
        arguments = (SMALL_LAB,)
    elif not arguments:
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
