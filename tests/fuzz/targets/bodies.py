"""Bodies of requests, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from capstan_native import JsonContent, JsonError, LongTextError

from tests.fuzz.target import Target

_FLOW: Final = {
    "flow": 1,
    "source": "h1",
    "size_bytes": 52_000,
    "fct_s": 0.07,
    "error": "é\n😀",
    "paths": {"1025": 12},
}
_REFUSED_TOO: Final = re.compile(r"\\[uU][dD]|[eE]|\d{300}")
"""What only Python's reader takes may hold: half of a surrogate pair, a number above all floats."""
DEEPEST: Final = 100
"""Levels of lists and objects that are read."""


class Bodies(Target):
    """Whatever comes is read as Python's own reader reads it, or refused."""

    MOST_TEXT: Final = 4096
    samples = (
        json.dumps(
            {"scheme": "ecmp", "repeat": 0, "measures": {"mean": 1.5e-3}, "flows": [_FLOW] * 3}
        ).encode(),
        json.dumps(
            {"spec": [None, True, False, -1, 2**63, 2**64, 1e308, [[], {}]]}, ensure_ascii=False
        ).encode(),
        b'{"a": "\\ud83d\\ude00\\u0000", "a": -0.0, "b": [1e999, 0.1E+2]}',
        b"[" * 60 + b"]" * 60,
    )

    def run(self, messages: Sequence[bytes]) -> None:
        content = JsonContent(0)
        for data in messages:
            content.add(data)
        self._check(content, b"".join(messages))
        for data in messages:
            content.add(data)
            self._check(content, data)

    def _check(self, content: JsonContent, data: bytes) -> None:
        assert len(content) == len(data)
        most = content.most_values()
        try:
            read = content.take(self.MOST_TEXT)
        except (JsonError, LongTextError):
            for expected in _read_by_python(data):
                assert self._may_be_refused(data.decode(), expected)
        else:
            assert _values(read) <= most + 1
            assert [read] == _read_by_python(data)
        assert len(content) == 0

    def _may_be_refused(self, text: str, expected: object) -> bool:
        long = len(text) > self.MOST_TEXT
        return long or _REFUSED_TOO.search(text) is not None or _levels(expected) > DEEPEST


def _read_by_python(data: bytes) -> list[Any]:
    """Return what the data hold; nothing where they are no JSON (RFC 8259)."""
    try:
        return [_with_floats(json.loads(data.decode(), parse_constant=_no_constant))]
    except (ValueError, RecursionError):
        return []


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _with_floats(value: Any) -> Any:
    """Return *value* with floats for whole numbers above 64 bits."""
    if isinstance(value, dict):
        return {name: _with_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    return float(str(value)) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 else value


def _levels(value: Any) -> int:
    items = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(_levels, items), default=0) if isinstance(value, dict | list) else 0


def _values(value: Any) -> int:
    items = list(value.values()) if isinstance(value, dict) else value
    return 1 + sum(map(_values, items)) if isinstance(value, dict | list) else 1
