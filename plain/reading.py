"""Strict reading of plain data (what JSON and YAML give) into frozen dataclasses."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import re
import types
import typing
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from capstan_client.errors import CapstanError
from plain.bounds import beyond, bounds_of, unit_of
from plain.field_path import Where, last_step, path_text
from plain.shown import LONGEST_SHOWN, shown

T = TypeVar("T")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class PlainError(CapstanError, ValueError):
    """Plain data that does not fit. ``where`` is the path of the field, ``what`` is wrong with it."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(text, where=where)


def build(kind: type[T], data: object, where: str) -> T:
    """Return an instance of dataclass *kind* from *data*; PlainError names the first field that does not fit.

    No text in it holds a lone surrogate, and no number is infinite, however deep: JSON as Python reads it has forms for
    both, and neither can be sent on. Understood field types: bool, int, float (also from int), str, Any, Literal,
    ``Annotated`` with bounds (`plain.bounds`), ``X | None``, list, tuple of one type (``tuple[X, ...]``), dict with
    text keys, and dataclasses of all these.
    """
    value: T = _read(kind, data, where)
    return value


def did_you_mean(word: str, known: typing.Iterable[str]) -> str:
    """Return a hint ready to append to an error: "; did you mean 'caps'?", or what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(word[: LONGEST_SHOWN + 1], names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else "; there are none"


def _word(data: object) -> str:
    """Return the text that is compared with what is known."""
    return data[: LONGEST_SHOWN + 1] if isinstance(data, str) else shown(data)


def _read(kind: Any, data: object, where: Where) -> Any:
    if kind is Any:
        _check_text(data, where)
        return data
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, data, where)
    origin = get_origin(kind)
    if origin is Annotated:
        value = _read(get_args(kind)[0], data, where)
        bounds = bounds_of(kind)
        wrong = None if bounds is None or value is None else beyond(bounds, value, unit_of(last_step(where)))
        if wrong is not None:
            raise PlainError(path_text(where), wrong)
        return value
    if origin is Literal:
        if data not in get_args(kind):
            options = [str(option) for option in get_args(kind)]
            raise PlainError(
                path_text(where), f"{shown(data)} is not known{did_you_mean(_word(data), options)}"
            )
        return data
    if origin in (types.UnionType, typing.Union):
        inner = [option for option in get_args(kind) if option is not types.NoneType]
        fitting = next((option for option in inner if option is type(data)), inner[0])
        return None if data is None else _read(fitting, data, where)
    if origin in (list, tuple):
        if not isinstance(data, list | tuple):
            raise PlainError(path_text(where), f"expected a list, got {shown(data)}")
        return origin(_read(get_args(kind)[0], item, (where, index)) for index, item in enumerate(data))
    if origin is dict:
        if not isinstance(data, dict):
            raise PlainError(path_text(where), f"expected an object, got {shown(data)}")
        for key in data:
            _check_text(key, where)
        return {str(key): _read(get_args(kind)[1], item, (where, str(key))) for key, item in data.items()}
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        try:
            return float(data)
        except OverflowError:
            raise PlainError(path_text(where), "is beyond what a float holds") from None
    if kind is int and isinstance(data, float) and data.is_integer():
        return int(data)  # 1.0 is as whole a number as 1, for JSON and YAML alike
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise PlainError(path_text(where), f"expected {kind.__name__}, got {shown(data)}")
    if isinstance(data, float) and not math.isfinite(data):
        raise PlainError(
            path_text(where), "is not a number" if data != data else "is infinite: give a number"
        )
    if isinstance(data, str):
        _check_text(data, where)
    return data


def _check_text(data: object, where: Where) -> None:
    """Raise PlainError if some text in *data* cannot be sent on: JSON has a form for half a character, UTF-8 has none.

    Neither has JSON one for numbers that are infinite, or none.
    """
    if isinstance(data, str) and data.isascii():
        return
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if not item.isascii() and _SURROGATE.search(item):
                raise PlainError(
                    path_text(where),
                    "holds half a character (a lone surrogate), which is not text: leave it out",
                )
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise PlainError(path_text(where), "holds a number that is infinite, or none")
        elif isinstance(item, dict):
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], dict[str, dataclasses.Field[Any]]]:
    """Return types and fields by name: looking them up anew took most of the time of reading a message."""
    return typing.get_type_hints(kind, include_extras=True), {
        item.name: item for item in dataclasses.fields(kind)
    }


def _read_dataclass(kind: Any, data: object, where: Where) -> Any:
    if not isinstance(data, dict):
        raise PlainError(path_text(where), f"expected an object, got {shown(data)}")
    hints, members = _fields(kind)
    for name in data:
        if name not in members:
            raise PlainError(
                path_text(where),
                f"field {shown(_word(name))} is not known{did_you_mean(_word(name), members)}",
            )
    for name, item in members.items():
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and name not in data:
            raise PlainError(path_text(where), f"field {name!r} is missing")
    return kind(**{name: _read(hints[name], value, (where, name)) for name, value in data.items()})
