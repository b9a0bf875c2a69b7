"""The Flask application: errors, access, and the routes of `routes_fabric` and `routes_experiments`."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from flask import Blueprint, Flask, Response, jsonify, request
from flask.json.provider import DefaultJSONProvider
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from controller.agents.listeners import ChannelError
from controller.api import answers
from controller.api.access import COOKIE, Access, Rate, cookie_of
from controller.api.body_limits import NUMBER, most_body_bytes
from controller.api.describing import LARGEST, Description, describe, description_of
from controller.api.document_page import POLICY, page
from controller.api.front.body import in_units
from controller.api.front.limits import Limits
from controller.api.openapi import openapi_document
from controller.api.page import BUILT, page_routes
from controller.api.problems import MEDIA, ProblemError, problem_document
from controller.api.routes_capton import capton_routes
from controller.api.routes_experiments import experiment_routes
from controller.api.routes_exports import export_routes
from controller.api.routes_fabric import fabric_routes
from controller.api.routes_faults import fault_routes
from controller.api.routes_lab import lab_routes
from controller.api.routes_live import live_routes
from controller.lifecycle import RunningController
from controller.process.control_thread import ControlThreadDiedError
from controller.store.database import database_words
from controller.store.experiments import ExperimentStore, NotFoundError, StateError

MAX_BODY_BYTES: Final = Limits().body_bytes
"""Of a request whose route does not say otherwise (`Description.most_body_bytes`)."""
SUBMIT_BURST: Final = 500
SUBMISSIONS: Final = "/api/v1/experiments"
NO_ENGINE: Final = (
    "this controller runs no experiments: its own fabric is busy with what it was started for; submit to one of "
    "./capstan serve --experiments"
)
_LOG: Final = logging.getLogger("capstan.api")


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """``token``: needed on every request; None on loopback. ``read_token``: allows to read. ``lab``: faults may be
    injected. ``submits_per_s``: experiments that may be begun a second, in the long run (SUBMIT_BURST at once).
    ``page``: the dashboard's files."""

    token: str | None = None
    lab: bool = False
    read_token: str | None = None
    submits_per_s: float = 5.0
    page: Path = BUILT


class NumberConverter(BaseConverter):
    """A number in a path; what is too long for the database is no path of ours."""

    regex = NUMBER

    def to_python(self, value: str) -> int:
        return int(value)


class _Json(DefaultJSONProvider):
    """Keys stay in their order; what JSON has no form for is shown as text."""

    sort_keys = False

    @staticmethod
    def default(o: Any) -> Any:
        try:
            return DefaultJSONProvider.default(o)
        except TypeError:
            return str(o)


class Extension(Protocol):
    """Routes of a part that this room does not know, and where it says a submitted experiment is."""

    blueprint: Blueprint

    def progress(self, experiment: int) -> Any:
        """As `GET /experiments/ID/progress` tells it."""


