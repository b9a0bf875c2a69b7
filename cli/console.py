"""Where output goes: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from rich.console import Console

results = Console(highlight=False)
"""What a command was asked for."""
PLAIN_EVERY_S: Final = 10.0
"""Between two lines of progress where there is no terminal."""
progress = Console(stderr=True, highlight=False)
"""What happens meanwhile."""

F = TypeVar("F", bound=Callable[..., Any])
W = TypeVar("W", str | None, Path | None)


def fail(text: str, code: int = 1) -> NoReturn:
    """Print one error and end."""
    progress.print("capstan: ", style="bold red", end="", markup=False)
    progress.print(text, markup=False, soft_wrap=True)
    sys.exit(code)


def error_text(error: BaseException) -> str:
    """Return one line about *error*; for a system error the file and the system's words, without a number."""
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename}: " if error.filename is not None else ""
        return f"{about}{error.strerror}"
    return str(error) or repr(error)


def number_range(numbers: Sequence[int]) -> str:
    """Return consecutive numbers in words: "3 to 7", or the only one."""
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def json_option(command: F) -> F:
    """Return ``--json FILE``: the same result as one JSON document; ``-``: on standard output, and nothing
    else there.

    A file that cannot be written is an error at the start, not after a run of minutes.
    """
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        callback=writable,
        help="Write the result as one JSON document; - for standard output (and nothing else there).",
    )(command)


def writable(context: click.Context, parameter: click.Parameter, value: W) -> W:
    """Return the file that an option names; - is standard output.

    Raises BadParameter for a file that cannot be written, before what is to be written takes minutes.
    """
    if value is None or str(value) == "-":
        return value
    path = Path(value)
    if path.is_dir():
        raise click.BadParameter(f"{str(path)!r} is a directory")
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no directory {str(path.parent)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{str(path)!r} cannot be written")
    return value


def need_place(directory: Path, option: str = "--results") -> None:
    """End with exit code 2 unless files can be made in the directory of an option, which need not be there yet.

    To be called before what is to be kept takes minutes.
    """
    path = directory.absolute()
    nearest = next(place for place in (path, *path.parents) if place.exists())
    if not nearest.is_dir():
        fail(f"{option} {directory}: {nearest} is not a directory: give another one", code=2)
    if not os.access(nearest, os.W_OK | os.X_OK):
        fail(f"{option} {directory}: nothing can be written to {nearest}: give another directory", code=2)


def write_json(document: dict[str, Any], file: str) -> None:
    """Write *document* to *file*, or to standard output for ``-``."""
    write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", file)


def write_text(text: str, file: str) -> None:
    """Write a document that is text already, as `write_json` does: in UTF-8, whatever standard output's encoding is."""
    if file == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    else:
        Path(file).write_text(text, encoding="utf-8")
