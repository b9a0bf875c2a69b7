"""Routes of the engine: submit, cancel, run again, where everything is, and what workers ask and tell."""

from __future__ import annotations

import dataclasses
import json
import time
from functools import lru_cache
from typing import Any, Final, Literal

from flask import Blueprint, Response, jsonify, request

from controller.api.access import Rate
from controller.api.answers_experiments import ExperimentObject
from controller.api.bodies import body, number
from controller.api.describing import RESULTS_BYTES, Description, Query, describe
from controller.api.exporting import drawn
from controller.api.problems import ProblemError
from controller.api.routes_exports import MEDIA
from controller.store.experiments import ExperimentStore
from engine import answers
from engine.board import ProgressView, WorkerReportBody
from engine.dispatcher import Engine
from engine.submission import (
    MOST_BYTES,
    Submission,
    SubmissionBody,
    SubmissionError,
    Wrong,
    preset_submission,
    read_submission,
)
from engine.whole import result_table
from experiments.spec.check import preset_names
from experiments.spec.schema import schema

ONE: Final = "/experiments/<number:experiment>"
YAML: Final = ("application/yaml", "text/yaml", "application/x-yaml")


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimBody:
    """``worker``: its name, as NAME@machine:process. ``fabric``: of the lab that it has up, "" without one."""

    worker: str
    fabric: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class EquipBody:
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
        """What finished has results, as JSON Schema."""
        unfinished = {"properties": {"state": {"enum": ["failed", "interrupted"]}}}
        return {
            "anyOf": [unfinished, {"properties": {"summary": {"type": "object"}}, "required": ["summary"]}]
        }


def engine_routes(engine: Engine, store: ExperimentStore, submits: Rate, checks: Rate) -> Blueprint:
    """The blueprint. *submits*, *checks*: how often experiments may be submitted, and specs checked."""
    routes = Blueprint("engine", __name__, url_prefix="/api/v1")

    def one_of(number: int) -> dict[str, Any]:
        return store.experiment(number, runs=False)

    @routes.post("/experiments")
    @describe(
        Description(
            "Have an experiment, or a sweep, run as soon as it is its turn.",
            ExperimentObject,
            SubmissionBody,
            body_text=YAML,
            status=201,
            problems=(429,),
        )
    )
    def submit() -> Response:
        submits.take(time.monotonic())
        made = one_of(engine.submit(_submission()))
        response = jsonify(made)
        response.status_code = 201
        response.headers["Location"] = f"/api/v1/experiments/{made['id']}"
        return response

    @routes.post("/experiments/check")
    @describe(
        Description(
            "What a submission would be, or all that is wrong with it. Nothing is kept.",
            answers.CheckView,
            SubmissionBody,
            body_text=YAML,
            problems=(429,),
        )
    )
    def check() -> answers.CheckView:
        checks.take(time.monotonic())
        try:
            found = read_submission(_asked())
        except SubmissionError as error:
            return {**_NOTHING, "problems": [_problem(one) for one in error.problems]}
        return {
            "ok": True,
            "problems": [],
            "kind": "sweep" if found.points else "experiment",
            "points": len(found.points),
            "runs": found.job.runs,
            "schemes": [choice.label for choice in found.spec.schemes],
            "estimated_s": round(found.job.estimated_s, 1),
        }

    @routes.get("/specs")
    @describe(Description("The experiments that come with Capstan.", answers.SpecsView))
    def specs() -> answers.SpecsView:
        return {"presets": [_preset(name) for name in preset_names()]}

    @routes.get("/specs/schema")
    @describe(Description("The JSON Schema of a spec.", dict[str, Any]))
    def spec_schema() -> dict[str, Any]:
        return schema()

    @routes.get("/engine")
    @describe(Description("Where workers run, what they are at, and what waits.", answers.EngineView))
    def state() -> Any:
        return engine.state()

    @routes.get(ONE + "/progress")
    @describe(Description("Where a submitted experiment is.", ProgressView, problems=(404,)))
    def progress(experiment: int) -> ProgressView:
        return engine.progress(experiment)

    @routes.get(ONE + "/spec.yaml")
    @describe(Description("The spec, as submitted.", str, problems=(404,), media="application/yaml"))
    def spec_yaml(experiment: int) -> Response:
        return Response(engine.queue.text(experiment), mimetype="application/yaml")

    @routes.get(ONE + "/results.csv")
    @describe(
        Description(
            "Results as CSV: a row for each scheme at each point.",
            str,
            problems=(404, 409),
            media="text/csv",
        )
    )
    def results_csv(experiment: int) -> Response:
        found = one_of(experiment)
        try:
            table = result_table(found["summary"])
        except (KeyError, TypeError, AttributeError):
            state = found["state"]
            raise ProblemError(409, f"experiment {experiment} is {state} and has no results") from None
        return Response(table, mimetype="text/csv")

    part = Query("part", "Which combination of the other axes' values, from 1 on.", 1, default=1)

    def drawn_sweep(experiment: int, kind: str) -> Response:
        wanted = number("part", 1, 1) or 1
        found = one_of(experiment)
        if found["kind"] != "sweep":
            raise ProblemError(404, f"experiment {experiment} is no sweep")
        summary = found["summary"]
        if not isinstance(summary, dict) or not summary.get("points"):
            raise ProblemError(409, f"experiment {experiment} is {found['state']} and has no results")
        argv = ("engine.sweep_figure", str(wanted), kind)
        image = drawn("sweep", argv, [json.dumps(summary).encode()])
        if not image:
            raise ProblemError(404, f"figure 'sweep' of experiment {experiment} has no part {wanted}")
        return Response(image, mimetype=MEDIA[kind])

    @routes.get(ONE + "/figures/sweep.svg")
    @describe(
        Description(
            "A sweep's figure, as SVG.", str, query=(part,), problems=(404, 409, 503), media=MEDIA["svg"]
        )
    )
    def sweep_svg(experiment: int) -> Response:
        return drawn_sweep(experiment, "svg")

    @routes.get(ONE + "/figures/sweep.png")
    @describe(
        Description(
            "A sweep's figure, as PNG.", bytes, query=(part,), problems=(404, 409, 503), media=MEDIA["png"]
        )
    )
    def sweep_png(experiment: int) -> Response:
        return drawn_sweep(experiment, "png")

    @routes.post(ONE + "/cancel")
    @describe(
        Description(
            "Cancel an experiment: what waits at once, what runs within seconds.",
            ExperimentObject,
            status=202,
            problems=(404, 409),
        )
    )
    def cancel(experiment: int) -> tuple[dict[str, Any], int]:
        engine.cancel(experiment)
        return one_of(experiment), 202

    @routes.post(ONE + "/rerun")
    @describe(
        Description(
            "Run again what did not finish; runs that were kept stay.",
            ExperimentObject,
            status=202,
            problems=(404, 409),
        )
    )
    def rerun(experiment: int) -> tuple[dict[str, Any], int]:
        engine.rerun(experiment)
        return one_of(experiment), 202

    # For workers

    @routes.post("/engine/claims")
    @describe(Description("For workers: what is to be run next.", answers.ClaimView, ClaimBody))
    def claim() -> answers.ClaimView:
        wanted = body(ClaimBody)
        found = engine.claim(wanted.worker, wanted.fabric)
        if found is None:
            return {"claim": None}
        kept: list[answers.KeptView] = [
            {"label": label, "repeat": repeat, "run": run} for label, repeat, run in found.kept
        ]
        return {
            "claim": {
                "experiment": found.experiment,
                "parent": found.parent,
                "attempt": found.attempt,
                "spec": found.spec,
                "fabric": found.fabric,
                "kept": kept,
            }
        }

    @routes.put(ONE + "/progress")
    @describe(
        Description("For workers: where an attempt is.", answers.GoOnView, WorkerReportBody, problems=(404,))
    )
    def report(experiment: int) -> answers.GoOnView:
        return {"go_on": engine.report(experiment, body(WorkerReportBody))}

    @routes.put(ONE + "/equipment")
    @describe(
        Description(
            "For workers: with what an attempt is run.", ExperimentObject, EquipBody, problems=(404, 409)
        )
    )
    def equip(experiment: int) -> dict[str, Any]:
        wanted = body(EquipBody)
        engine.queue.equip(experiment, wanted.attempt, wanted.versions, wanted.machine)
        return one_of(experiment)

    @routes.post(ONE + "/end")
    @describe(
        Description(
            "For workers: an attempt is over.",
            ExperimentObject,
            AttemptEndBody,
            most_body_bytes=RESULTS_BYTES,
            problems=(404, 409),
        )
    )
    def end(experiment: int) -> dict[str, Any]:
        wanted = body(AttemptEndBody)
        if wanted.state == "finished" and wanted.summary is None:
            raise ProblemError(422, "body.summary: is missing: what finished has results", "body.summary")
        engine.end(experiment, wanted.attempt, wanted.state, wanted.summary, wanted.error)
        return one_of(experiment)

    return routes


