"""``capstan schemes`` and ``capstan check``: what there is, and whether a spec is right."""

from __future__ import annotations

import dataclasses
import sys

import click
from rich.table import Table

from cli.console import json_option, results, write_json
from cli.specs import print_problems, problems_of
from controller.schemes.loader import all_schemes
from controller.schemes.scheme import ClassScheme, Scheme


@click.command("schemes", epilog="Examples:  ./capstan schemes    ./capstan schemes --json - | jq .schemes")
@json_option
def schemes_command(json_file: str | None) -> None:
    """List the schemes: what each is made of, and the paper it comes from."""
    schemes = all_schemes()
    if json_file:
        write_json({"schemes": [dataclasses.asdict(scheme) for scheme in schemes]}, json_file)
    if json_file == "-":
        return
    table = Table(title="Schemes", title_justify="left")
    for column in ("name", "short flows", "long flows", "coding", "in-order release", "paper"):
        table.add_column(column, overflow="fold")
    for scheme in schemes:
        table.add_row(
            scheme.name,
            _path(scheme.short),
            _path(scheme.long),
            _coding(scheme),
            _release(scheme),
            _papers(scheme),
        )
    results.print(table)
    results.print("Each is a file in controller/schemes/; give your own file's path wherever a name goes.")


def _path(one: ClassScheme) -> str:
    if one.by_mode is not None:
        return f"{one.by_mode.on} while short flows are ON, {one.by_mode.off} while OFF"
    return str(one.group)


def _coding(scheme: Scheme) -> str:
    parts = []
    for name, one in (("short", scheme.short), ("long", scheme.long)):
        if one.coding is not None:
            parts.append(f"{name}: {one.coding.code}, {one.coding.redundancy}, pB by {one.coding.estimator}")
    return "; ".join(parts) or "-"


def _release(scheme: Scheme) -> str:
    parts = [
        f"{name}: {one.release.packet_times:g} packet times"
        for name, one in (("short", scheme.short), ("long", scheme.long))
        if one.release is not None
    ]
    return "; ".join(parts) or "-"


def _papers(scheme: Scheme) -> str:
    return "; ".join(f"{paper.title}, {paper.venue} {paper.year}" for paper in scheme.papers) or "-"


@click.command("check", epilog="Examples:  ./capstan check demo    ./capstan check my-experiment.yaml")
@click.argument("spec")
def check_command(spec: str) -> None:
    """Say all that is wrong with SPEC (a file, or a preset's name), with line numbers; exit 1 if anything is."""
    path, problems = problems_of(spec)
    if problems:
        print_problems(path, problems)
        sys.exit(1)
    results.print(f"{path}: nothing wrong", markup=False)
