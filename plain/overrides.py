"""Changes of nested plain data, nested themselves or by dotted names: ``{"long": {"release.packet_times": 8}}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plain.reading import PlainError


def leaves(overrides: object, where: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and value of every leaf of *overrides*; an empty object is one. Names keep their ``?``.

    Raises:
        PlainError: a key that is no name.
    """
    if not isinstance(overrides, Mapping):
        raise PlainError(where, f"expected an object, got {overrides!r}")
    for key, value in overrides.items():
        if not isinstance(key, str) or not all(part.rstrip("?") for part in key.split(".")):
            raise PlainError(where, f"{key!r} is not the name of a field")
        path = tuple(key.split("."))
        if isinstance(value, Mapping) and value:
            yield from ((path + rest, leaf) for rest, leaf in leaves(value, f"{where}.{key}"))
        else:
            yield path, value


def flatten(overrides: object, where: str) -> dict[tuple[str, ...], Any]:
    """Return the leaves of *overrides* by their paths.

    Raises:
        PlainError: a key that is no name, or a field that is given twice.
    """
    result: dict[tuple[str, ...], Any] = {}
    for path, value in leaves(overrides, where):
        if path in result:
            raise PlainError(f"{where}.{'.'.join(path)}", "is given twice")
        result[path] = value
    return result


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides *base* with those of *over* on top, by dotted names.

    A name with a "?" (only where the object is there) and one without are the same field; of a field that is given
    twice, the later value counts, which an axis of a sweep has set. Raises PlainError.
    """
    result: dict[tuple[str, ...], tuple[str, Any]] = {}
    for part in (base, over):
        for path, value in leaves(part, "overrides"):
            plain = tuple(name.rstrip("?") for name in path)
            for other in [other for other in result if _within(other, plain) or _within(plain, other)]:
                del result[other]
            result[plain] = (".".join(path), value)
    return dict(result.values())


def _within(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    return inner[: len(outer)] == outer
