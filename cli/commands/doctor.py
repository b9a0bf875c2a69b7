"""``capstan doctor``, for ``python -m cli``; the launcher starts `doctor` with the system's Python instead."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.console import json_option
from doctor.command import RESULTS, show


@click.command("doctor", epilog="Examples:  ./capstan doctor    ./capstan doctor --json -")
@click.option("--results", "directory", default=RESULTS, show_default=True, type=click.Path(path_type=Path))
@json_option
def doctor_command(directory: Path, json_file: str | None) -> None:
    """Report what this machine has and lacks for which purpose, and what to do. Exit code 0 if a lab can be built."""
    sys.exit(show(directory, json_file))
