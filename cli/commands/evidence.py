"""``capstan evidence``: every claim of the papers, simulated, as a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Final, get_args

import click
from rich.console import Console
from rich.markup import escape

from cli.console import fail, need_place, progress, results, writable
from cli.specs import load_spec
from experiments.results.tables import tables
from experiments.spec.check import preset_names
from experiments.spec.serialized import spec_text
from experiments.spec.spec import Spec
from simulation.evidence import (
    Paper,
    Row,
    claims_of_papers,
    kept_rows,
    simulate_claims,
    wanted,
    wanted_on_switches,
    with_switches,
    write_rows,
)
from simulation.evidence_document import (
    Document,
    Entry,
    cells_of,
    entries_of,
    markdown,
    read_document,
)
from simulation.evidence_notes import NOTES, read_notes
from simulation.evidence_quotes import stale_quotes
from simulation.evidence_rows import ROWS, row_of, rows_text

DOCUMENT: Final = Path("docs/evidence.md")
KEPT: Final = "evidence"
"""Folder below the results."""
TABLES_WIDTH: Final = 160
"""Columns of the tables that are kept there."""


@click.command(
    "evidence",
    epilog="Examples:  ./capstan evidence    ./capstan evidence --paper caps --quick --output caps.md    "
    "./capstan evidence --merge --preset tr-fig9",
)
@click.option("--paper", "papers", multiple=True, type=click.Choice(get_args(Paper)), help="Repeatable.")
@click.option("--preset", "presets", multiple=True, help="Only the claims of this preset; repeatable.")
@click.option("--kept", is_flag=True, help="Reuse kept results of specs that have not changed.")
@click.option(
    "--merge",
    is_flag=True,
    help="Simulate only what --paper and --preset name; other rows stay as OUTPUT has them, with reasons as they are "
    "now.",
)
@click.option(
    "--on-switches",
    is_flag=True,
    help="Run presets on switches instead, as ./capstan run --fit does, and merge what was found.",
)
@click.option("--quick", is_flag=True, help="Two repeats at most: wider intervals, sooner.")
@click.option(
    "--results",
    "directory",
    default=Path("results"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where ./capstan run has kept what it found on switches; what is simulated is kept in `evidence` below, with "
    "its tables.",
)
@click.option(
    "--output",
    default=DOCUMENT,
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    callback=writable,
    help="File to write.",
)
def evidence_command(
    *,
    papers: tuple[Paper, ...],
    presets: tuple[str, ...],
    kept: bool,
    merge: bool,
    on_switches: bool,
    quick: bool,
    directory: Path,
    output: Path,
) -> None:
    """Simulate every preset that has claims of the papers, and write what holds of them: a row a claim.

    The same rows go into a JSON file: simulation/evidence_rows.json, which the page shows, or beside another OUTPUT.

    No root, no switches. Takes some minutes of processor time. With --on-switches presets run in labs first, which
    takes root and hours; only those of --preset and --paper if there are any.
    """
    if on_switches:
        _run_on_switches(papers, presets, directory, quick=quick)
        merge, quick, papers, presets = True, False, (), ()
    need_place(directory)
    notes = read_notes()
    document = (
        read_document(output.read_text(encoding="utf-8")) if merge and output.exists() else Document({})
    )
    entries: list[Entry] = []
    simulated: set[str] = set()
    missing: set[str] = set()
    with progress.status("simulating") as status:
        for name in dict.fromkeys([*preset_names(), *presets]) if merge else presets or preset_names():
            spec = load_spec(name).spec
            claims = claims_of_papers(spec.claims)
            of_papers = not papers or any(paper in papers for _, paper in claims)
            if not claims or not (merge or of_papers):
                continue

            def show(point: str, name: str = name) -> None:
                status.update(escape(f"simulating {name}{f', {point}' if point else ''}"))

            named = name in presets if presets else bool(papers) or not merge
            fresh = None
            if named and of_papers:
                simulated.add(name)
                fresh = _simulated(name, wanted(spec, quick=quick), directory, kept=kept, show=show)
            mine = entries_of(name, spec.claims, fresh, document)
            if len(mine) < len(claims):
                missing.add(name)
            rows = with_switches([entry.row for entry in mine], spec, directory)
            mine = [replace(entry, row=row) for entry, row in zip(mine, rows, strict=True)]
            entries += [entry for entry in mine if merge or not papers or entry.row.paper in papers]
    if not entries and (papers or presets):
        fail(f"no claim is of these presets and papers: {output} stays as it is", code=2)
    text = markdown(entries, notes, quick=quick, earlier=document.earlier - simulated, missing=missing)
    output.write_text(text, encoding="utf-8")
    rows_file = ROWS if output == DOCUMENT else output.with_suffix(".json")
    evidence_rows = [row_of(cells_of(entry, notes)) for entry in entries]
    rows_file.write_text(rows_text(evidence_rows), encoding="utf-8")
    results.print(f"{len(entries)} claims in {output}", markup=False, soft_wrap=True)
    by_preset = {name: load_spec(name).spec.claims for name in {entry.row.preset for entry in entries}}
    for stale in stale_quotes(notes, by_preset, evidence_rows):
        results.print(f"To mend in {NOTES.name}: {stale}", markup=False, soft_wrap=True)


def _simulated(
    name: str, spec: Spec, directory: Path, *, kept: bool, show: Callable[[str], None]
) -> list[Row]:
    """Return a preset's rows, simulated or kept; what is simulated leaves its tables there, too."""
    rows = kept_rows(name, spec, directory / KEPT) if kept else None
    if rows is None:
        text = StringIO()
        printed = Console(file=text, width=TABLES_WIDTH)

        def print_tables(point: str, document: dict[str, Any]) -> None:
            printed.rule(escape(point or name))
            printed.print(tables(document))

        rows = simulate_claims(name, spec, show, print_tables)
        write_rows(rows, name, spec, directory / KEPT)
        (directory / KEPT / f"{name}.txt").write_text(text.getvalue(), encoding="utf-8")
    return rows


def _run_on_switches(
    papers: tuple[Paper, ...], presets: tuple[str, ...], directory: Path, *, quick: bool
) -> None:
    """Run the presets in labs, one after the other, each fitted to this machine; keep their results."""
    from cli.lab_runs import run_in_lab  # with what the simulation of all this need not wait for
    from cli.privileges import need_lab
    from cli.sizing import sized

    need_lab("evidence --on-switches")
    for name in presets or preset_names():
        loaded = load_spec(name)
        claims = claims_of_papers(loaded.spec.claims)
        if papers and not any(paper in papers for _, paper in claims):
            continue
        spec = wanted_on_switches(loaded.spec, quick=quick)
        if spec is None:
            if presets:
                progress.print(f"{name}: no lab on two cores can judge a claim of it", markup=False)
            continue
        progress.print(f"{name}:", markup=False)
        run_in_lab(
            replace(loaded, spec=spec, text=spec_text(spec)),
            sized(spec, fitting=True, scale=None),
            directory,
            None,
        )