_NOTHING: Final[answers.CheckView] = {
    "ok": False,
    "problems": [],
    "kind": None,
    "points": 0,
    "runs": 0,
    "schemes": [],
    "estimated_s": None,
}


def _asked() -> SubmissionBody:
    """The request's body. Raises ProblemError."""
    length = request.content_length
    if length is not None and length > MOST_BYTES:
        raise ProblemError(413, f"a submission has at most {MOST_BYTES >> 10} KiB")
    if request.mimetype not in YAML:
        return body(SubmissionBody)
    try:
        return SubmissionBody(text=request.get_data().decode())
    except UnicodeDecodeError:
        raise ProblemError(400, "the body is not text in UTF-8") from None


def _submission() -> Submission:
    try:
        return read_submission(_asked())
    except SubmissionError as error:
        problems = [_problem(one) for one in error.problems]
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ProblemError(
            422, f"{first['field']}: {first['message']}{more}", first["field"], problems=problems
        ) from None


def _problem(wrong: Wrong) -> answers.WrongView:
    field = f"body.{wrong.field}" if wrong.field else "body"
    place = {"line": wrong.line or None, "column": wrong.column or None}
    return {"field": field, "message": wrong.message, "line": place["line"], "column": place["column"]}


@lru_cache(maxsize=64)
def _preset(name: str) -> answers.PresetView:
    found = preset_submission(name)
    return {
        "name": name,
        "title": found.spec.title,
        "description": found.spec.description,
        "points": len(found.points),
        "runs": found.job.runs,
        "schemes": [choice.label for choice in found.spec.schemes],
        "estimated_s": round(found.job.estimated_s, 1),
        "text": found.text,
    }
