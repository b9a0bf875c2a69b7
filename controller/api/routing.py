"""Routes as methods of a class: a decorator says path and description, `add_routes` registers them with Flask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from flask import Blueprint, Flask

from controller.api.describing import Description, attach

V = TypeVar("V", bound=Callable[..., Any])
_ROUTE: Final = "capstan_route"


@dataclass(frozen=True, slots=True)
class _Route:
    method: str
    path: str


def get(path: str, description: Description) -> Callable[[V], V]:
    """Return a decorator that makes a method the view of ``GET path``, below its blueprint's prefix."""
    return _route("GET", path, description)


def post(path: str, description: Description) -> Callable[[V], V]:
    """Return a decorator that makes a method the view of ``POST path``."""
    return _route("POST", path, description)


def put(path: str, description: Description) -> Callable[[V], V]:
    """Return a decorator that makes a method the view of ``PUT path``."""
    return _route("PUT", path, description)


def patch(path: str, description: Description) -> Callable[[V], V]:
    """Return a decorator that makes a method the view of ``PATCH path``."""
    return _route("PATCH", path, description)


def delete(path: str, description: Description) -> Callable[[V], V]:
    """Return a decorator that makes a method the view of ``DELETE path``."""
    return _route("DELETE", path, description)


def add_routes(target: Flask | Blueprint, views: object, prefix: str = "") -> None:
    """Make all methods of *views* that are routes known to *target*; an endpoint has its method's name."""
    for name, function in vars(type(views)).items():
        route = getattr(function, _ROUTE, None)
        if isinstance(route, _Route):
            target.add_url_rule(prefix + route.path, name, getattr(views, name), methods=[route.method])


def blueprint_of(name: str, prefix: str, *views: object) -> Blueprint:
    """Return a blueprint of the routes of all *views*, below *prefix*."""
    blueprint = Blueprint(name, __name__, url_prefix=prefix)
    for each in views:
        add_routes(blueprint, each)
    return blueprint


def _route(method: str, path: str, description: Description) -> Callable[[V], V]:
    def mark(view: V) -> V:
        setattr(view, _ROUTE, _Route(method, path))
        return attach(view, description)

    return mark
