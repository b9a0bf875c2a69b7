"""The run that is going on, as its own controller sees it: what that answers, and its stream of events, passed on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, TypedDict
from urllib.parse import urlencode

from flask import Blueprint, Response, current_app, request

from capstan_client.errors import ControllerError
from capstan_client.http import Connection
from controller.api.describing import Description, attach, description_of
from controller.api.front.backend import HAND_OVER, HandOverError
from controller.api.problems import MEDIA, ProblemError
from controller.api.routes_capton import CaptonRoutes
from controller.api.routes_fabric import FabricRoutes
from controller.api.routes_faults import FaultRoutes
from controller.api.routes_live import STREAM, LiveRoutes
from engine.dispatcher import Engine
from engine.run_stream import RunStreams, StreamsError

BELOW: Final = "/runs/current"
PREFIX: Final = f"/api/v1{BELOW}"
TIMEOUT_S: Final = 10.0
MOST_BYTES: Final = 32 << 20
"""Of an answer that is passed on, as long as the run's controller makes it."""
NONE: Final = (
    "no run is going on that can be watched from here: GET /api/v1/engine says what runs and what waits"
)
PASSED_ON: Final[tuple[tuple[str, Callable[..., Any]], ...]] = (
    ("/health", FabricRoutes.health),
    ("/fabric", FabricRoutes.fabric),
    ("/modes", FabricRoutes.modes),
    ("/agents", FabricRoutes.agents),
    ("/queues", FabricRoutes.queues),
    ("/tpfs", FabricRoutes.tpfs),
    ("/scheme", FabricRoutes.current),
    ("/links", LiveRoutes.links),
    ("/flows", LiveRoutes.flows),
    ("/flows/<number:flow>", LiveRoutes.flow),
    ("/events", LiveRoutes.events),
    ("/capton", CaptonRoutes.capton),
    ("/faults", FaultRoutes.listing),
)
"""Paths below those of the run, each with the view of a controller that answers the same: descriptions are theirs."""


class RunView(TypedDict):
    """``experiment``: that the run belongs to, null if none can be watched; ``parent``: its sweep, null if it is no
    point of one; ``here``: it goes on on the fabric of this controller, so all other routes show it, too."""

    experiment: int | None
    parent: int | None
    here: bool


def run_routes(engine: Engine) -> Blueprint:
    """Return the routes of the run that is going on."""
    routes = Blueprint("runs", __name__, url_prefix=BELOW)
    streams = RunStreams()

    def current() -> RunView:
        run = engine.current_run()
        if run is None:
            return {"experiment": None, "parent": None, "here": False}
        return {"experiment": run.experiment, "parent": run.parent, "here": run.api is None}

    attach(current, Description("The run that is going on, if it can be watched.", RunView))
    routes.add_url_rule("", "run", current)
    for path, view in PASSED_ON:
        theirs = description_of(view)
        passed = attach(
            _passing_on(engine, streams if theirs.stream else None),
            dataclasses.replace(
                theirs,
                summary=f"Of the run that is going on: {theirs.summary[0].lower()}{theirs.summary[1:]}",
                problems=tuple(sorted({*theirs.problems, 404, 503})),
                tagged=False,
            ),
        )
        routes.add_url_rule(path, view.__name__, passed)
    return routes


def _passing_on(engine: Engine, streams: RunStreams | None) -> Callable[..., Response]:
    def view(**_: Any) -> Response:
        run = engine.current_run()
        if run is None:
            raise ProblemError(404, NONE)
        path = request.path.removeprefix(PREFIX)
        if run.api is None:
            return _own_answer(path)
        asks_for_stream = request.accept_mimetypes.best_match(("application/json", STREAM)) == STREAM
        if asks_for_stream and streams is not None and _stream(run.api, path, streams):
            return Response(mimetype=STREAM)  # not sent: the connection is the stream's
        try:
            with closing(Connection(run.api, None, TIMEOUT_S)) as connection:
                answer = connection.get_bounded(
                    path, query=request.args.to_dict(), most_bytes=MOST_BYTES, within_s=TIMEOUT_S
                )
        except ControllerError as error:
            raise ProblemError(503, f"the run's controller does not answer: {error}") from None
        media = answer.headers.get("Content-Type", "").partition(";")[0]
        if media not in (MEDIA, "application/json"):  # a page would be run as one of ours
            raise ProblemError(503, "the run's controller does not answer with JSON")
        return Response(answer.content, answer.status_code, content_type=media)

    return view


def _own_answer(path: str) -> Response:
    """Return what this controller itself answers for *path*, with the request's query."""
    endpoint, arguments = current_app.url_map.bind("localhost").match(f"/api/v1{path}", "GET")
    answer: Any = current_app.view_functions[endpoint](**arguments)
    return current_app.make_response(answer)


def _stream(api: str, path: str, streams: RunStreams) -> bool:
    """Hand the connection over to the run's stream; return False if the stream refuses the request."""
    take = request.environ.get(HAND_OVER)
    if take is None:
        raise ProblemError(503, "this web server cannot stream events: ask for application/json")
    query = request.query_string.decode("ascii", "replace")
    if since := request.headers.get(
        "Last-Event-ID"
    ):  # a browser reconnects to the address that it had at first
        query = urlencode(request.args.to_dict() | {"since": since})
    try:
        streams.add(take, api, f"/api/v1{path}?{query}")
    except StreamsError as error:
        if error.status is not None and 400 <= error.status < 500:
            return False
        raise ProblemError(503, str(error)) from None
    except HandOverError as error:
        raise ProblemError(503, str(error)) from None
    return True
