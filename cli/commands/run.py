"""``capstan run`` and ``capstan demo``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Group

from cli.console import fail, json_option, number_range, progress, results, write_text
from cli.live import Display, hold, print_attempt, print_page, print_restart
from cli.privileges import give_to_caller, need_all_of_a_lab, need_lab
from cli.recordings import Recording, need_single_run, recording_options, write_recording
from cli.sizing import notice, scale_option, sized
from cli.spec_options import (
    database_option,
    path_policy_option,
    points_option,
    repeats_option,
    results_option,
    schemes_option,
    seed_option,
)
from cli.specs import LoadedSpec, SpecChanges, changed_lab_spec, need_path_policy
from experiments.results.document import json_text
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.run.capture import LabRecorder
from experiments.run.deployment import Deployment
from experiments.run.experiment import Result
from experiments.run.runner import RunOptions, SweepResult, run_experiment, run_sweep
from experiments.spec.fitting import Fit
from experiments.spec.spec import spec_text
from topologies.cores import own_cores


@click.command(
    "run",
    epilog="Examples:  ./capstan run small    ./capstan run my-experiment.yaml --json -    ./capstan run demo --seed 7",
)
@click.argument("spec")
@seed_option
@repeats_option
@schemes_option
@points_option
@results_option
@database_option
@path_policy_option
@recording_options("ms of the run")
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
    points: tuple[str, ...],
    directory: Path,
    database: str | None,
    path_policy: Path | None,
    packet_trace: Path | None,
    trace_from: float,
    trace_for: float,
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
    chosen = _asked_for(spec, SpecChanges(seed, repeats, schemes, points), path_policy)
    if packet_trace is not None:
        need_single_run(chosen.spec, spec)
    _run(
        chosen,
        sized(chosen.spec, fitting=fitting, scale=scale),
        directory,
        json_file,
        database=database,
        keep=keep,
        path_policy=path_policy,
        recording=None if packet_trace is None else Recording(packet_trace, trace_from, trace_for),
    )


@click.command("demo", epilog="Examples:  ./capstan demo    ./capstan demo --keep")
@seed_option
@results_option
@click.option(
    "--keep", is_flag=True, help="Leave the fabric and its page up afterwards, for experiments, until Ctrl-C."
)
@scale_option
@json_option
def demo_command(
    seed: int | None, directory: Path, keep: bool, scale: float | None, json_file: str | None
) -> None:
    """Run ECMP, RPS and CAPS on the same flows over paths of real switches, in some three minutes.

    There are 16 paths, or as many as this machine's processors carry, 8 at least. Its page opens on a tour; experiments
    that are begun there meanwhile run after it.
    """
    need_all_of_a_lab("demo", directory)
    chosen = _asked_for("demo", SpecChanges(seed), None)
    fit = sized(chosen.spec, fitting=True, scale=scale, paths_first=True)
    _run(chosen, fit, directory, json_file, keep=keep, demo=True)


def _asked_for(name: str, changes: SpecChanges, path_policy: Path | None) -> LoadedSpec:
    """Return the spec *name* with what the options change; ends the program where they do not fit a lab."""
    loaded = changed_lab_spec(name, changes)
    need_path_policy(loaded.spec, path_policy)
    return loaded


def _run(
    asked: LoadedSpec,
    chosen: Fit,
    directory: Path,
    json_file: str | None,
    *,
    database: str | None = None,
    keep: bool = False,
    path_policy: Path | None = None,
    recording: Recording | None = None,
    demo: bool = False,
) -> None:
    spec = chosen.spec
    printed = False

    def up(deployment: Deployment) -> None:
        deployment.lab.notices += notice(chosen, own_cores().effective)
        display.notices(deployment.lab.notices)
        if demo:
            print_page(deployment.client.url)

    def kept(result: Result | SweepResult, deployment: Deployment) -> None:
        nonlocal printed
        if not (keep or demo):
            return
        from engine.held_lab import HeldQueue  # with what --help need not wait for

        with HeldQueue(deployment, own_cores().workers(), print_attempt) as queue:
            if keep or queue.waiting():
                _print(result, json_file)
                printed = True
            if keep:
                hold(deployment, queue)
            else:
                queue.work_off()

    recorder = None if recording is None else LabRecorder(recording.from_ms, recording.for_ms)
    run: Callable[..., Result | SweepResult] = run_sweep if spec.sweep else run_experiment
    made = [path for path in (*reversed(directory.absolute().parents), directory) if not path.exists()]
    result: Result | SweepResult | None = None
    try:
        with Display(spec.title) as display:
            result = run(
                spec,
                spec_text(spec) if chosen.changes else asked.text,
                RunOptions(
                    results=directory,
                    database=database,
                    on_progress=display.update,
                    on_up=up,
                    on_restart=print_restart,
                    on_result=kept,
                    path_policy=path_policy,
                    queue=keep or demo,
                    recorder=recorder,
                    controller_options=["--opens-on-tour"] if demo else [],
                ),
            )
    finally:
        of_ours = [directory / "logs", *directory.glob("capstan.db*"), *directory.glob(f"{spec.name}-*")]
        give_to_caller(*made, *of_ours)
    if not printed:
        _print(result, json_file)
    if recording is not None and recorder is not None:
        if recorder.trace is None:
            fail(f"kept in {result.directory}, but not recorded: {recorder.problem}")
        write_recording(recorder.trace, recording.path)
        give_to_caller(recording.path)


def _print(result: Result | SweepResult, json_file: str | None) -> None:
    if json_file != "-":
        single = isinstance(result, Result)
        shown: Group = tables(result.document) if single else sweep_tables(result.document)
        results.print(shown)
        numbers = str(result.experiment) if isinstance(result, Result) else number_range(result.experiments)
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
