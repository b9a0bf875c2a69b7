"""An experiment run in a lab of its own, shown while it runs, printed and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Group

from cli.console import fail, need_place, number_range, progress, results, write_text
from cli.live import Display, hold, print_attempt, print_page, print_restart
from cli.privileges import new_file_for_caller, results_for_caller
from cli.recordings import Recording, write_recording
from cli.sizing import notice
from cli.specs import LoadedSpec, SpecChanges, changed_lab_spec, need_path_policy
from experiments.results.document import json_text
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.run.capture import LabRecorder
from experiments.run.cpu import is_free
from experiments.run.deployment import Deployment
from experiments.run.experiment import Result
from experiments.run.runner import RunOptions, SweepResult, run_experiment, run_sweep
from experiments.spec.fitting import Fit
from experiments.spec.serialized import spec_text
from topologies.cores import own_cores


def asked_for(name: str, changes: SpecChanges, path_policy: Path | None) -> LoadedSpec:
    """Return the spec *name* with what the options change; ends the program where they do not fit a lab."""
    loaded = changed_lab_spec(name, changes)
    need_path_policy(loaded.spec, path_policy)
    return loaded


def run_in_lab(
    loaded: LoadedSpec,
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
    """Run *loaded* as it was sized in a lab of its own, print its result and keep it below *directory*.

    keep: leave the fabric up for experiments afterwards. demo: its page opens on the tour, and what is begun there
    meanwhile runs afterwards. Raises what `run_experiment` raises.
    """
    printed = False

    def up(deployment: Deployment) -> None:
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
    result = run_sized(
        loaded,
        chosen,
        RunOptions(
            results=directory,
            database=database,
            on_up=up,
            on_result=kept,
            path_policy=path_policy,
            queue=keep or demo,
            recorder=recorder,
            controller_options=["--opens-on-tour"] if demo else [],
        ),
    )
    if not printed:
        _print(result, json_file)
    if recording is not None and recorder is not None:
        if recorder.trace is None:
            fail(f"kept in {result.directory}, but not recorded: {recorder.problem}")
        with new_file_for_caller(recording.path):
            write_recording(recorder.trace, recording.path)


def run_sized(loaded: LoadedSpec, chosen: Fit, options: RunOptions) -> Result | SweepResult:
    """Return what *loaded* gave, run as it was sized in a lab of its own, with its progress on the console.

    The result says how it was sized. Where the machine carries it, a run that the processor limited is repeated. Raises
    what `run_experiment` raises.
    """
    need_place(options.results)
    spec = chosen.spec
    cores = own_cores().effective
    carried = chosen.load.verdict(cores) == "carries"
    run: Callable[..., Result | SweepResult] = run_sweep if spec.sweep else run_experiment
    with results_for_caller(options.results, f"{spec.name}-*"), Display(spec.title) as display:

        def up(deployment: Deployment) -> None:
            deployment.lab.notices += notice(chosen, cores)
            display.notices(deployment.lab.notices)
            options.on_up(deployment)

        return run(
            spec,
            spec_text(spec) if chosen.changes else loaded.text,
            replace(
                options,
                on_progress=display.update,
                on_up=up,
                on_restart=print_restart,
                again=lambda run: carried and run.cpu_limited and is_free(),
            ),
        )


def _print(result: Result | SweepResult, json_file: str | None) -> None:
    """Write the JSON document, if it was asked for, and print the result, whichever of both fails."""
    try:  # first: where the reader of what is printed has gone, as `head` does, printing ends the program
        if json_file:
            with new_file_for_caller(json_file):
                write_text(json_text(result.document), json_file)
    finally:
        _print_tables(result, json_file)


def _print_tables(result: Result | SweepResult, json_file: str | None) -> None:
    if json_file == "-":
        progress.print(f"kept in {result.directory}", markup=False, soft_wrap=True)
        return
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
