"""The Flask application: errors, access, and the routes of `routes_fabric` and `routes_experiments`."""

from __future__ import annotations

import hmac
import logging
import time
from dataclasses import dataclass
from typing import Any, Final

from flask import Flask, Response, request
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from controller.agents.listeners import ChannelError
from controller.api.describing import Description, describe
from controller.api.openapi import openapi_document
from controller.api.problems import ProblemError, problem_response
from controller.api.routes_experiments import experiment_routes
from controller.api.routes_fabric import fabric_routes
from controller.api.routes_faults import fault_routes
from controller.api.routes_live import live_routes
from controller.running import RunningController
from controller.store.experiments import ExperimentStore, NotFoundError, StateError

MAX_BODY_BYTES: Final = 64 << 20
_LOG: Final = logging.getLogger("capstan.api")


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """``token``: needed on every request; None on loopback. ``lab``: faults may be injected."""

    token: str | None = None
    lab: bool = False


class _Json(DefaultJSONProvider):
    """Keys stay in their order; what JSON has no form for is shown as text."""

    sort_keys = False

    @staticmethod
    def default(o: Any) -> Any:
        try:
            return DefaultJSONProvider.default(o)
        except TypeError:
            return str(o)


def make_app(
    running: RunningController, store: ExperimentStore, settings: ApiSettings, version: str
) -> Flask:
    """The application, ready for a WSGI server."""
    app = Flask("capstan", static_folder=None)
    app.json = _Json(app)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    started = time.monotonic()
    app.register_blueprint(fabric_routes(running, settings.lab, version, started))
    app.register_blueprint(live_routes(running, started))
    app.register_blueprint(fault_routes(running, settings.lab))
    app.register_blueprint(experiment_routes(running, store))

    @app.get("/api/v1/openapi.json")
    @describe(Description("This document.", dict[str, Any]))
    def openapi() -> dict[str, Any]:
        return openapi_document(app, version, settings.token is not None)

    @app.before_request
    def check_token() -> None:
        if settings.token is None:
            return
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        known = hmac.compare_digest(given.strip().encode(), settings.token.encode())
        if kind.lower() != "bearer" or not known:
            raise ProblemError(401, "this address needs the header Authorization: Bearer TOKEN")

    @app.errorhandler(ProblemError)
    def problem(error: ProblemError) -> Response:
        response = problem_response(error)
        if error.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    @app.errorhandler(HTTPException)
    def http(error: HTTPException) -> Response:
        response = problem_response(ProblemError(error.code or 500, error.description or error.name))
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

    @app.errorhandler(TimeoutError)
    def too_late(error: TimeoutError) -> Response:
        return problem_response(ProblemError(503, str(error)))

    @app.errorhandler(TimeoutError)
    def busy(error: TimeoutError) -> Response:
        return problem_response(ProblemError(503, str(error)))

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> Response:
        _LOG.error("%s %s failed", request.method, request.path, exc_info=error)
        return problem_response(ProblemError(500, "unexpected error; the controller's log has the details"))

    return app
