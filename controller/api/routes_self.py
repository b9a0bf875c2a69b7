"""Routes about the API itself: its document, and a browser's session."""

from __future__ import annotations

from typing import Any, Final

from flask import Flask, Response, jsonify, request

from controller.api import answers
from controller.api.access import COOKIE, Access, cookie_of
from controller.api.describing import Description
from controller.api.document_page import POLICY, page
from controller.api.openapi import openapi_document
from controller.api.routing import get, post


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
        Description("Keep a token in a cookie, as browsers' EventSource needs.", answers.SessionView),
    )
    def session(self) -> Response:
        token = self._access.token_of(request.environ)
        response = jsonify({"role": self._access.role(request.environ)})
        if token is not None:
            secure = request.scheme == "https"
            response.set_cookie(
                COOKIE, cookie_of(token), httponly=True, samesite="Strict", path="/", secure=secure
            )
        return response
