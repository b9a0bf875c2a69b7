"""Options of commands that speak to a controller elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from capstan_client.http import TOKEN_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])


def authority_option(command: F) -> F:
    """Add ``--authority FILE`` (*authority*: Path or None)."""
    return click.option(
        "--authority",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Authorities that an https URL's certificate is checked against, PEM (default: this machine's).",
    )(command)


def token_file_option(command: F) -> F:
    """Add ``--token-file FILE`` (*token_file*: Path or None)."""
    return click.option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"The controller's api-token, where it needs one (or the variable {TOKEN_VARIABLE}).",
    )(command)
