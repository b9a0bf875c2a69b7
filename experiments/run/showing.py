"""An experiment, repeated on one fabric for people who watch, until a signal ends it."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import ControllerError
from experiments.results.document import Run, new_directory, write_result
from experiments.results.outcome import OutcomeError
from experiments.results.statistics import EmptyError
from experiments.run.deployment import Deployment
from experiments.run.drain import DrainError
from experiments.run.experiment import Experiment, Result
from experiments.run.parts import DeploymentError
from experiments.run.progress import OnProgress, RunProgress, Steps
from experiments.run.recording import CancelledError
from experiments.run.traffic import TrafficError
from experiments.spec.serialized import spec_text
from experiments.spec.spec import Spec

AGAIN_S: Final = 5.0
"""Before the next round after one without a result, so that what never works does not fill the database."""
ASK_EVERY_S: Final = 1.0
ROUNDS: Final = "rounds"
"""Directory of rounds' results, within that of all results: what people ran themselves is not ours to remove."""
SPOILT: Final = (ControllerError, DeploymentError, DrainError, OutcomeError, EmptyError, TrafficError)
"""What a round may end with while the fabric lives on: people who watch also take links down and switch schemes."""


class GiveWay:
    """Passes progress on, and raises CancelledError once the fabric is wanted."""

    def __init__(
        self,
        on_progress: OnProgress,
        wanted: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_progress = on_progress
        self._wanted = wanted
        self._clock = clock
        self._ask_at = clock() + ASK_EVERY_S

    def __call__(self, progress: RunProgress) -> None:
        self._on_progress(progress)
        if self._clock() < self._ask_at:
            return
        self._ask_at = self._clock() + ASK_EVERY_S
        if self._wanted():
            raise CancelledError("it gave way to an experiment that was submitted")


def show(
    deployment: Deployment,
    spec: Spec,
    text: str,
    *,
    results: Path,
    keep: int,
    on_progress: OnProgress = lambda progress: None,
    on_result: Callable[[Result], None] = lambda result: None,
    on_spoilt: Callable[[Exception], None] = lambda error: None,
    between: Callable[[], object] = lambda: None,
    wanted: Callable[[], bool] = lambda: False,
) -> None:
    """Run *spec* on a deployment that is up until a signal ends it, each time with the next seed.

    keep: so many results stay in `rounds` of *results*, the newest. A round without one is reported; the next begins.
    between: called before each round, for whatever else the fabric is wanted for; wanted: whether it is, asked at most
    once a second while a round goes on, which then ends as cancelled, without a result.

    Raises:
        DeploymentError, ControllerError: a part of the deployment has ended, or the controller does not answer.
    """
    seed = spec.seed
    while True:
        round_spec = replace(spec, seed=seed)
        try:
            between()
            deployment.take(round_spec)
            steps = Steps([round_spec], GiveWay(on_progress, wanted))
            on_result(
                Experiment(
                    round_spec,
                    deployment,
                    steps,
                    plans=steps.plans[0],
                    keep=_keeper(
                        results / ROUNDS,
                        round_spec,
                        text if seed == spec.seed else spec_text(round_spec),
                        keep,
                    ),
                ).run()
            )
        except CancelledError:
            continue
        except SPOILT as error:
            on_spoilt(error)
            deployment.check()
            time.sleep(AGAIN_S)
            deployment.client.health()  # no answer: the reason to end
        seed += 1


def remove_older(rounds: Path, keep: int, newest: Path | None = None) -> None:
    """Remove all results below *rounds* but the newest. Another `show` may remove some meanwhile.

    newest: one of them, whatever the clock says: it may have been set back. None: the clock is believed.
    """
    made_at: dict[Path, float] = {}
    for path in rounds.iterdir():
        with suppress(FileNotFoundError):
            if (path / "result.json").exists():
                made_at[path] = math.inf if path == newest else path.stat().st_mtime
    for path in sorted(made_at, key=lambda path: made_at[path])[:-keep]:
        with suppress(FileNotFoundError):
            shutil.rmtree(path)


def _keeper(rounds: Path, spec: Spec, text: str, keep: int) -> Callable[[Any, Sequence[Run]], Path]:
    def write(document: Any, runs: Sequence[Run]) -> Path:
        started = datetime.fromisoformat(document["started"])
        directory = write_result(new_directory(rounds, spec.name, started), document, runs, text)
        remove_older(rounds, keep, directory)
        return directory

    return write
