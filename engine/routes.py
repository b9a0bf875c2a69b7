"""Routes of the engine: submit, cancel, run again, and the state of everything submitted."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final

from flask import Response, jsonify, request

from controller.api.access import Rate
from controller.api.answers_experiments import ExperimentObject
from controller.api.describing import Description, Query, Text
from controller.api.exporting import drawn, printed
from controller.api.problems import ProblemError
from controller.api.request_values import body, number, optional_text, text
from controller.api.routes_exports import MEDIA
from controller.api.routing import get, post
from controller.store.experiments import ExperimentStore
from engine import answers, recordings
from engine.dispatcher import Engine
from engine.evidence import evidence
from engine.progress import ProgressView
from engine.requested_spec import MOST_BYTES
from engine.simulated_check import tried_aside
from engine.submission import Submission, preset_submission, read_submission
from engine.submission_bodies import MOST_WINDOW_MS, CheckBody, FieldProblem, SubmissionBody, SubmissionError
from engine.sweep_summary import result_table
from experiments.results.packet_trace import WINDOW_MS
from experiments.spec.check import preset_names
from experiments.spec.schema import schema

ONE: Final = "/experiments/<number:experiment>"
PART: Final = Query("part", "Which combination of the other axes' values, from 1 on.", 1, default=1)
RECORDING: Final = "application/gzip"
YAML: Final = ("application/yaml", "text/yaml", "application/x-yaml")


class EngineRoutes:
    """Submissions, and what becomes of them."""

    def __init__(self, engine: Engine, store: ExperimentStore, submits: Rate, checks: Rate) -> None:
        """Take the limits. *submits*, *checks*: how often experiments may be submitted, and specs checked."""
        self._engine: Final = engine
        self._store: Final = store
        self._submits: Final = submits
        self._checks: Final = checks

    def _head(self, experiment: int) -> dict[str, Any]:
        """Return an experiment without its runs. Raises NotFoundError."""
        return self._store.experiment(experiment, runs=False)

    @post(
        "/experiments",
        Description(
            "Have an experiment, or a sweep, run in a lab or in simulation as soon as it is its turn.",
            ExperimentObject,
            SubmissionBody,
            body_text=YAML,
            status=201,
            keeps_above_bytes=0,
            problems=(409, 429),
        ),
    )
    def submit(self) -> Response:
        self._submits.take(time.monotonic())
        made = self._head(self._engine.submit(_submission()))
        response = jsonify(made)
        response.status_code = 201
        response.headers["Location"] = f"/api/v1/experiments/{made['id']}"
        return response

    @post(
        "/experiments/check",
        Description(
            "What a submission would be, or all that is wrong with it. Nothing is kept.",
            answers.CheckView,
            CheckBody,
            body_text=YAML,
            problems=(429,),
        ),
    )
    def check(self) -> answers.CheckView:
        self._checks.take(time.monotonic())
        try:
            submission = read_submission(_asked(), tried_aside)
        except SubmissionError as error:
            return {**_NOTHING, "problems": [_problem(problem) for problem in error.problems]}
        return {
            "ok": True,
            "problems": [],
            "kind": "sweep" if submission.points else "experiment",
            "points": len(submission.points),
            "runs": submission.job.runs,
            "schemes": [choice.label for choice in submission.spec.schemes],
            "estimated_s": round(submission.job.estimated_s, 1),
            "simulated": submission.job.simulated,
        }

    @get("/specs", Description("The experiments that come with Capstan.", answers.SpecsView))
    def specs(self) -> answers.SpecsView:
        return {"presets": [_preset(name) for name in preset_names()]}

    @get("/specs/schema", Description("The JSON Schema of a spec.", dict[str, Any]))
    def spec_schema(self) -> dict[str, Any]:
        return schema()

    @get(
        "/evidence",
        Description(
            "What the papers claim, and what came of it in simulation and on switches when Capstan was made.",
            answers.EvidenceView,
            tagged=True,
            query=(Text("preset", "Only the claims of this preset.", choices=tuple(preset_names())),),
        ),
    )
    def evidence(self) -> answers.EvidenceView:
        return {"claims": evidence(optional_text("preset", preset_names()))}

    @get("/engine", Description("Where workers run, what they are at, and what waits.", answers.EngineView))
    def state(self) -> Any:
        return self._engine.state()

    @get(ONE + "/progress", Description("Where a submitted experiment is.", ProgressView, problems=(404,)))
    def progress(self, experiment: int) -> dict[str, Any]:
        return asdict(self._engine.progress(experiment))

    @get(
        ONE + "/spec.yaml",
        Description("The spec, as submitted.", str, problems=(404,), media="application/yaml"),
    )
    def spec_yaml(self, experiment: int) -> Response:
        return Response(self._engine.queue.text(experiment), mimetype="application/yaml")

    @get(
        ONE + "/results.csv",
        Description(
            "Results as CSV: a row for each scheme at each point.",
            str,
            problems=(404, 409),
            media="text/csv",
        ),
    )
    def results_csv(self, experiment: int) -> Response:
        head = self._head(experiment)
        try:
            table = result_table(head["summary"])
        except (LookupError, TypeError, ValueError, AttributeError):  # nothing has checked what was sent
            state = head["state"]
            raise ProblemError(409, f"experiment {experiment} is {state} and has no results") from None
        return Response(table, mimetype="text/csv")

    def _drawn_sweep(self, experiment: int, kind: str) -> Response:
        wanted = number("part", 1, 1) or 1
        head = self._head(experiment)
        if head["kind"] != "sweep":
            raise ProblemError(404, f"experiment {experiment} is not a sweep")
        summary = head["summary"]
        if not isinstance(summary, dict) or not summary.get("points"):
            raise ProblemError(409, f"experiment {experiment} is {head['state']} and has no results")
        argv = ("engine.sweep_figure", str(wanted), kind)
        image = drawn("sweep", argv, [json.dumps(summary).encode()])
        if not image:
            raise ProblemError(404, f"figure 'sweep' of experiment {experiment} has no part {wanted}")
        return Response(image, mimetype=MEDIA[kind])

    @get(
        ONE + "/figures/sweep.svg",
        Description(
            "A sweep's figure, as SVG.", str, query=(PART,), problems=(404, 409, 503), media=MEDIA["svg"]
        ),
    )
    def sweep_svg(self, experiment: int) -> Response:
        return self._drawn_sweep(experiment, "svg")

    @get(
        ONE + "/figures/sweep.png",
        Description(
            "A sweep's figure, as PNG.", bytes, query=(PART,), problems=(404, 409, 503), media=MEDIA["png"]
        ),
    )
    def sweep_png(self, experiment: int) -> Response:
        return self._drawn_sweep(experiment, "png")

    @get(
        ONE + "/recording",
        Description(
            "A window of a run, packet by packet (docs/packet-traces.md): of a simulated run made again from spec and "
            "seed, of a run on switches as it was recorded.",
            bytes,
            query=(
                Text("scheme", "Label of the run's scheme.", required=True),
                Query("repeat", "Of the run.", 1, default=1),
                Query(
                    "from_ms", "Begin of the window, in ms of the run; of a simulated run only.", default=0
                ),
                Query(
                    "for_ms",
                    "Its length, in ms; of a simulated run only.",
                    1,
                    MOST_WINDOW_MS,
                    default=int(WINDOW_MS),
                ),
            ),
            problems=(404, 409, 429, 503),
            media=RECORDING,
        ),
    )
    def recording(self, experiment: int) -> Response:
        scheme, repeat = text("scheme"), number("repeat", 1, 1) or 1
        arguments = {
            "scheme": scheme,
            "repeat": repeat,
            "from_ms": number("from_ms", 0),
            "for_ms": number("for_ms", int(WINDOW_MS), 1, MOST_WINDOW_MS),
        }
        self._checks.take(time.monotonic())
        head = self._store.experiment(experiment)
        if not head["simulated"]:
            return self._kept_recording(head, scheme, repeat)
        if why := recordings.problem(head):
            raise ProblemError(409, why)
        request_lines = [json.dumps(arguments | {"spec": head["spec"]}).encode()]
        recorded = printed("a recording", "made", ("engine.recordings",), request_lines)
        if not recorded.startswith(recordings.GZIP):
            raise ProblemError(409, recorded.decode())
        return Response(recorded, mimetype=RECORDING)

    def _kept_recording(self, head: dict[str, Any], scheme: str, repeat: int) -> Response:
        run = recordings.kept_run(head, scheme, repeat)
        if isinstance(run, str):
            raise ProblemError(409, run)
        recorded = self._store.recording(run)
        if recorded is None:
            raise ProblemError(409, f"the recording of run {run} has just been deleted, as old records are")
        return Response(recorded, mimetype=RECORDING)

    @post(
        ONE + "/cancel",
        Description(
            "Cancel an experiment: what waits at once, what runs within seconds.",
            ExperimentObject,
            status=202,
            problems=(404, 409),
        ),
    )
    def cancel(self, experiment: int) -> tuple[dict[str, Any], int]:
        self._engine.cancel(experiment)
        return self._head(experiment), 202

    @post(
        ONE + "/rerun",
        Description(
            "Run again what did not finish; runs that were kept stay.",
            ExperimentObject,
            status=202,
            problems=(404, 409),
        ),
    )
    def rerun(self, experiment: int) -> tuple[dict[str, Any], int]:
        self._engine.rerun(experiment)
        return self._head(experiment), 202


_NOTHING: Final[answers.CheckView] = {
    "ok": False,
    "problems": [],
    "kind": None,
    "points": 0,
    "runs": 0,
    "schemes": [],
    "estimated_s": None,
    "simulated": False,
}


def _asked() -> SubmissionBody:
    """Return the request's body. Raises ProblemError."""
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
        return read_submission(_asked(), tried_aside)
    except SubmissionError as error:
        problems = [_problem(problem) for problem in error.problems]
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ProblemError(
            422, f"{first['field']}: {first['message']}{more}", first["field"], problems=problems
        ) from None


def _problem(problem: FieldProblem) -> answers.WrongView:
    field = f"body.{problem.field}" if problem.field else "body"
    place = {"line": problem.line or None, "column": problem.column or None}
    return {"field": field, "message": problem.message, "line": place["line"], "column": place["column"]}


@lru_cache(maxsize=256)
def _preset(name: str) -> answers.PresetView:
    submission = preset_submission(name)
    return {
        "name": name,
        "title": submission.spec.title,
        "description": submission.spec.description,
        "points": len(submission.points),
        "runs": submission.job.runs,
        "schemes": [choice.label for choice in submission.spec.schemes],
        "estimated_s": round(submission.job.estimated_s, 1),
        "claims": [
            {
                "text": claim.text,
                "source": claim.source,
                "figure": claim.figure,
                "measure": claim.compare.measure,
                "scheme": claim.compare.scheme,
                "against": claim.compare.against,
            }
            for claim in submission.spec.claims
            if claim.compare is not None
        ],
        "text": submission.text,
    }
