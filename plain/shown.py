"""Values as errors show them: bounded, however large they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

LONGEST_SHOWN: Final = 200
"""Characters of what does not fit, in an error."""
_LONGEST_NUMBER: Final = 10**50
"""Above, a whole number is shown by its length: its digits take a time that grows with the square of it."""


def shown(data: object) -> str:
    """Return *data* as an error shows it: what a peer sent may be megabytes, and errors are logged.

    The work is bounded, too: no more of *data* is looked at than is shown.
    """
    text = ""
    for piece in _pieces(data):
        text += piece
        if len(text) > LONGEST_SHOWN:
            break
    return cut(text)


def cut(text: str) -> str:
    """Return *text* as far as an error shows it."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _pieces(data: object) -> Iterator[str]:
    """Yield the pieces of ``repr(data)``, as far as they are asked for."""
    waiting: list[Iterator[str | tuple[object]]] = [iter([(data,)])]
    while waiting:
        piece = next(waiting[-1], None)
        if piece is None:
            waiting.pop()
        elif isinstance(piece, str):
            yield piece
        else:
            (item,) = piece
            if isinstance(item, dict | list | tuple):
                waiting.append(_parts(item))
            else:
                yield _short(item)


def _parts(data: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Iterator[str | tuple[object]]:
    """Yield of a container's form its signs, and its items as tuples of one."""
    begin, end = "{}" if isinstance(data, dict) else "[]" if isinstance(data, list) else "()"
    yield begin
    for number, item in enumerate(data):
        if number:
            yield ", "
        yield (item,)
        if isinstance(data, dict):
            yield ": "
            yield (data[item],)
    yield f",{end}" if isinstance(data, tuple) and len(data) == 1 else end


def _short(data: object) -> str:
    if isinstance(data, str | bytes):
        return repr(data[: LONGEST_SHOWN + 1])
    if isinstance(data, int) and abs(data) > _LONGEST_NUMBER:
        return f"a whole number of {data.bit_length()} bits"
    return repr(data)