def make_app(
    running: RunningController,
    store: ExperimentStore,
    settings: ApiSettings,
    version: str,
    extension: Extension | None = None,
) -> Flask:
    """The application, ready for a WSGI server."""
    app = Flask("capstan", static_folder=None)
    app.json = _Json(app)
    app.url_map.converters["number"] = NumberConverter
    started = time.monotonic()
    app.register_blueprint(fabric_routes(running, settings.lab, version, started))
    app.register_blueprint(live_routes(running, started))
    app.register_blueprint(capton_routes(running))
    app.register_blueprint(fault_routes(running, settings.lab))
    app.register_blueprint(lab_routes(running, settings.lab))
    app.register_blueprint(export_routes(store))
    app.register_blueprint(
        experiment_routes(
            running,
            store,
            Rate(settings.submits_per_s, SUBMIT_BURST, started),
            extension.progress if extension is not None else None,
        )
    )
    if extension is not None:
        app.register_blueprint(extension.blueprint)

    app.register_blueprint(page_routes(settings.page))

    @app.get("/api/v1/openapi.json")
    @describe(Description("This document.", dict[str, Any], tagged=True))
    def openapi() -> dict[str, Any]:
        return openapi_document(app, version, settings.token is not None)

    @app.get("/api/v1/docs")
    @describe(Description("This document, for people.", str, media="text/html", tagged=True))
    def docs() -> Response:
        response = Response(
            page(openapi_document(app, version, settings.token is not None)), mimetype="text/html"
        )
        response.headers["Content-Security-Policy"] = POLICY
        return response

    @app.after_request
    def tag(response: Response) -> Response:
        endpoint = request.endpoint or ""
        if response.status_code == 200 and endpoint in tagged:
            response.add_etag()
            response.make_conditional(request)
        return response

    tagged = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/") and description_of(app.view_functions[rule.endpoint]).tagged
    }
    access = Access(settings.token, settings.read_token)

    @app.before_request
    def check_access() -> None:
        access.check(request.environ)
        request.max_content_length = most_body_bytes(app, request.endpoint, MAX_BODY_BYTES)

    @app.post("/api/v1/session")
    @describe(Description("Keep a token in a cookie, as browsers' EventSource needs.", answers.SessionView))
    def session() -> Response:
        token = access.token_of(request.environ)
        response = jsonify({"role": access.role(request.environ)})
        if token is not None:
            response.set_cookie(COOKIE, cookie_of(token), httponly=True, samesite="Strict", path="/")
        return response

    @app.url_value_preprocessor
    def check_numbers(_endpoint: str | None, values: dict[str, Any] | None) -> None:
        if any(isinstance(one, int) and one > LARGEST for one in (values or {}).values()):
            raise NotFound

    @app.errorhandler(ProblemError)
    def problem(error: ProblemError) -> Response:
        response = problem_response(error)
        if error.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    @app.errorhandler(HTTPException)
    def http(error: HTTPException) -> Response:
        text = error.description or error.name
        if isinstance(error, MethodNotAllowed) and request.path == SUBMISSIONS:
            text = NO_ENGINE
        if isinstance(error, RequestEntityTooLarge):
            most = in_units(request.max_content_length or 0)
            text = f"a body here may have {most}: send less, or in several requests"
        response = problem_response(ProblemError(error.code or 500, text))
        if isinstance(error, MethodNotAllowed):
            response.headers["Allow"] = ", ".join(error.valid_methods or ())
        return response

    @app.errorhandler(NotFoundError)
    def not_found(error: NotFoundError) -> Response:
        return problem_response(ProblemError(404, str(error)))

    @app.errorhandler(StateError)
    def wrong_state(error: StateError) -> Response:
        return problem_response(ProblemError(409, str(error)))

    @app.errorhandler(ChannelError)
    def no_channel(error: ChannelError) -> Response:
        return problem_response(ProblemError(503, str(error)))

    @app.errorhandler(ControlThreadDiedError)
    def dead(error: ControlThreadDiedError) -> Response:
        return problem_response(ProblemError(503, str(error)))

    @app.errorhandler(TimeoutError)
    def too_late(error: TimeoutError) -> Response:
        return problem_response(ProblemError(503, str(error)))

    @app.errorhandler(DBAPIError)
    def no_database(error: DBAPIError) -> Response:
        _LOG.error("%s %s: the database: %s", request.method, request.path, error)
        return problem_response(ProblemError(503, database_words(error)))

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> Response:
        _LOG.error("%s %s failed", request.method, request.path, exc_info=error)
        return problem_response(ProblemError(500, "unexpected error; the controller's log has the details"))

    return app


def problem_response(problem: ProblemError) -> Response:
    """The answer that a problem is."""
    response = jsonify(problem_document(problem.status, problem.detail, problem.field, **problem.more))
    response.status_code = problem.status
    response.mimetype = MEDIA
    return response
