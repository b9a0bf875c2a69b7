"""``capstan run`` and ``capstan demo``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Group

from cli.console import fail, json_option, progress, results, write_text
from cli.live import Display, hold
from cli.privileges import give_to_caller, need_all_of_a_lab, need_lab
from cli.sizing import notice, scale_option, sized
from cli.specs import LoadedSpec, load_lab_spec, need_path_policy
from experiments.results.document import json_text
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.run.deployment import Deployment
from experiments.run.experiment import Result
from experiments.run.runner import SweepResult, run_experiment, run_sweep
from experiments.spec.fitting import Fit
from experiments.spec.spec import spec_text
from experiments.spec.sweep import SweepError, only
from topologies.cores import own_cores

RESULTS = Path("results")


@click.command(
    "run",
    epilog="Examples:  ./capstan run small    ./capstan run my-experiment.yaml --json -    ./capstan run demo --seed 7",
)
@click.argument("spec")
@click.option("--seed", type=click.IntRange(0), help="Instead of the spec's: other flows, other randomness.")
@click.option("--repeats", type=click.IntRange(1), help="Instead of the spec's.")
@click.option(
    "--scheme", "schemes", multiple=True, help="Instead of the spec's: a scheme's name or file; repeatable."
)
@click.option(
    "--point", "wanted", multiple=True, help="Only this point of the sweep's first axis; repeatable."
)
@click.option("--results", "directory", default=RESULTS, show_default=True, type=click.Path(path_type=Path))
@click.option("--database", help="SQLAlchemy URL (default: SQLite in the results' directory).")
@click.option(
    "--path-policy",
    type=click.Path(path_type=Path),
    help="Python file with a path policy of your own, for a scheme with `entropy: file`.",
)
@click.option("--keep", is_flag=True, help="Leave the fabric up afterwards, until Ctrl-C.")
@click.option(
    "--fit",
    "fitting",
    is_flag=True,
    help="Slow the links down as far as this machine needs, with all times; the result says by how much.",
)
@scale_option
@json_option
def run_command(
    spec: str,
    seed: int | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    wanted: tuple[str, ...],
    directory: Path,
    database: str | None,
    path_policy: Path | None,
    keep: bool,
    fitting: bool,
    scale: float | None,
    json_file: str | None,
) -> None:
    """Run the experiment SPEC: a YAML file, or a preset's name.

    Every scheme gets the same flows; a spec with a sweep runs at each of its points. The result is printed, kept as
    JSON, CSV and figures (PNG, SVG), and in the database. Before it starts, it says how long it takes and whether this
    machine carries it.
    """
    need_lab("run")
    chosen = _asked_for(spec, seed, repeats, schemes, wanted, path_policy)
    _run(
        chosen,
        sized(chosen.spec, fitting=fitting, scale=scale),
        directory,
        json_file,
        database=database,
        keep=keep,
        path_policy=path_policy,
    )


@click.command("demo", epilog="Example:  ./capstan demo")
@click.option("--seed", type=click.IntRange(0), help="Other flows, other randomness.")
@click.option("--results", "directory", default=RESULTS, show_default=True, type=click.Path(path_type=Path))
@scale_option
@json_option
def demo_command(seed: int | None, directory: Path, scale: float | None, json_file: str | None) -> None:
    """ECMP, RPS and CAPS on the same flows over paths of real switches, in some three minutes.

    There are 16 paths, or as many as this machine's processors carry, 8 at least.
    """
    need_all_of_a_lab("demo", directory)
    chosen = _asked_for("demo", seed, None, (), (), None)
    _run(chosen, sized(chosen.spec, fitting=True, scale=scale, paths_first=True), directory, json_file)


def _asked_for(
    name: str,
    seed: int | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    wanted: tuple[str, ...],
    path_policy: Path | None,
) -> LoadedSpec:
    """Return the spec *name* with what the options change; ends the program where they do not fit."""
    loaded = load_lab_spec(name, schemes)
    need_path_policy(loaded.spec, path_policy)
    spec = dataclasses.replace(
        loaded.spec,
        seed=loaded.spec.seed if seed is None else seed,
        repeats=loaded.spec.repeats if repeats is None else repeats,
    )
    if wanted:
        try:
            spec = only(spec, wanted)
        except SweepError as error:
            fail(f"{name}: {error}", code=2)
    return dataclasses.replace(loaded, spec=spec)


def _run(
    asked: LoadedSpec,
    chosen: Fit,
    directory: Path,
    json_file: str | None,
    *,
    database: str | None = None,
    keep: bool = False,
    path_policy: Path | None = None,
) -> None:
    spec = chosen.spec

    def up(deployment: Deployment) -> None:
        deployment.lab.notices += notice(chosen, own_cores().effective)
        display.notices(deployment.lab.notices)

    def kept(result: Result | SweepResult, deployment: Deployment) -> None:
        if keep:
            _print(result, json_file)
            hold(deployment)

    run: Callable[..., Result | SweepResult] = run_sweep if spec.sweep else run_experiment
    made = [path for path in (*reversed(directory.absolute().parents), directory) if not path.exists()]
    result: Result | SweepResult | None = None
    try:
        with Display(spec.title) as display:
            result = run(
                spec,
                spec_text(spec) if chosen.changes else asked.text,
                results=directory,
                database=database,
                on_progress=display.update,
                on_up=up,
                on_restart=display.restarted,
                on_result=kept,
                path_policy=path_policy,
            )
    finally:
        of_ours = [directory / "logs", *directory.glob("capstan.db*"), *directory.glob(f"{spec.name}-*")]
        give_to_caller(*made, *of_ours)
    if not keep:
        _print(result, json_file)


def _print(result: Result | SweepResult, json_file: str | None) -> None:
    if json_file != "-":
        single = isinstance(result, Result)
        shown: Group = tables(result.document) if single else sweep_tables(result.document)
        results.print(shown)
        numbers = str(result.experiment) if isinstance(result, Result) else _range(result.experiments)
        results.print(
            f"kept in {result.directory} (result.json, {'flows.csv, ' if single else ''}figures) "
            f"and as experiment {numbers}",
            markup=False,
            soft_wrap=True,
        )
    if json_file:
        write_text(json_text(result.document), json_file)
    if json_file == "-":
        progress.print(f"kept in {result.directory}", markup=False, soft_wrap=True)


def _range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
