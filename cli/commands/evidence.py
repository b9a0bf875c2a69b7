"""``capstan evidence``: every claim of the papers, simulated, as a document."""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import click

from cli.console import progress, results
from cli.specs import load_spec
from experiments.spec.check import preset_names
from simulation.evidence import (
    Paper,
    Row,
    kept_rows,
    markdown,
    paper_of,
    read_notes,
    simulate_claims,
    wanted,
    with_switches,
    write_rows,
)

DOCUMENT: Final = Path("docs/evidence.md")
KEPT: Final = "evidence"
"""Folder below the results."""


@click.command(
    "evidence",
    epilog="Examples:  ./capstan evidence    ./capstan evidence --paper caps --quick --output caps.md",
)
@click.option("--paper", "papers", multiple=True, type=click.Choice(get_args(Paper)), help="Repeatable.")
@click.option("--preset", "presets", multiple=True, help="Only the claims of this preset; repeatable.")
@click.option("--kept", is_flag=True, help="Reuse kept results of specs that have not changed.")
@click.option("--quick", is_flag=True, help="Two repeats at most: wider intervals, sooner.")
@click.option(
    "--results",
    "directory",
    default=Path("results"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where ./capstan run has kept what it found on switches; what is simulated is kept in `evidence` below.",
)
@click.option(
    "--output", default=DOCUMENT, show_default=True, type=click.Path(path_type=Path, dir_okay=False)
)
def evidence_command(
    papers: tuple[Paper, ...],
    presets: tuple[str, ...],
    kept: bool,
    quick: bool,
    directory: Path,
    output: Path,
) -> None:
    """Simulate every preset that has claims of the papers, and write what holds of them: a row a claim.

    No root, no switches. Takes some minutes of processor time.
    """
    notes = read_notes()
    rows: list[Row] = []
    with progress.status("simulating") as status:
        for name in presets or preset_names():
            spec = load_spec(name).spec
            mine = {paper_of(claim) for claim in spec.claims} - {None}
            if not mine or (papers and not mine & set(papers)):
                continue

            def show(point: str, name: str = name) -> None:
                status.update(f"simulating {name}{f', {point}' if point else ''}")

            spec = wanted(spec, quick=quick)
            evidence_rows = kept_rows(name, spec, directory / KEPT) if kept else None
            if evidence_rows is None:
                evidence_rows = simulate_claims(name, spec, show)
                write_rows(evidence_rows, name, spec, directory / KEPT)
            rows += evidence_rows
    rows = [row for row in with_switches(rows, directory) if not papers or row.paper in papers]
    output.write_text(markdown(rows, notes, quick=quick), encoding="utf-8")
    results.print(f"{len(rows)} claims in {output}", markup=False, soft_wrap=True)
