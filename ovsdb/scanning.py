"""Finds the end of JSON objects that follow each other in a stream of bytes, looking at each byte once."""

from __future__ import annotations

import re
from typing import Final

from capstan_client.errors import CapstanError

DEEPEST: Final = 200
"""Levels of brackets: far more than RFC 7047 has."""
_IN_TEXT: Final = re.compile(rb'["\\\\]')
_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_SPACE: Final = b" \t\r\n"


class ScanError(CapstanError, ValueError):
    """What arrived is not a JSON object; the text says why."""


class JsonScanner:
    """Keeps its place between calls: a message that comes in small pieces costs no more than one that comes whole."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        self._depth = 0
        self._in_text = False

    def end_of_text(self, data: bytearray) -> int | None:
        """Return where the first object in *data* ends; None: the rest is on its way.

        *data* is what it was at the last call and what has come since; after an end, without what was before it.
        Raises ScanError.
        """
        if not self._depth:
            while self._at < len(data) and data[self._at] in _SPACE:
                self._at += 1
            if self._at < len(data) and data[self._at] != ord("{"):
                raise ScanError("not a JSON-RPC message")
        while (match := (_IN_TEXT if self._in_text else _OUTSIDE).search(data, self._at)) is not None:
            mark = match[0]
            self._at = match.end()
            if mark == b"\\":
                if self._at == len(data):  # what it stands before is on its way
                    self._at -= 1
                    return None
                self._at += 1
            elif mark == b'"':
                self._in_text = not self._in_text
            elif mark in b"{[":
                self._depth += 1
                if self._depth > DEEPEST:
                    raise ScanError(f"a message that is nested more than {DEEPEST} levels deep")
            else:
                self._depth -= 1
                if self._depth <= 0:
                    end = self._at
                    self._begin()
                    return end
        self._at = len(data)
        return None
