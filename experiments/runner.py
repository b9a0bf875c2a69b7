"""Runs what a spec asks for: fabrics up, an experiment for each point of its sweep, results kept, fabrics down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from experiments.deployment import Deployment
from experiments.drawing import draw_comparison, draw_sweep
from experiments.experiment import Experiment, Result
from experiments.progress import OnProgress, Steps
from experiments.results import Run, new_directory, write_result
from experiments.spec import Spec, spec_text
from experiments.sweep import Point, points, words
from experiments.sweep_results import sweep_document, write_sweep


@dataclass(frozen=True, slots=True)
class SweepResult:
    """document: as in the sweep's result.json; experiments: the points' numbers in the database."""

    document: dict[str, Any]
    directory: Path
    experiments: tuple[int, ...]


OnUp = Callable[[Deployment], None]


def run_experiment(
    spec: Spec,
    text: str,
    *,
    results: Path,
    on_progress: OnProgress = lambda progress: None,
    database: str | None = None,
    on_up: OnUp = lambda deployment: None,
    on_result: Callable[[Result, Deployment], None] = lambda result, deployment: None,
) -> Result:
    """Bring the fabric up, run everything, keep the results, take the fabric down.

    text: the spec as its author wrote it. results: directory below which the result gets one of its own.
    database: SQLAlchemy URL; default: the file capstan.db in `results`. on_up: called when the fabric forwards;
    on_result: with the fabric still up.

    Raises:
        DeploymentError, ControllerError, TrafficError, DrainError, OutcomeError, EmptyError: no result, and why.
    """
    steps = Steps([spec], on_progress)

    def keep(document: Any, runs: Sequence[Run]) -> Path:
        return write_result(new_directory(results, spec.name, _when(document)), document, runs, text)

    with _deployment(spec, results, database, steps) as deployment:
        on_up(deployment)
        result = Experiment(spec, deployment, steps, steps.plans[0], keep).run()
        steps.stage("drawing")
        draw_comparison(result.document, result.directory)
        on_result(result, deployment)
        steps.stage("taking the fabric down")
    return result


def run_sweep(
    spec: Spec,
    text: str,
    *,
    results: Path,
    on_progress: OnProgress = lambda progress: None,
    database: str | None = None,
    on_up: OnUp = lambda deployment: None,
    on_result: Callable[[SweepResult, Deployment], None] = lambda result, deployment: None,
) -> SweepResult:
    """The same for every point of the spec's sweep, all on one fabric where the points have the same.

    Each point is an experiment of its own, kept in a directory of its own below the sweep's. If one fails, those
    before it stay, and there is no result of the sweep.
    """
    grid = points(spec)
    steps = Steps([point.spec for point in grid], on_progress)
    directory = new_directory(results, spec.name, datetime.now(UTC))
    found: list[tuple[Point, Result]] = []
    for group in _same_fabric(grid):
        with _deployment(group[0].spec, results, database, steps) as deployment:
            on_up(deployment)
            for point in group:
                number = len(found)
                deployment.take(point.spec)
                steps.begin_point(words(spec.sweep, point.at))
                place = directory / f"point-{number + 1:0{len(str(len(grid)))}d}"
                place.mkdir()

                def keep(
                    document: Any, runs: Sequence[Run], place: Path = place, point: Point = point
                ) -> Path:
                    return write_result(place, document, runs, spec_text(point.spec))

                found.append(
                    (point, Experiment(point.spec, deployment, steps, steps.plans[number], keep).run())
                )
            steps.begin_point("")
            if len(found) == len(grid):
                steps.stage("drawing")
                document = sweep_document(
                    spec, [(point.at, one.directory, one.document) for point, one in found]
                )
                write_sweep(directory, document, text)
                draw_sweep(document, directory)
                result = SweepResult(document, directory, tuple(one.experiment for _, one in found))
                on_result(result, deployment)
            steps.stage("taking the fabric down")
    return result


def _same_fabric(grid: Sequence[Point]) -> Iterator[list[Point]]:
    """The points in turn, those together that one deployment can serve."""
    for _, group in groupby(grid, lambda point: (point.spec.fabric, point.spec.transport)):
        yield list(group)


def _deployment(spec: Spec, results: Path, database: str | None, steps: Steps) -> Deployment:
    results.mkdir(parents=True, exist_ok=True)
    database = database or f"sqlite:///{results.absolute() / 'capstan.db'}"
    return Deployment(spec, database=database, logs=results.absolute() / "logs", on_stage=steps.stage)


def _when(document: Any) -> datetime:
    return datetime.fromisoformat(document["started"])
