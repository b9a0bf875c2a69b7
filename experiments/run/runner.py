"""Runs what a spec asks for: fabrics up, an experiment for each point of its sweep, results kept, fabrics down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.results.document import Run, new_directory, write_result
from experiments.results.drawing import draw_comparison, draw_sweep
from experiments.results.sweep_results import sweep_document, write_sweep
from experiments.run.capture import LabRecorder
from experiments.run.deployment import Deployment, OnRestart
from experiments.run.experiment import Experiment, Keep, Result
from experiments.run.progress import OnProgress, Steps
from experiments.spec.serialized import spec_text
from experiments.spec.spec import Spec
from experiments.spec.sweep import Point, by_fabric, points, words
from plain.sqlite_url import sqlite_url


@dataclass(frozen=True, slots=True)
class SweepResult:
    """document: as in the sweep's result.json; experiments: the points' numbers in the database."""

    document: dict[str, Any]
    directory: Path
    experiments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where results of runs go, and what is called meanwhile.

    results: directory below which a result gets one of its own. database: SQLAlchemy URL; None: the file capstan.db in
    `results`. path_policy, on_restart, queue, controller_options: as `Deployment` takes them. on_up: called when the
    fabric forwards; on_result: with the fabric still up. recorder, again: as `Experiment` takes them; a
    sweep is not recorded.
    """

    results: Path
    database: str | None = None
    path_policy: Path | None = None
    queue: bool = False
    recorder: LabRecorder | None = None
    again: Callable[[Run], bool] = lambda run: False
    controller_options: Sequence[str] = ()
    on_progress: OnProgress = lambda progress: None
    on_up: Callable[[Deployment], None] = lambda deployment: None
    on_restart: OnRestart = lambda restart: None
    on_result: Callable[[Result | SweepResult, Deployment], None] = lambda result, deployment: None


def run_experiment(spec: Spec, text: str, options: RunOptions) -> Result:
    """Bring the fabric up, run everything, keep and return the result, take the fabric down.

    text: the spec as its author wrote it.

    Raises:
        DeploymentError, ControllerError, TrafficError, DrainError, OutcomeError, EmptyError, CaptureError: no
            result, and why.
    """
    steps = Steps([spec], options.on_progress)

    def keep(document: Any, runs: Sequence[Run]) -> Path:
        return write_result(new_directory(options.results, spec.name, _when(document)), document, runs, text)

    with _deployment(spec, options, steps) as deployment:
        options.on_up(deployment)
        result = Experiment(
            spec,
            deployment,
            steps,
            plans=steps.plans[0],
            keep=keep,
            recorder=options.recorder,
            again=options.again,
        ).run()
        steps.stage("drawing")
        draw_comparison(result.document, result.directory)
        options.on_result(result, deployment)
        steps.stage("taking the fabric down")
    return result


def run_sweep(spec: Spec, text: str, options: RunOptions) -> SweepResult:
    """Run every point of the spec's sweep as `run_experiment` does, on one fabric where points have the same; return
    the result.

    Each point is an experiment of its own, kept in a directory of its own below the sweep's. If one fails, those
    before it stay, and there is no result of the sweep.
    """
    grid = points(spec)
    order = by_fabric(grid)
    steps = Steps([grid[index].spec for group in order for index in group], options.on_progress)
    plans = iter(steps.plans)
    directory = new_directory(options.results, spec.name, datetime.now(UTC))
    done: dict[int, Result] = {}
    for group in order:
        with _deployment(grid[group[0]].spec, options, steps) as deployment:
            options.on_up(deployment)
            for index in group:
                point = grid[index]
                place = directory / f"point-{index + 1:0{len(str(len(grid)))}d}"
                place.mkdir()
                deployment.take(point.spec)
                steps.begin_point(words(spec.sweep, point.at))
                done[index] = Experiment(
                    point.spec,
                    deployment,
                    steps,
                    plans=next(plans),
                    keep=_keep_in(place, point),
                    again=options.again,
                ).run()
            steps.begin_point("")
            if len(done) == len(grid):
                steps.stage("drawing")
                result = _whole(spec, text, grid=grid, results=done, directory=directory)
                options.on_result(result, deployment)
            steps.stage("taking the fabric down")
    return result


def _keep_in(place: Path, point: Point) -> Keep:
    return lambda document, runs: write_result(place, document, runs, spec_text(point.spec))


def _whole(
    spec: Spec, text: str, *, grid: Sequence[Point], results: Mapping[int, Result], directory: Path
) -> SweepResult:
    """Return the sweep's result out of its points', kept and drawn."""
    ordered = [results[index] for index in range(len(grid))]
    document = sweep_document(
        spec,
        [(point.at, result.directory, result.document) for point, result in zip(grid, ordered, strict=True)],
    )
    write_sweep(directory, document, text)
    draw_sweep(document, directory)
    return SweepResult(document, directory, tuple(sorted(result.experiment for result in ordered)))


def _deployment(spec: Spec, options: RunOptions, steps: Steps) -> Deployment:
    results = options.results
    results.mkdir(parents=True, exist_ok=True)
    database = options.database or sqlite_url(results.absolute() / "capstan.db")
    return Deployment(
        spec,
        database=database,
        logs=results.absolute() / "logs",
        on_stage=steps.stage,
        path_policy=options.path_policy,
        on_restart=options.on_restart,
        queue=options.queue,
        controller_options=options.controller_options,
    )


def _when(document: Any) -> datetime:
    return datetime.fromisoformat(document["started"])
