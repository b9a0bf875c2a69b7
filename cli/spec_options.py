"""Options by which commands take a spec otherwise than it is written: one description each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

RESULTS: Final = Path("results")

seed_option = click.option(
    "--seed", type=click.IntRange(0), help="Seed of flows and of all random draws, in place of the spec's."
)
repeats_option = click.option(
    "--repeats", type=click.IntRange(1), help="Number of repeats, in place of the spec's."
)
schemes_option = click.option(
    "--scheme",
    "schemes",
    multiple=True,
    help="Scheme's name or file, in place of the spec's schemes; repeatable.",
)
points_option = click.option(
    "--point", "points", multiple=True, help="Only this point of the sweep's first axis; repeatable."
)
results_option = click.option(
    "--results",
    "directory",
    default=RESULTS,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory below which results are kept.",
)
database_option = click.option(
    "--database",
    help="SQLAlchemy URL of the database that keeps the result (default: SQLite below --results).",
)
path_policy_option = click.option(
    "--path-policy",
    type=click.Path(path_type=Path),
    help="Python file with a path policy of your own, for a scheme with `entropy: file`.",
)


def need_recording(given: bool, switch: str) -> None:
    """Raise UsageError for a window of what *switch* (``--trace FILE``) records, where that is not given."""
    name = switch.split()[0].removeprefix("--")
    source = click.get_current_context().get_parameter_source
    for end in ("from", "for"):
        if not given and source(f"{name}_{end}") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name}-{end} is of what --{name} records: give {switch}, too")
