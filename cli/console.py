"""Where output goes: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from rich.console import Console

results = Console(highlight=False)
"""What a command was asked for."""
progress = Console(stderr=True, highlight=False)
"""What happens meanwhile."""

F = TypeVar("F", bound=Callable[..., Any])


def fail(text: str, code: int = 1) -> NoReturn:
    """Print one error and end."""
    progress.print("capstan: ", style="bold red", end="", markup=False)
    progress.print(text, markup=False, soft_wrap=True)
    sys.exit(code)


def json_option(command: F) -> F:
    """``--json FILE``: the same result as one JSON document; ``-``: on standard output, and nothing else there."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        help="Write the result as one JSON document; - for standard output (and nothing else there).",
    )(command)


def write_json(document: dict[str, Any], file: str) -> None:
    """Write *document* to *file*, or to standard output for ``-``."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if file == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(file).write_text(text)
