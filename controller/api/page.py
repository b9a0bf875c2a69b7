"""The dashboard: files that `webui/` was built into, and words where they are not there."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Final

from flask import Blueprint, Response, abort, redirect, send_from_directory
from werkzeug.routing import PathConverter
from werkzeug.security import safe_join
from werkzeug.wrappers import Response as AnyResponse

BUILT: Final = Path(__file__).resolve().parents[2] / "webui" / "dist"
"""Where `capstan` (or `npm run build`) puts the page."""
WHY_NOT: Final = Path(".setup") / "webui.problem"
"""From the project's directory: what the launcher says where it could not build the page."""
TOUR: Final = "/tour"
_YEAR_S: Final = 31_536_000
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PagePath(PathConverter):
    """Any path but the API's: what is asked of those must not be taken for the page's."""

    regex = "(?!api(?:/|$))[^/].*?"


def page_routes(folder: Path = BUILT, opens_on_tour: bool = False) -> Blueprint:
    """Return the blueprint. *folder*: the page's files; it may be made, or made anew, while the controller runs.
    *opens_on_tour*: the bare address leads to the tour, for people who see all of this for the first time.

    Any address that is neither a file's nor the API's shows the page, which knows its own views.
    """
    routes = Blueprint("page", __name__)
    routes.record_once(lambda state: state.app.url_map.converters.update(page=PagePath))

    @routes.get("/")
    @routes.get("/<page:path>")
    def page(path: str = "") -> AnyResponse:
        if path == "" and opens_on_tour:
            return redirect(TOUR)
        if not (folder / "index.html").is_file():
            return _not_built(folder)
        file = safe_join(str(folder), path)  # None outside of the folder: what is there must not show
        if path not in ("", "index.html") and file is not None and os.path.isfile(file):
            # Names of built files carry a hash of what is in them.
            max_age_s = _YEAR_S if path.startswith("assets/") else None
            answer = send_from_directory(folder, path, max_age=max_age_s)
            answer.cache_control.immutable = max_age_s is not None
        elif file is None or "." in path.rpartition("/")[2]:
            abort(404)
        else:
            answer = send_from_directory(folder, "index.html")
            answer.headers["Content-Security-Policy"] = _POLICY
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "same-origin"
        return answer

    return routes


def _not_built(folder: Path) -> Response:
    try:
        why = (folder.parents[1] / WHY_NOT).read_text().strip()
    except OSError:
        why = "It is built by ./capstan serve, lab, demo and run --keep, or by: cd webui && npm ci && npm run build"
    return Response(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Capstan</title>"
        "<body style='font: 16px sans-serif; margin: 4em auto; max-width: 40em'>"
        "<h1>The dashboard is not built</h1>"
        f"<p>The controller runs, but this page's files are not in {html.escape(str(folder))}.</p>"
        f"<pre style='white-space: pre-wrap'>{html.escape(why)}</pre>"
        "<p>The REST API works all the same: <a href=/api/v1/health>/api/v1/health</a>.</p>",
        status=503,
        mimetype="text/html",
    )
