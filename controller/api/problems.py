"""Errors of the API: problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, jsonify


class ProblemError(Exception):
    """An answer that is an error. ``field`` names what is wrong in the request, as ``body.scheme``."""

    def __init__(self, status: int, detail: str, field: str | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.more = more


def problem_response(problem: ProblemError) -> Response:
    """The document of one problem."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    if problem.field is not None:
        document["field"] = problem.field
    response = jsonify(document | problem.more)
    response.status_code = problem.status
    response.mimetype = "application/problem+json"
    return response
