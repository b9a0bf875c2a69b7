"""Where an experiment is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # a worker that waits needs neither
    from experiments.spec.spec import Spec
    from workloads.plan import Plan

BETWEEN_RUNS_S: Final = 1.0
"""What collecting, storing and switching the scheme take, for the estimate of the time left."""
TAIL_S: Final = 2.0
"""The same for the last flows of a run, before one was seen."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where an experiment is, for people who wait. run: 0 while starting, then 1..runs."""

    stage: str
    run: int = 0
    runs: int = 0
    finished: int = 0
    failed: int = 0
    flows: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None


OnProgress = Callable[[RunProgress], None]


@dataclass(frozen=True, slots=True)
class _Coming:
    """One run to be: which repeat of how many, how long its flows come, and the silence before it."""

    repeat: int
    repeats: int
    window_s: float
    pause_s: float


class Steps:
    """Progress and the estimate of what is left, over all runs of one spec or of a sweep's points in turn."""

    def __init__(self, specs: Sequence[Spec], on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._begun = time.monotonic()
        self._stage = "starting"
        self._prefix = ""
        self._run = 0
        self._finished = self._failed = self._flows = 0
        self._tails: list[float] = []
        self._end_of_run: float | None = None
        self.plans = [[spec.plan(repeat) for repeat in range(spec.repeats)] for spec in specs]
        """By spec and repeat."""
        self._coming = [
            _Coming(repeat, spec.repeats, plan.window_s[1], spec.pause_s)
            for spec, plans in zip(specs, self.plans, strict=True)
            for repeat, plan in enumerate(plans)
            for _ in spec.schemes
        ]

    @property
    def expected(self) -> tuple[int, float]:
        """Return the runs that are still to come, and how many seconds they will take."""
        return len(self._coming) - self._run, self._left()

    def stage(self, text: str) -> None:
        """Note that something between runs begins."""
        self._stage = text
        self._end_of_run = None
        self._publish()

    def begin_point(self, words: str) -> None:
        """Note that the next runs belong to this point of a sweep."""
        self._prefix = f"{words}: " if words else ""

    def begin_run(self, label: str, plan: Plan) -> None:
        """Note that the next run begins."""
        coming = self._coming[self._run]
        self._run += 1
        self._flows = len(plan.sized)
        self._finished = self._failed = 0
        self._stage = f"{self._prefix}{label}, repeat {coming.repeat + 1} of {coming.repeats}"
        self._end_of_run = time.monotonic() + coming.window_s + self._tail
        self._publish()

    def repeat_run(self) -> None:
        """Note that the run that began last begins anew."""
        self._run -= 1

    def skip_run(self) -> None:
        """Note that the next run was done before."""
        self._run += 1

    def flows(self, finished: int, failed: int) -> None:
        """Note that so many flows of this run are over."""
        self._finished, self._failed = finished, failed
        self._publish()

    def end_run(self, tail_s: float) -> None:
        """Note that the run is over, that many seconds after its last arrival."""
        self._tails.append(tail_s)
        self._end_of_run = None

    def tick(self) -> None:
        """Note that nothing happened but time."""
        self._publish()

    @property
    def _tail(self) -> float:
        return sum(self._tails) / len(self._tails) if self._tails else TAIL_S

    def _left(self) -> float:
        rest = sum(
            coming.window_s + self._tail + coming.pause_s + BETWEEN_RUNS_S
            for coming in self._coming[self._run :]
        )
        return rest + (max(0.0, self._end_of_run - time.monotonic()) if self._end_of_run else 0.0)

    def _publish(self) -> None:
        self._on_progress(
            RunProgress(
                stage=self._stage,
                run=self._run,
                runs=len(self._coming),
                finished=self._finished,
                failed=self._failed,
                flows=self._flows,
                elapsed_s=time.monotonic() - self._begun,
                left_s=self._left(),
            )
        )
