"""Routes for the engine's workers: what is to be run next, how far an attempt is, and how it ended."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Literal

from controller.api.answers_experiments import ExperimentObject
from controller.api.bodies import MOST_EXACT, within
from controller.api.describing import END_BYTES, RESULTS_BYTES, Description
from controller.api.problems import ProblemError
from controller.api.repeatable import Repeatable
from controller.api.request_values import body
from controller.api.routing import post, put
from controller.store.experiments import ExperimentStore
from controller.store.queue import Claimed
from engine import answers
from engine.dispatcher import Engine
from engine.worker_client import Takes
from engine.worker_report import WorkerReportBody

ONE: Final = "/experiments/<number:experiment>"
MOST_CLAIMS: Final = 64
"""That a worker may ask for again: each has a spec."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimBody:
    """``worker``: its name, as NAME@machine:process. ``fabric``: of the lab that it has up, "" without one.
    ``takes``: what it can run. ``question``: drawn by the worker; where it asks again since an answer was lost, it gets
    the same one."""

    worker: str
    fabric: str = ""
    takes: Takes = "labs"
    question: int | None = within(0, MOST_EXACT, default=None)


@dataclasses.dataclass(frozen=True, slots=True)
class EquipBody:
    """By what an attempt runs: versions of programs, and the machine."""

    attempt: int
    versions: dict[str, Any]
    machine: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class AttemptEndBody:
    """``summary``: the result document, of one that finished."""

    attempt: int
    state: Literal["finished", "failed", "interrupted"]
    summary: dict[str, Any] | None = None
    error: str = ""

    @staticmethod
    def rule() -> dict[str, Any]:
        """Return what finished has results, as JSON Schema."""
        unfinished = {"properties": {"state": {"enum": ["failed", "interrupted"]}}}
        return {
            "anyOf": [unfinished, {"properties": {"summary": {"type": "object"}}, "required": ["summary"]}]
        }


class WorkerRoutes:
    """Attempts at what was submitted."""

    def __init__(self, engine: Engine, store: ExperimentStore) -> None:
        self._engine: Final = engine
        self._store: Final = store
        self._claims: Final = Repeatable[Claimed | None](MOST_CLAIMS)

    @post("/engine/claims", Description("For workers: what is to be run next.", answers.ClaimView, ClaimBody))
    def claim(self) -> answers.ClaimView:
        wanted = body(ClaimBody)
        claimed = self._claims.respond(
            wanted.question, lambda: self._engine.claim(wanted.worker, wanted.fabric, wanted.takes)
        )
        if claimed is None:
            return {"claim": None}
        kept_runs: list[answers.KeptView] = [
            {"label": label, "repeat": repeat, "run": run} for label, repeat, run in claimed.kept
        ]
        return {
            "claim": {
                "experiment": claimed.experiment,
                "parent": claimed.parent,
                "attempt": claimed.attempt,
                "spec": claimed.spec,
                "fabric": claimed.fabric,
                "simulated": claimed.simulated,
                "kept": kept_runs,
                "record": None if claimed.record is None else dict(claimed.record),
            }
        }

    @put(
        ONE + "/progress",
        Description("For workers: where an attempt is.", answers.GoOnView, WorkerReportBody, problems=(404,)),
    )
    def report(self, experiment: int) -> answers.GoOnView:
        return {"go_on": self._engine.report(experiment, body(WorkerReportBody))}

    @put(
        ONE + "/equipment",
        Description(
            "For workers: with what an attempt is run.", ExperimentObject, EquipBody, problems=(404, 409)
        ),
    )
    def equip(self, experiment: int) -> dict[str, Any]:
        wanted = body(EquipBody)
        self._engine.queue.equip(experiment, wanted.attempt, wanted.versions, wanted.machine)
        return self._store.experiment(experiment, runs=False)

    @post(
        ONE + "/end",
        Description(
            "For workers: an attempt is over.",
            ExperimentObject,
            AttemptEndBody,
            most_body_bytes=RESULTS_BYTES,
            keeps_above_bytes=END_BYTES,
            problems=(404, 409),
        ),
    )
    def end(self, experiment: int) -> dict[str, Any]:
        wanted = body(AttemptEndBody)
        if wanted.state == "finished" and wanted.summary is None:
            raise ProblemError(422, "body.summary: is missing: what finished has results", "body.summary")
        self._engine.end(experiment, wanted.attempt, wanted.state, summary=wanted.summary, error=wanted.error)
        return self._store.experiment(experiment, runs=False)
