"""What an experiment changes of a scheme, in the words of a scheme file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from controller.schemes.loader import load, scheme_from_dict, scheme_to_dict
from controller.schemes.scheme import Scheme
from plain.overrides import flatten
from plain.reading import PlainError


def with_overrides(scheme: Scheme, overrides: Mapping[str, Any], where: str = "overrides") -> Scheme:
    """Return *scheme* with some fields changed; checked as a whole.

    Keys are nested (``{"long": {"release": {"packet_times": 32.5}}}``) or dotted
    (``{"long.release.packet_times": 32.5}``). An object that the scheme has not is made; a ``?`` after a name
    restricts what is below to schemes that have the object (``"short.coding?.max_k"``); None removes.
    ``group`` and ``by_mode`` replace each other.

    Raises:
        PlainError: names the first field that is unknown or does not fit.
    """
    data = scheme_to_dict(scheme)
    for path, value in sorted(flatten(overrides, where).items()):
        _set(data, path, value, where)
    try:
        return scheme_from_dict(data, where)
    except PlainError as error:
        hint = f" (scheme {scheme.name!r} with overrides)" if scheme.name not in error.what else ""
        raise PlainError(error.where, error.what + hint) from None


def overrides_problem(scheme: str, overrides: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the overrides of the scheme of this name; None: nothing."""
    try:
        with_overrides(load(scheme), overrides)
    except ValueError as error:
        return str(error)
    return None


class Chosen(Protocol):
    """A scheme that an experiment names, and its own overrides."""

    @property
    def name(self) -> str:
        """Return the name of the scheme that was chosen."""

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return what was changed of it, by dotted path."""


def first_lab_problem(schemes: Iterable[Chosen]) -> str | None:
    """Return why the first of an experiment's schemes cannot be in force in a lab; None: all can be.

    Raises:
        SchemeError, PlainError: a scheme or overrides that cannot be at all.
    """
    made = (with_overrides(load(chosen.name), chosen.overrides) for chosen in schemes)
    return next((scheme.lab_problem for scheme in made if scheme.lab_problem is not None), None)


def _set(data: dict[str, Any], path: tuple[str, ...], value: Any, where: str) -> None:
    *way, last = path
    level = data
    for depth, part in enumerate(way):
        name = part.rstrip("?")
        below = level.get(name)
        if below is None:
            if part.endswith("?"):
                return
            below = level[name] = {}  # a name that is not known, too: the strict reading says so, with a hint
        if not isinstance(below, dict):
            raise PlainError(f"{where}.{'.'.join(path[: depth + 1])}", "is not an object: it has no fields")
        level = below
    name = last.rstrip("?")
    if last.endswith("?") and level.get(name) is None:
        return
    if isinstance(value, Mapping) and isinstance(level.get(name), dict):
        return  # an empty object: there already, nothing of it changes
    level[name] = dict(value) if isinstance(value, Mapping) else value
    if value is not None and name == "group":
        level["by_mode"] = None
    elif way and way[-1].rstrip("?") == "by_mode":
        _class_of(data, way)["group"] = None


def _class_of(data: dict[str, Any], way: list[str]) -> dict[str, Any]:
    level = data
    for part in way[:-1]:
        level = level[part.rstrip("?")]
    return level
