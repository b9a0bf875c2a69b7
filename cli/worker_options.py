"""Options of workers, for those that a controller starts and those that a person does: one description each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from plain.finite_range import FiniteRange

F = TypeVar("F", bound=Callable[..., Any])


def labs_option(least: int, note: str) -> Callable[[F], F]:
    """Return ``--labs`` (*labs*: int, at least *least*); note: what is particular to the command."""
    return click.option(
        "--labs",
        default=1,
        show_default=True,
        type=click.IntRange(least, 16),
        help=f"Labs that a machine may have at a time, for submitted experiments; {note}.",
    )


patience_option = click.option(
    "--patience-s",
    default=60.0,
    show_default=True,
    type=FiniteRange(1, 3600),
    help="How long workers wait for a controller, or its database, that is away.",
)
