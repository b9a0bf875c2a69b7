"""``capstan agree``: one spec in the lab and in simulation, and whether both say the same."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli.console import fail, json_option, progress, results, write_json
from cli.privileges import need_lab, new_file_for_caller
from cli.simulated_progress import step_line
from cli.sizing import fit_option, scale_option, sized
from cli.spec_options import repeats_option, results_option, schemes_option
from cli.specs import SpecChanges, changed_lab_spec
from experiments.results.report import ReportError, read_result
from experiments.results.simulated import Document
from experiments.results.tables import interval_text, marks, milliseconds, new_table, warnings
from experiments.spec.spec import Spec, spec_from_dict
from simulation.agreement import Agreement, Measured, agreements
from simulation.batch import Step, prepare
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from topologies.cores import own_cores


@click.command(
    "agree",
    epilog="Examples:  ./capstan agree small --repeats 3    ./capstan agree --result results/small-20261122-101500",
)
@click.argument("spec", required=False)
@click.option(
    "--result",
    type=click.Path(path_type=Path, file_okay=False),
    help="A result that ./capstan run has left, instead of running SPEC: needs no root.",
)
@repeats_option
@schemes_option
@click.option(
    "--shapers",
    "shaped",
    is_flag=True,
    help="Simulate token buckets, which the lab's links are, instead of wires: they hand a packet over before its bits "
    "would have crossed.",
)
@fit_option
@scale_option
@results_option
@json_option
def agree_command(
    *,
    spec: str | None,
    result: Path | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    shaped: bool,
    fitting: bool,
    scale: float | None,
    directory: Path,
    json_file: str | None,
) -> None:
    """Run SPEC in the lab and in simulation, and compare them measure by measure.

    Two figures agree if they differ by no more than the spec's simulation.agree_within (default: 0.15 of the lab's), or
    if their 95 % intervals overlap. Ends with exit code 1 if any do not.
    """
    if (spec is None) == (result is None):
        raise click.UsageError("give SPEC or --result DIRECTORY")
    scaled = click.get_current_context().get_parameter_source("scale") is ParameterSource.COMMANDLINE
    if result is not None and (repeats is not None or schemes or fitting or scaled):
        raise click.UsageError(
            "--repeats, --scheme, --fit and --scale are options of SPEC: a result has its own"
        )
    if result is not None:
        lab = _kept(result)
    else:
        changes = SpecChanges(repeats=repeats, schemes=schemes)
        lab = _run(spec or "", changes, directory, fitting=fitting, scale=scale)
    run_spec = _spec_of(lab)
    try:
        with progress.status("simulating") as status:

            def show(step: Step) -> None:
                status.update(escape(step_line(step, datetime.now())))

            simulated, _ = simulate_document(run_spec, show, cores=own_cores().workers(), shaped=shaped)
        compared = list(agreements(lab, simulated, run_spec.simulation.agree_within))
    except SettingsError as error:
        fail(str(error))
    if json_file:
        with new_file_for_caller(json_file):
            write_json(_document(compared), json_file)
    if json_file != "-":
        results.print(*warnings(lab), _table(compared))
    if not all(agreement.agrees for agreement in compared):
        sys.exit(1)


def _kept(directory: Path) -> Document:
    try:
        document, _ = read_result(directory)
    except ReportError as error:
        fail(str(error))
    if document.get("kind") is not None:
        fail(f"{directory} is of a sweep or a simulation: give the result of one experiment in the lab")
    return document


def _run(name: str, changes: SpecChanges, directory: Path, *, fitting: bool, scale: float | None) -> Document:
    need_lab("agree")
    from cli.lab_runs import run_sized
    from experiments.run.runner import RunOptions

    loaded = changed_lab_spec(name, changes)
    if loaded.spec.sweep:
        fail(f"{name} has a sweep: give a spec of one experiment", code=2)
    if (problem := _problem(loaded.spec)) is not None:
        fail(problem)
    chosen = sized(loaded.spec, fitting=fitting, scale=scale)
    return run_sized(loaded, chosen, RunOptions(directory)).document


def _problem(spec: Spec) -> str | None:
    """Return what of a spec cannot be simulated, before a lab runs for minutes; None: nothing."""
    try:
        prepare(spec)
    except SettingsError as error:
        return str(error)
    return None


def _spec_of(document: Document) -> Spec:
    return spec_from_dict(document["spec"])


def _table(compared: Sequence[Agreement]) -> Table:
    table = new_table(
        "Lab and simulation", ["lab\n[95 % CI]", "simulation\n[95 % CI]", "unit", "ratio", "agree"]
    )
    for agreement in compared:
        word = Text("yes") if agreement.agrees else Text("no", style="bold red")
        table.add_row(
            f"{agreement.scheme}{marks(dataclasses.asdict(agreement))}: {agreement.measure}",
            _shown(agreement.lab),
            _shown(agreement.simulated),
            agreement.unit,
            "-" if agreement.ratio is None else f"{agreement.ratio:.2f}",
            word,
        )
    return table


def _shown(measured: Measured) -> str:
    return f"{milliseconds(measured.value)} {interval_text(measured.interval, milliseconds)}"


def _document(compared: Sequence[Agreement]) -> dict[str, Any]:
    return {
        "agreements": [
            dataclasses.asdict(agreement) | {"ratio": agreement.ratio, "agrees": agreement.agrees}
            for agreement in compared
        ]
    }
