"""The Flask application: its routes, their errors, and which requests it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from flask import Blueprint, Flask, Response, request
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter

from controller.api.access import Access, Rate
from controller.api.body_limits import NUMBER, most_body_bytes
from controller.api.describing import LARGEST, RESULTS_BYTES, description_of
from controller.api.error_answers import answer_errors
from controller.api.front.limits import Limits
from controller.api.page import BUILT, page_routes
from controller.api.routes_capton import CaptonRoutes
from controller.api.routes_experiments import ExperimentRoutes
from controller.api.routes_exports import ExportRoutes
from controller.api.routes_fabric import FabricRoutes
from controller.api.routes_faults import FaultRoutes
from controller.api.routes_lab import LabRoutes
from controller.api.routes_live import LiveRoutes
from controller.api.routes_self import SelfRoutes
from controller.api.routing import add_routes, blueprint_of
from controller.lifecycle import RunningController
from controller.store.experiments import ExperimentStore

MAX_BODY_BYTES: Final = Limits().body_bytes
"""Of a request whose route does not say otherwise (`Description.most_body_bytes`)."""
SUBMITS_PER_S: Final = 5.0
SUBMIT_BURST: Final = 500
RESULTS_PER_S: Final = 16 << 20
"""Bytes of results a second, of all clients in the long run: reading and keeping them takes the controller's time."""
RESULTS_BURST: Final = 1 << 30
RESULTS_LEAST: Final = 64 << 10
"""What a request counts at least: a run without flows costs a transaction, too."""
BASE: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """``token``: needed on every request; None on loopback. ``read_token``: allows to read. ``lab``: faults may be
    injected. ``submits_per_s``: experiments that may be begun a second, in the long run (SUBMIT_BURST at once).
    ``page``: the dashboard's files. ``opens_on_tour``: it opens on the tour."""

    token: str | None = None
    lab: bool = False
    read_token: str | None = None
    submits_per_s: float = SUBMITS_PER_S
    page: Path = BUILT
    opens_on_tour: bool = False


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
    """Routes of a part that this package does not import, and where it says a submitted experiment is."""

    blueprint: Blueprint

    def progress(self, experiment: int) -> Any:
        """Return what `GET /experiments/ID/progress` answers."""


def make_app(
    running: RunningController,
    store: ExperimentStore,
    settings: ApiSettings,
    version: str,
    *,
    extension: Extension | None = None,
) -> Flask:
    """Return the application, ready for a WSGI server."""
    app = Flask("capstan", static_folder=None)
    app.json = _Json(app)
    app.url_map.converters["number"] = NumberConverter
    started = time.monotonic()
    submits = Rate(settings.submits_per_s, SUBMIT_BURST, started)
    progress = extension.progress if extension is not None else None
    for name, path, views in (
        ("fabric", "", FabricRoutes(running, settings.lab, version, started)),
        ("live", "", LiveRoutes(running, started)),
        ("capton", "", CaptonRoutes(running)),
        ("faults", "/faults", FaultRoutes(running, settings.lab)),
        ("lab", "/lab", LabRoutes(running, settings.lab)),
        ("exports", "/experiments/<number:experiment>", ExportRoutes(store)),
        ("experiments", "/experiments", ExperimentRoutes(running, store, submits, progress)),
    ):
        app.register_blueprint(blueprint_of(name, BASE + path, views))
    if extension is not None:
        app.register_blueprint(extension.blueprint)
    app.register_blueprint(page_routes(settings.page, settings.opens_on_tour))
    access = Access(settings.token, settings.read_token)
    add_routes(app, SelfRoutes(app, version, settings.token is not None, access), BASE)
    answer_errors(app)
    _tag_answers(app)
    _check_requests(app, access)
    _check_results(app, store)
    return app


def _tag_answers(app: Flask) -> None:
    """Give answers of routes that say so an ETag, and answer 304 where the client has them."""
    tagged = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/") and description_of(app.view_functions[rule.endpoint]).tagged
    }

    @app.after_request
    def tag(response: Response) -> Response:
        if response.status_code == 200 and request.endpoint in tagged:
            response.add_etag()
            response.make_conditional(request)
        return response


def _check_results(app: Flask, store: ExperimentStore) -> None:
    """Refuse results that come too fast, and what is to be kept where there is no room."""
    rate = Rate(RESULTS_PER_S, RESULTS_BURST, time.monotonic(), "results come")

    @app.before_request
    def check_results() -> None:
        if request.endpoint not in app.view_functions or not request.path.startswith("/api/"):
            return
        description = description_of(app.view_functions[request.endpoint])
        size = request.content_length or 0
        if description.most_body_bytes is not None:
            rate.take(time.monotonic(), min(max(size, RESULTS_LEAST), RESULTS_BYTES))
        if description.keeps_above_bytes is not None and size > description.keeps_above_bytes:
            store.check_room()


def _check_requests(app: Flask, access: Access) -> None:
    """Refuse requests that may not be, by their heads, before a view or its body's reader sees them."""

    @app.before_request
    def check_access() -> None:
        access.check(request.environ)
        request.max_content_length = most_body_bytes(app, request.endpoint, MAX_BODY_BYTES)

    @app.url_value_preprocessor
    def check_numbers(_endpoint: str | None, values: dict[str, Any] | None) -> None:
        if any(isinstance(value, int) and value > LARGEST for value in (values or {}).values()):
            raise NotFound
