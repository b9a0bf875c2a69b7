"""``capstan simulate SPEC``: a spec's schemes in simulation, with the tables of ``capstan run``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from cli.console import fail, progress, results, write_text
from cli.specs import load_spec
from experiments.results.document import json_text
from experiments.results.drawing import draw_comparison, draw_sweep
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.spec.spec import Spec
from experiments.spec.sweep import SweepError, only
from simulation.experiment import Simulated, Step, simulate_spec, simulate_sweep
from simulation.fabrics import SettingsError


def run_simulated(
    name: str,
    *,
    seed: int | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    wanted: tuple[str, ...],
    directory: Path,
    json_file: str | None,
) -> None:
    """Simulate the spec of this name, keep and print the result; ends the program where that cannot be."""
    loaded = load_spec(name, schemes)
    spec = dataclasses.replace(
        loaded.spec,
        seed=loaded.spec.seed if seed is None else seed,
        repeats=loaded.spec.repeats if repeats is None else repeats,
    )
    try:
        spec = only(spec, wanted) if wanted else spec
    except SweepError as error:
        fail(f"{name}: {error}", code=2)
    try:
        found = _simulated(spec, loaded.text, directory)
    except SettingsError as error:
        fail(f"{name}: {error}")
    if json_file != "-":
        results.print(sweep_tables(found.document) if spec.sweep else tables(found.document))
        results.print(f"kept in {found.directory}", markup=False, soft_wrap=True)
    if json_file:
        write_text(json_text(found.document), json_file)
    if json_file == "-":
        progress.print(f"kept in {found.directory}", markup=False, soft_wrap=True)
    with progress.status("drawing"):  # after all that is waited for
        (draw_sweep if spec.sweep else draw_comparison)(found.document, found.directory)


def _simulated(spec: Spec, text: str, directory: Path) -> Simulated:
    with progress.status(f"simulating {spec.title}", spinner="dots") as status:

        def show(step: Step) -> None:
            at = f"{step.point}, " if step.point else ""
            status.update(
                f"{at}run {step.run} of {step.runs}, {step.label}: {step.finished} of {step.flows} flows have ended"
            )

        simulate = simulate_sweep if spec.sweep else simulate_spec
        return simulate(spec, text, directory, show)
