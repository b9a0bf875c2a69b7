"""How long requests' bodies may be: what routes say of themselves, for the HTTP process that knows no routes."""

from __future__ import annotations

import re

from flask import Flask

from controller.api.describing import description_of
from controller.api.front.limits import LongBody

NUMBER = r"[0-9]{1,19}"
"""A number in a path."""


def most_body_bytes(app: Flask, endpoint: str | None, otherwise: int) -> int:
    """Return what the route *endpoint* takes, in bytes; *otherwise* if it does not say, or there is none."""
    if endpoint is None or endpoint not in app.view_functions or endpoint.startswith("page."):
        return otherwise
    return description_of(app.view_functions[endpoint]).most_body_bytes or otherwise


def long_bodies(app: Flask) -> tuple[LongBody, ...]:
    """Return the routes that say how long their bodies may be."""
    return tuple(
        LongBody(method, _pattern(rule.rule), most)
        for rule in app.url_map.iter_rules()
        if (most := most_body_bytes(app, rule.endpoint, 0))
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    )


def _pattern(rule: str) -> str:
    parts = re.split(r"(<[^>]+>)", rule)
    return "".join(
        (NUMBER if part.startswith("<number:") else "[^/]+") if part.startswith("<") else re.escape(part)
        for part in parts
    )
