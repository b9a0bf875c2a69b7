"""Bounds of numbers, said once with their type: `Annotated[int, Meta(ge=1, le=128)]`, and the words for them."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

from msgspec import Meta

_UNITS: Final = (
    ("_packet_times", "packet times"),
    ("_bytes_per_s", "B/s"),
    ("_bytes", "B"),
    ("_packets", "packets"),
    ("_mbps", "Mbit/s"),
    ("_ms", "ms"),
    ("_s", "s"),
)
"""Of a field, by how its name ends."""
_OWN_UNITS: Final = frozenset({"packet_times"})


def unit_of(name: str) -> str:
    """Return the unit in which the field *name* is given: "s" of ``retry_s``; "": it has none."""
    field = name.rpartition(".")[2]
    if field in _OWN_UNITS:
        return field.replace("_", " ")
    return next((unit for ending, unit in _UNITS if field.endswith(ending)), "")


def beyond(bounds: Meta, value: float, unit: str) -> str | None:
    """Return what a number must be, in words, if it lies beyond *bounds*; None if it lies within."""
    if (
        (bounds.ge is None or value >= bounds.ge)
        and (bounds.gt is None or value > bounds.gt)
        and (bounds.le is None or value <= bounds.le)
        and (bounds.lt is None or value < bounds.lt)
    ):
        return None
    return words(bounds, unit)


def words(bounds: Meta, unit: str = "") -> str:
    """Return the rule: "must be 1..128", "must be above 0 s and at most 10 s"."""
    after = f" {unit}" if unit else ""
    match bounds:
        case Meta(gt=float() | int() as above, lt=float() | int() as below):
            return f"must lie between {above:g} and {below:g}{after}, both excluded"
        case Meta(ge=int() as least, le=int() as most):
            return f"must be {least}..{most}{after}"
        case Meta(ge=float() | int() as least, le=float() | int() as most):
            return f"must be {_digits(least)}{after} to {_digits(most)}{after}"
        case Meta(ge=0, le=None, lt=None):
            return "must not be negative"
    limits = (
        ("at least", bounds.ge),
        ("above", bounds.gt),
        ("at most", bounds.le),
        ("below", bounds.lt),
    )
    rules = [f"{rule} {_digits(limit)}{after}" for rule, limit in limits if limit is not None]
    return f"must be {' and '.join(rules)}"


def in_json_schema(bounds: Meta) -> dict[str, float]:
    """Return the keywords of JSON Schema that say *bounds*."""
    keywords = {
        "minimum": bounds.ge,
        "exclusiveMinimum": bounds.gt,
        "maximum": bounds.le,
        "exclusiveMaximum": bounds.lt,
    }
    return {keyword: limit for keyword, limit in keywords.items() if limit is not None}


def first_beyond(value: Any) -> tuple[str, str] | None:
    """Return the dotted field of a dataclass's instance that lies beyond its bounds, and the rule; None: none does."""
    return next(_all_beyond(value, ""), None)


def _all_beyond(value: Any, where: str) -> Iterator[tuple[str, str]]:
    kind: Any = type(value)
    for name, bounds in bounded_fields(kind).items():
        number = getattr(value, name)
        wrong = None if number is None else beyond(bounds, number, unit_of(name))
        if wrong is not None:
            yield f"{where}{name}", wrong
    for item in dataclasses.fields(value):
        inner = getattr(value, item.name)
        if dataclasses.is_dataclass(inner):
            yield from _all_beyond(inner, f"{where}{item.name}.")


@functools.cache
def bounded_fields(kind: Any) -> dict[str, Meta]:
    """Return the bounds of those fields of a dataclass that have some."""
    hints = typing.get_type_hints(kind, include_extras=True)
    limits = {item.name: bounds_of(hints[item.name]) for item in dataclasses.fields(kind)}
    return {name: bounds for name, bounds in limits.items() if bounds is not None}


def bounds_of(hint: Any) -> Meta | None:
    """Return the bounds of a field's type, also where it may be None; None if it has none."""
    own = (
        item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Meta) and in_json_schema(item)
    )
    bounds = next(own, None)
    if bounds is not None or get_origin(hint) not in (types.UnionType, typing.Union, Annotated):
        return bounds
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return next((bounds for option in inner if (bounds := bounds_of(option)) is not None), None)


def _digits(number: float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)
