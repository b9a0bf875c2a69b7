"""Routes for those who watch: the stream of events, links with their loads, flows."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from flask import Response, request

from controller.api import answers, answers_live, views
from controller.api.describing import Description, Query, Text
from controller.api.front.backend import HAND_OVER, HandOverError
from controller.api.front.server import REFUSED
from controller.api.metrics import MEDIA, metrics
from controller.api.problems import ProblemError
from controller.api.request_values import number, optional_text
from controller.api.routing import get
from controller.lifecycle import RunningController
from controller.live.queue_history import FullestQueue
from controller.live.stream import StreamError, stream_head
from controller.live.topics import LOG_TOPICS, TOPICS, event_object, parse_topics, topic_of

FIRST_SAMPLE_S: Final = 1.0
STATES: Final = ("active", "ended")
CLASSES: Final = ("short", "long", "control")
STREAM: Final = "text/event-stream"


class LiveRoutes:
    """The stream of events, links with their loads, flows, metrics."""

    def __init__(self, running: RunningController, started: float) -> None:
        """Take what answers need. *started*: monotonic time of the controller's start."""
        self._running: Final = running
        self._started: Final = started

    @get(
        "/events",
        Description(
            "What happened, in order; with Accept: text/event-stream what happens, as it does.",
            answers.EventsView,
            query=(
                Query("since", "Events after this cursor.", default=0),
                Query("limit", "At most so many.", 1, 10_000, 1000),
                Text(
                    "topics",
                    "Only events of these topics; links and flows are in the stream only.",
                    ",".join(LOG_TOPICS),
                    choices=TOPICS,
                    several=True,
                ),
            ),
            problems=(503,),
            stream=True,
        ),
    )
    def events(self) -> answers.EventsView | Response:
        try:
            topics = parse_topics(request.args.get("topics", ",".join(LOG_TOPICS)))
        except ValueError as error:
            raise ProblemError(422, f"query.topics: {error}", "query.topics") from None
        if request.accept_mimetypes.best_match(("application/json", STREAM)) == STREAM:
            return _stream(topics, self._running)
        logged, cursor = self._running.events.page(
            number("since", 0) or 0,
            number("limit", 1000, 1, 10_000),
            None if topics.issuperset(LOG_TOPICS) else lambda event: topic_of(event) in topics,
        )
        names = self._running.live.names()
        return {"events": [event_object(event, names) for event in logged], "cursor": cursor}

    @get("/links", Description("All links, with what they carry now.", answers_live.LinksView))
    def links(self) -> Any:
        links = self._running.live.links
        patience = FIRST_SAMPLE_S if self._running.live.names().connected else 0.0
        return links.newest(patience) or links.without_loads()

    @get("/metrics", Description("Metrics, for Prometheus.", str, problems=(503,), media=MEDIA))
    def metrics_text(self) -> Response:
        self._running.live.links.keep_sampling()
        return Response(
            metrics(self._running, time.monotonic() - self._started, _refused_in_front()),
            content_type=f"{MEDIA}; version=0.0.4",
        )

    @get(
        "/flows",
        Description(
            "Flows that agents carry or have carried while the stream or this route was read, newest first.",
            answers_live.LiveFlowsView,
            query=(
                Text("state", "Only those in this state.", choices=STATES),
                Text("class", "Only those of this traffic class.", choices=CLASSES),
                Text("host", "Only those from or to this host."),
                Query("before", "Only those with a number below this."),
                Query("limit", "At most so many.", 1, 1000, 200),
            ),
        ),
    )
    def flows(self) -> Any:
        before, limit = number("before", None), number("limit", 200, 1, 1000) or 200
        state, kind = optional_text("state", STATES), optional_text("class", CLASSES)
        connected = any(agent.connected for agent in self._running.agents.agents())
        self._running.live.flows.newest(FIRST_SAMPLE_S if connected else 0.0)
        flows, after = self._running.live.flows.listing(
            before, limit, state=state, traffic_class=kind, host=optional_text("host")
        )
        return {"flows": flows, "next": after}

    @get(
        "/flows/<number:flow>",
        Description(
            "One flow's history: what it carried step by step, its paths, and modes during its life.",
            answers_live.FlowDetail,
            problems=(404,),
        ),
    )
    def flow(self, flow: int) -> Any:
        history = self._running.live.flows.flow(flow)
        if history is None:
            raise ProblemError(404, f"flow {flow} is not known, or no longer: see /api/v1/flows")
        flow_view, steps = history
        try:
            infos = self._running.paths(flow_view["source"], flow_view["destination"])
            paths = views.path_views(
                infos, self._running.snapshot(), flow_view["source"], flow_view["destination"]
            )
        except KeyError:  # a host that is not known any more
            paths = []
        leaves = {path["switches"][index] for path in paths for index in (0, -1)}
        return {
            "flow": flow_view,
            "timeline": steps,
            "modes": views.modes_between(
                self._running, leaves, flow_view["started_at"], flow_view["last_at"]
            ),
            "paths": paths,
            "queues": [dataclasses.asdict(queue) for queue in _queues_on(self._running, flow_view, paths)],
            "faults": views.faults_between(self._running, flow_view["started_at"], flow_view["last_at"]),
        }


def _queues_on(
    running: RunningController, flow: Mapping[str, Any], paths: Iterable[answers.PathView]
) -> list[FullestQueue]:
    """Return the fullest queues on the paths that a flow took, during its life."""
    used = [path for path in paths if str(path["stamp"]) in flow["paths"]] or list(paths)
    names = running.live.names()
    ways = {way for path in used for way in views.ways_of(path, names)}
    return running.live.links.history.fullest(ways, flow["started_at"], flow["last_at"])


def _stream(topics: frozenset[str], running: RunningController) -> Response:
    """Hand the connection over to the stream; what is returned is not sent, but for HEAD."""
    answer = Response(status=200, mimetype=STREAM)
    if request.method == "HEAD":
        return answer
    since = request.headers.get("Last-Event-ID") or request.args.get("since")
    take = request.environ.get(HAND_OVER)
    if take is None:
        raise ProblemError(503, "this web server cannot stream events: ask for application/json")
    try:
        running.live.stream.check_room()
        connection = take()
    except (HandOverError, StreamError) as error:
        raise ProblemError(503, str(error)) from None
    try:
        running.live.stream.add(connection, stream_head(), topics, since)
    except StreamError:  # the last place has just gone to another: readers come back by themselves
        connection.close()
    return answer


def _refused_in_front() -> dict[str, int]:
    """Return what the HTTP process has refused, by status."""
    counts: dict[str, int] = json.loads(request.environ.get(REFUSED, "{}"))
    return counts
