"""Strict reading of plain data (what JSON and YAML give) into frozen dataclasses."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import re
import types
import typing
from collections.abc import Callable
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
    value: T = _reader(kind)(data, where)
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


_Reader = Callable[[object, Where], Any]
"""Returns plain data as a field of some type has it. Raises PlainError."""


def _reader(kind: Any) -> _Reader:
    """Return the reader of a type: taking the type apart at each value was three quarters of reading a run's flows."""
    if kind is Any:
        return _read_any
    if dataclasses.is_dataclass(kind):
        return functools.partial(_read_dataclass, kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bounded_reader(kind, _reader(arguments[0]))
    if origin is Literal:
        return functools.partial(_read_literal, arguments)
    if origin in (types.UnionType, typing.Union):
        return _union_reader([option for option in arguments if option is not types.NoneType])
    if origin in (list, tuple):
        return functools.partial(_read_items, origin, _reader(arguments[0]))
    if origin is dict:
        return functools.partial(_read_object, _reader(arguments[1]))
    return functools.partial(_read_scalar, kind)


def _read_any(data: object, where: Where) -> Any:
    _check_text(data, where)
    return data


def _union_reader(options: list[Any]) -> _Reader:
    """Return the reader of the option that is a value's type, else of the first; None stays None."""
    first = _reader(options[0])
    own = {option: _reader(option) for option in options if isinstance(option, type)}
    return lambda data, where: None if data is None else own.get(type(data), first)(data, where)


def _bounded_reader(kind: Any, inner: _Reader) -> _Reader:
    bounds = bounds_of(kind)
    if bounds is None:
        return inner

    def read(data: object, where: Where) -> Any:
        value = inner(data, where)
        wrong = None if value is None else beyond(bounds, value, unit_of(last_step(where)))
        if wrong is not None:
            raise PlainError(path_text(where), wrong)
        return value

    return read


def _read_literal(options: tuple[Any, ...], data: object, where: Where) -> Any:
    if data not in options:
        raise PlainError(
            path_text(where), f"{shown(data)} is not known{did_you_mean(_word(data), map(str, options))}"
        )
    return data


def _read_items(
    kind: type[list[Any]] | type[tuple[Any, ...]], read: _Reader, data: object, where: Where
) -> Any:
    if not isinstance(data, list | tuple):
        raise PlainError(path_text(where), f"expected a list, got {shown(data)}")
    return kind([read(item, (where, index)) for index, item in enumerate(data)])


def _read_object(read: _Reader, data: object, where: Where) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise PlainError(path_text(where), f"expected an object, got {shown(data)}")
    for key in data:
        _check_text(key, where)
    return {str(key): read(item, (where, str(key))) for key, item in data.items()}


def _read_scalar(kind: Any, data: object, where: Where) -> Any:
    if type(data) is kind and kind is not float and kind is not str:
        return data
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Fields:
    """How a dataclass is read. readers: of its fields, by name; required: names that have to be there."""

    readers: dict[str, _Reader]
    required: tuple[str, ...]


@functools.cache
def _fields(kind: Any) -> _Fields:
    """Return how dataclass *kind* is read: finding it out anew took most of the time of reading a message."""
    hints = typing.get_type_hints(kind, include_extras=True)
    members = dataclasses.fields(kind)
    missing = dataclasses.MISSING
    return _Fields(
        {item.name: _reader(hints[item.name]) for item in members},
        tuple(item.name for item in members if item.default is missing and item.default_factory is missing),
    )


def _read_dataclass(kind: Any, data: object, where: Where) -> Any:
    if not isinstance(data, dict):
        raise PlainError(path_text(where), f"expected an object, got {shown(data)}")
    fields = _fields(kind)
    readers = fields.readers
    for name in data:
        if name not in readers:
            raise PlainError(
                path_text(where),
                f"field {shown(_word(name))} is not known{did_you_mean(_word(name), readers)}",
            )
    for name in fields.required:
        if name not in data:
            raise PlainError(path_text(where), f"field {name!r} is missing")
    return kind(**{name: readers[name](value, (where, name)) for name, value in data.items()})
