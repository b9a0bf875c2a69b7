"""What a request carries, read strictly: its body and the parameters of its query."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeVar

from capstan_native import JsonContent, JsonError, LongTextError
from flask import request

from controller.api.bodies import MOST_RECORDING, PIECE
from controller.api.describing import LARGEST, MOST, SCHEMA, UNIT
from controller.api.problems import ProblemError
from plain.field_path import Where, path_text
from plain.reading import PlainError, build, did_you_mean

T = TypeVar("T")
MOST_VALUES: Final = 4_000_000
"""In a body, by the characters that separate them: 80,000 records of flows have 3 million. Python takes 64 bytes for
an empty list, which has three here."""
MOST_TEXT: Final = MOST_RECORDING
"""Bytes of a text in a body."""
DEEPEST: Final = 64
"""Levels of objects and lists in a body."""


def body(kind: type[T]) -> T:
    """Return the request's body as *kind*. Raises ProblemError: 415, 413, 400, or 422 naming the field."""
    if not request.is_json:
        raise ProblemError(415, "the body must be JSON: Content-Type: application/json")
    content = _content()
    _check_values(content)
    try:
        data = content.take(MOST_TEXT)
        _check_keepable(data, "body")
        read = build(kind, data, "body")
        _check_bounds(read, "body")
    except LongTextError:
        raise ProblemError(413, f"a text in a body may have {MOST_TEXT >> 20} MiB") from None
    except JsonError as error:
        raise ProblemError(400, f"the body {error}") from None
    except PlainError as error:
        raise ProblemError(422, str(error), error.where) from None
    return read


def _content() -> JsonContent:
    """Return the request's body, which is read in pieces: one copy of 64 MiB holds up all other threads."""
    size = request.content_length or 0
    content = JsonContent(size)
    while len(content) < size and (piece := request.stream.read(min(PIECE, size - len(content)))):
        content.add(piece)
    return content


def _check_values(content: JsonContent) -> None:
    """Raise ProblemError (413) for a body with more values than may be built of it."""
    if len(content) > MOST_VALUES and (values := content.most_values()) > MOST_VALUES:
        raise ProblemError(
            413, f"a body may have {MOST_VALUES:,} values, not {values:,}: send less, or in several requests"
        )


def _check_keepable(value: object, where: Where, depth: int = 0) -> None:
    """Raise PlainError for a field that some database would not take, or give back, somewhere in *value*."""
    if depth > DEEPEST:
        raise PlainError(path_text(where), f"is nested more than {DEEPEST} levels deep")
    if isinstance(value, int | float) and not -MOST <= value <= MOST:
        raise PlainError(path_text(where), f"{value} is not within {-MOST}..{MOST}")
    if isinstance(value, str) and "\0" in value:
        raise PlainError(path_text(where), "holds a character that is not text")
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, list):
        inner = enumerate(value)
    elif isinstance(value, dict):
        for name in value:
            if not _is_plainly_keepable(name):
                _check_keepable(name, where)
        inner = value.items()
    for step, item in inner:
        if depth == DEEPEST or not _is_plainly_keepable(item):
            _check_keepable(item, (where, step), depth + 1)


def _is_plainly_keepable(value: object) -> bool:
    """Return whether *value* is a number or text of the usual kind, as nearly all of a run's 100,000 values are."""
    if type(value) is str:
        return "\0" not in value
    if type(value) is int or type(value) is float:
        return -MOST <= value <= MOST
    return value is None


def _check_bounds(read: Any, where: str) -> None:
    """Raise PlainError for a number that is not `within` what its field may be."""
    for member in dataclasses.fields(read):
        value, bounds = getattr(read, member.name), member.metadata.get(SCHEMA)
        if bounds is None or value is None:
            continue
        low = bounds.get("minimum", bounds.get("exclusiveMinimum"))
        if not low <= value <= bounds["maximum"] or value == bounds.get("exclusiveMinimum"):
            least = f"above {low:g}" if "exclusiveMinimum" in bounds else f"{low:g}"
            allowed = f"must be {least}..{bounds['maximum']:g} {member.metadata[UNIT]}".rstrip()
            raise PlainError(f"{where}.{member.name}", f"{allowed}, not {value:g}")


def number(name: str, default: int | None, low: int = 0, high: int = LARGEST) -> int | None:
    """Return a query parameter as an integer low..high. Raises ProblemError (422)."""
    text = request.args.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19 or not low <= int(text) <= high:
        raise ProblemError(422, f"query.{name}: {text!r} is not a number {low}..{high}", f"query.{name}")
    return int(text)


def text(name: str, default: str | None = None, choices: Collection[str] = ()) -> str:
    """Return a query parameter as text, one of *choices* if there are any. Raises ProblemError (422)."""
    value = optional_text(name, choices) or default
    if not value:
        raise ProblemError(422, f"query.{name}: is missing", f"query.{name}")
    return value


def optional_text(name: str, choices: Collection[str] = ()) -> str | None:
    """Return a query parameter as `text` does; None if it is left out or empty. Raises ProblemError (422)."""
    value = request.args.get(name)
    if value is None or (not value and not choices):
        return None
    if choices and value not in choices:
        hint = did_you_mean(value, choices)
        raise ProblemError(
            422, f"query.{name}: {value!r} is none of {', '.join(choices)}{hint}", f"query.{name}"
        )
    return value
