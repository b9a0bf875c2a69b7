"""Routes about the API itself: its document, and a browser's session."""

from __future__ import annotations

from typing import Any, Final

from flask import Flask, Response, jsonify, request

from controller.api import answers
from controller.api.access import SESSION_S, Access
from controller.api.describing import Description
from controller.api.document_page import POLICY, page
from controller.api.openapi import openapi_document
from controller.api.routing import delete, get, post


class SelfRoutes:
    """The document of *app*, and cookies in place of tokens. *token*: whether requests need one."""

    def __init__(self, app: Flask, version: str, token: bool, access: Access) -> None:
        self._app: Final = app
        self._version: Final = version
        self._token: Final = token
        self._access: Final = access

    @get("/openapi.json", Description("This document.", dict[str, Any], tagged=True))
    def openapi(self) -> dict[str, Any]:
        return openapi_document(self._app, self._version, self._token)

    @get("/docs", Description("This document, for people.", str, media="text/html", tagged=True))
    def docs(self) -> Response:
        document = openapi_document(self._app, self._version, self._token)
        response = Response(page(document), mimetype="text/html")
        response.headers["Content-Security-Policy"] = POLICY
        return response

    @post(
        "/session",
        Description(
            "Begin a session of a browser, whose EventSource sends no token, or make it last longer.",
            answers.SessionView,
        ),
    )
    def session(self) -> Response:
        session = self._access.session_of(request.environ)
        until = None if session is None else session.until
        response = jsonify({"role": self._access.role(request.environ), "until": until})
        if session is not None:
            name = self._access.cookie_name
            response.set_cookie(name, session.cookie, max_age=SESSION_S, **self._cookie_flags())
        return response

    @delete("/session", Description("End the session of a browser.", answers.EndedSession))
    def end_session(self) -> Response:
        response = jsonify({"ended": True})
        response.delete_cookie(self._access.cookie_name, **self._cookie_flags())
        return response

    def _cookie_flags(self) -> dict[str, Any]:
        secure = request.scheme == "https"
        return {"httponly": True, "samesite": "Strict", "path": "/", "secure": secure}
