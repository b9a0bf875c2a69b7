"""Exceptions that views raise, as answers: problem documents with their statuses."""

from __future__ import annotations

import logging
from typing import Final

from flask import Flask, Response, jsonify, request
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from controller.agents.listeners import ChannelError
from controller.api.front.body import in_units
from controller.api.problems import MEDIA, ProblemError, problem_document
from controller.process.control_thread import ControlThreadDiedError
from controller.store.database import database_words
from controller.store.experiments import NotFoundError, StateError
from controller.store.room import FullError

STATUSES: Final[dict[type[Exception], int]] = {
    NotFoundError: 404,
    StateError: 409,
    ChannelError: 503,
    ControlThreadDiedError: 503,
    TimeoutError: 503,
    FullError: 507,
}
"""Of exceptions whose text is the answer's."""
SUBMISSIONS: Final = "/api/v1/experiments"
NO_ENGINE: Final = (
    "this controller runs no experiments: its own fabric is busy with what it was started for; submit to one of "
    "./capstan serve --experiments"
)
_LOG: Final = logging.getLogger("capstan.api")


def answer_errors(app: Flask) -> None:
    """Have *app* answer every exception with a problem document."""
    app.register_error_handler(ProblemError, _problem)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(DBAPIError, _database_error)
    app.register_error_handler(Exception, _unexpected)
    for kind in STATUSES:
        app.register_error_handler(kind, _known_error)


def problem_response(problem: ProblemError) -> Response:
    """Return the answer that a problem is."""
    response = jsonify(problem_document(problem.status, problem.detail, problem.field, **problem.more))
    response.status_code = problem.status
    response.mimetype = MEDIA
    return response


def _problem(error: ProblemError) -> Response:
    response = problem_response(error)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
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


def _known_error(error: Exception) -> Response:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    return problem_response(ProblemError(status, str(error)))


def _database_error(error: DBAPIError) -> Response:
    _LOG.error("%s %s: the database: %s", request.method, request.path, error)
    return problem_response(ProblemError(503, database_words(error)))


def _unexpected(error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem_response(ProblemError(500, "unexpected error; the controller's log has the details"))
