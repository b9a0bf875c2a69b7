"""Routes about experiments: what the runner reports, and what people read of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

from flask import Response

from controller.api import answers_experiments
from controller.api.access import Rate
from controller.api.bodies import EndBody, ExperimentBody, RecordingBody, RunBody
from controller.api.comparing import compare
from controller.api.describing import END_BYTES, RESULTS_BYTES, Description, Query, Text
from controller.api.problems import ProblemError
from controller.api.request_values import body, number, optional_text, text
from controller.api.routing import get, patch, post
from controller.lifecycle import RunningController
from controller.live.event_log import ExperimentCreated, ExperimentEnded, RunAdded
from controller.store.experiments import ExperimentStore, flow_columns
from controller.store.listing import PageQuery
from plain.field_values import field_values
from plain.reading import PlainError

ONE: Final = "/<number:experiment>"
STATES: Final[tuple[str, ...]] = get_args(answers_experiments.State)
_LISTED: Final = (
    Query("before", "Only those with a number below this."),
    Query("limit", "At most so many.", 1, 500, 50),
    Text("kind", "top: no points of sweeps; all: these, too.", "top", ("top", "all")),
    Query("parent", "Only the points of this sweep."),
    Text("state", "Only those in this state.", choices=STATES),
)
_RUN: Final = Query("run", "Only what belongs to the run of this number.")


class ExperimentRoutes:
    """Experiments that callers run, or have submitted, with their runs and flows."""

    def __init__(
        self,
        running: RunningController,
        store: ExperimentStore,
        submits: Rate,
        progress: Callable[[int], Any] | None = None,
    ) -> None:
        """Take the limits. *submits*: how often experiments may be begun. *progress*: of a submitted one, if
        there is an engine.
        """
        self._running: Final = running
        self._store: Final = store
        self._submits: Final = submits
        self._progress: Final = progress
        self._keeping: Final = threading.Lock()
        """Of two runs that come at once, read side by side, both would be kept late; one after the other, one is."""

    @post(
        "/recorded",
        Description(
            "Begin an experiment that the caller runs, and has kept here.",
            answers_experiments.ExperimentObject,
            ExperimentBody,
            status=201,
            keeps_above_bytes=0,
            problems=(429,),
        ),
    )
    def create(self) -> tuple[dict[str, Any], int]:
        self._submits.take(time.monotonic())
        wanted = body(ExperimentBody)
        made = self._store.create(
            wanted.name,
            wanted.seed,
            wanted.spec,
            versions=wanted.versions,
            machine=wanted.machine,
            simulated=wanted.simulated,
        )
        self._running.events.add(ExperimentCreated(made["id"], made["name"], made["state"]))
        return made, 201

    @get(
        "",
        Description(
            "Experiments, newest first.",
            answers_experiments.ExperimentsView,
            tagged=True,
            query=_LISTED,
        ),
    )
    def listing(self) -> answers_experiments.ExperimentsView:
        experiments, following = self._store.page(_page_query())
        return {"experiments": experiments, "next": following}

    @get(
        "/heads",
        Description(
            "What a list shows of experiments, newest first.",
            answers_experiments.ListedExperimentsView,
            tagged=True,
            query=_LISTED,
        ),
    )
    def heads(self) -> dict[str, Any]:
        experiments, following = self._store.heads(_page_query())
        return {"experiments": experiments, "next": following}

    @get(
        ONE,
        Description(
            "One experiment with its runs.",
            answers_experiments.ExperimentWithRuns,
            tagged=True,
            problems=(404,),
        ),
    )
    def read(self, experiment: int) -> dict[str, Any]:
        stored = self._store.experiment(experiment)
        submitted = stored["kind"] != "recorded"
        stored["progress"] = self._progress(experiment) if submitted and self._progress is not None else None
        stored["children"] = self._store.children(experiment)
        return stored

    @patch(
        ONE,
        Description(
            "End an experiment.",
            answers_experiments.ExperimentObject,
            EndBody,
            most_body_bytes=RESULTS_BYTES,
            keeps_above_bytes=END_BYTES,
            problems=(404, 409),
        ),
    )
    def end(self, experiment: int) -> dict[str, Any]:
        wanted = body(EndBody)
        ended = self._store.finish(experiment, wanted.state, wanted.summary, wanted.error)
        self._running.events.add(ExperimentEnded(ended["id"], ended["name"], ended["state"], ended["error"]))
        return ended

    @post(
        ONE + "/runs",
        Description(
            "Keep a finished run.",
            answers_experiments.AddedRun,
            RunBody,
            most_body_bytes=RESULTS_BYTES,
            keeps_above_bytes=0,
            status=201,
            problems=(404, 409),
        ),
    )
    def add_run(self, experiment: int) -> tuple[dict[str, Any], int]:
        with self._keeping:
            return self._add_run(experiment, body(RunBody)), 201

    def _add_run(self, experiment: int, wanted: RunBody) -> dict[str, Any]:
        finished_at = wanted.finished_at if wanted.finished_at is not None else time.time()
        if wanted.modes is None:
            modes = self._running.mode_events(wanted.started_at, finished_at)
        else:
            modes = [dataclasses.asdict(change) for change in wanted.modes]
        run = {
            "scheme": wanted.scheme,
            "label": wanted.label or wanted.scheme,
            "repeat": wanted.repeat,
            "seed": wanted.seed,
            "started_at": wanted.started_at,
            "finished_at": finished_at,
            "cpu_limited": wanted.cpu_limited,
            "cpu": wanted.cpu,
            "measures": wanted.measures,
            "mode_events_complete": wanted.modes is not None
            or self._running.events.began_at() <= wanted.started_at,
        }
        # One after the other: to free thousands at once holds up all other threads.
        flows = map(field_values, wanted.flows)
        added = self._store.add_run(
            experiment, run, flows, modes, attempt=wanted.attempt, recording=_recording(wanted.recording)
        )
        if added.pop("again", False):
            return added  # its answer was lost on the way: all know of it
        of = self._store.experiment(experiment, runs=False)
        head = {name: added[name] for name in ("scheme", "label", "repeat", "cpu_limited")}
        self._running.events.add(
            RunAdded(experiment, of["name"], of["state"], added["id"], **head, parent=of["parent"])
        )
        return added

    @get(
        ONE + "/results",
        Description(
            "An experiment's runs and summary.", answers_experiments.ResultsView, tagged=True, problems=(404,)
        ),
    )
    def results(self, experiment: int) -> answers_experiments.ResultsView:
        data = self._store.experiment(experiment)
        return {"runs": data.pop("runs"), "summary": data["summary"], "experiment": data}

    @get(
        ONE + "/compare",
        Description(
            "The same measures of two finished experiments.",
            answers_experiments.ComparisonView,
            query=(Query("with", "The other experiment's number.", 1, required=True),),
            problems=(404, 409),
        ),
    )
    def comparison(self, experiment: int) -> Any:
        other = number("with", None, 1)
        if other is None:
            raise ProblemError(422, "query.with: is missing: the other experiment's number", "query.with")
        both = [self._store.experiment(number, runs=False) for number in (experiment, other)]
        for compared in both:
            if compared["summary"] is None:
                raise ProblemError(
                    409, f"experiment {compared['id']} is {compared['state']} and has no summary"
                )
        heads = [
            {name: compared[name] for name in ("id", "name", "state", "created_at")} for compared in both
        ]
        return {"experiments": heads, "schemes": compare(both[0]["summary"], both[1]["summary"])}

    @get(
        ONE + "/flows",
        Description(
            "Flow records, oldest first.",
            answers_experiments.FlowsView,
            tagged=True,
            query=(
                _RUN,
                Query("after", "Only those with a number above this."),
                Query("limit", "At most so many.", 1, 10_000, 1000),
            ),
            problems=(404,),
        ),
    )
    def flows(self, experiment: int) -> answers_experiments.FlowsView:
        limit = number("limit", 1000, 1, 10_000) or 1000
        flows = self._store.flows(experiment, number("run", None), number("after", 0) or 0, limit)
        return {"flows": flows, "next": flows[-1]["id"] if len(flows) == limit else None}

    @get(
        ONE + "/flows.csv",
        Description("All flow records as CSV.", str, query=(_RUN,), problems=(404,), media="text/csv"),
    )
    def flows_csv(self, experiment: int) -> Response:
        run = number("run", None)
        self._store.flows(experiment, run, 0, 1)  # a wrong number is refused before the first byte goes out

        def lines() -> Iterator[str]:
            buffer = io.StringIO()
            writer = csv.DictWriter(buffer, flow_columns())
            writer.writeheader()
            for flow in self._store.all_flows(experiment, run):
                writer.writerow({**flow, "paths": json.dumps(flow["paths"])})
                if buffer.tell() > 65536:
                    yield _drain(buffer)
            yield _drain(buffer)

        return Response(lines(), mimetype="text/csv")

    @get(
        ONE + "/modes",
        Description(
            "Mode changes during the runs.",
            answers_experiments.KeptModes,
            tagged=True,
            query=(_RUN,),
            problems=(404,),
        ),
    )
    def modes(self, experiment: int) -> answers_experiments.KeptModes:
        return {"modes": self._store.modes(experiment, number("run", None))}


def _page_query() -> PageQuery:
    """Return the request's query, which `_LISTED` describes. Raises ProblemError for a value out of bounds."""
    return PageQuery(
        before=number("before", None),
        limit=number("limit", 50, 1, 500) or 50,
        points=text("kind", "top", ("top", "all")) == "all",
        parent=number("parent", None),
        state=optional_text("state", STATES),
    )


def _recording(wanted: RecordingBody | None) -> dict[str, Any] | None:
    """Return a recording as it is kept. Raises ProblemError for a file that is none."""
    if wanted is None:
        return None
    try:
        return dataclasses.asdict(wanted) | {"file": wanted.content()}
    except PlainError as error:
        raise ProblemError(422, str(error), error.where) from None


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
