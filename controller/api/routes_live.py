"""Routes for those who watch: the stream of events, links with their loads, flows."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from controller.api import answers, views
from controller.api.bodies import number
from controller.api.describing import Description, Query, Text, describe
from controller.api.hand_over import HAND_OVER, HandOverError
from controller.api.problems import ProblemError
from controller.live.stream import StreamError, stream_head
from controller.live.topics import LOG_TOPICS, TOPICS, parse_topics
from controller.running import RunningController

FIRST_SAMPLE_S: Final = 1.0
STREAM: Final = "text/event-stream"


def live_routes(running: RunningController) -> Blueprint:
    """The blueprint."""
    routes = Blueprint("live", __name__, url_prefix="/api/v1")

    @routes.get("/events")
    @describe(
        Description(
            "What happened, in order; with Accept: text/event-stream what happens, as it does.",
            answers.EventsView,
            query=(
                Query("since", "Events after this cursor.", default=0),
                Query("limit", "At most so many.", 1, 10_000, 1000),
                Text(
                    "topics", f"For the stream, comma-separated: {', '.join(TOPICS)}.", ",".join(LOG_TOPICS)
                ),
            ),
            problems=(503,),
            stream=True,
        )
    )
    def events() -> answers.EventsView | Response:
        try:
            topics = parse_topics(request.args.get("topics", ",".join(LOG_TOPICS)))
        except ValueError as error:
            raise ProblemError(422, f"query.topics: {error}", "query.topics") from None
        if request.accept_mimetypes.best_match(("application/json", STREAM)) == STREAM:
            return _stream(topics, running)
        limit = number("limit", 1000, 1, 10_000)
        logged = running.events.since(number("since", 0) or 0, limit)
        cursor = logged[-1].cursor if logged else running.events.cursor
        names = running.live.names()
        return {"events": [views.event_view(one, names) for one in logged], "cursor": cursor}

    @routes.get("/links")
    @describe(Description("All links, with what they carry now.", answers.LinksView))
    def links() -> Any:
        return running.live.links.newest(FIRST_SAMPLE_S) or running.live.links.without_loads()

    return routes


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
