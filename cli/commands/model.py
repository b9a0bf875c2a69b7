"""``capstan model``: the papers' analyses as figures and tables."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from cli.console import json_option, results, write_json
from models.catalogue import MODELS, model_named
from models.study import Study


@click.command(
    "model",
    epilog="Examples:  ./capstan model    ./capstan model caps-fig8    ./capstan model tr-window --json -",
)
@click.argument("name", required=False)
@click.option(
    "--figures",
    "directory",
    default=Path("results/models"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where NAME.png and NAME.svg go.",
)
@json_option
def model_command(name: str | None, directory: Path, json_file: str | None) -> None:
    """Evaluate the model NAME: print its table and draw its figure. Without NAME: list the models."""
    if name is None:
        _list(json_file)
        return
    model = model_named(name)
    study = model.evaluate()
    from models.drawing import draw  # matplotlib takes a second

    files = draw(study, directory / name)
    if json_file:
        document = {
            "model": name,
            "paper": model.paper,
            **study.document(),
            "figures": [str(f) for f in files],
        }
        write_json(document, json_file)
    if json_file == "-":
        return
    _print(study)
    results.print(f"paper: {model.paper}; what is derived: docs/models.md", markup=False)
    results.print(f"drawn: {' '.join(str(file) for file in files)}", markup=False, soft_wrap=True)


def _list(json_file: str | None) -> None:
    if json_file:
        rows = [{"name": name, "shows": model.shows, "paper": model.paper} for name, model in MODELS.items()]
        write_json({"models": rows}, json_file)
    if json_file == "-":
        return
    width = max(map(len, MODELS)) + 2
    for name, model in MODELS.items():
        results.print(f"[bold]{name:<{width}}[/bold]{model.shows}", soft_wrap=True)
    results.print("\nA name after `model` prints its table and draws its figure, PNG and SVG.", markup=False)


def _print(study: Study) -> None:
    table = Table(title=study.title, title_justify="left")
    for column in study.columns:
        table.add_column(column, justify="right")
    for row in study.rows:
        table.add_row(*(cell if isinstance(cell, str) else f"{cell:g}" for cell in row))
    results.print(table)
    for note in study.notes:
        results.print(note, markup=False)
