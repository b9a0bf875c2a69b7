"""Errors of the API: problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from capstan_client.errors import CapstanError

MEDIA: Final = "application/problem+json"


class ProblemError(CapstanError):
    """An answer that is an error. ``field`` names what is wrong in the request, as ``body.scheme``."""

    def __init__(self, status: int, detail: str, field: str | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.more = more


def problem_document(status: int, detail: str, field: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the document of one problem."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return document | ({} if field is None else {"field": field}) | more
