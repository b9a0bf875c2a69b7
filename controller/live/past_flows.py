"""Flows of some time ago, without their timelines, so that there is room for many: a row of plain values each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

KEPT_PAST: Final = 100_000
SPARE_PAST: Final = 10_000
"""So many more before the oldest are deleted together."""

MOST_PATHS: Final = 2_000_000
"""Paths in all rows; a row that finds no room is kept without."""


class PastFlows:
    """The newest KEPT_PAST flows that were put here, by their numbers, which follow each other."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows: list[tuple[Any, ...]] = []
        self._paths = 0
        """In all rows."""
        self._first = 0
        """Number of the oldest."""

    def put(self, view: Mapping[str, Any]) -> None:
        """Keep a flow as the API shows it (``id``: one more than the one before)."""
        if not self._rows:
            self._names, self._first = tuple(view), view["id"]
        paths = view.get("paths", {})
        if self._paths + len(paths) > MOST_PATHS:
            view = {**view, "paths": {}}
        self._paths += len(view.get("paths", {}))
        values = (sys.intern(value) if isinstance(value, str) else value for value in view.values())
        self._rows.append(tuple(values))
        if len(self._rows) > KEPT_PAST + SPARE_PAST:
            self._first += len(self._rows) - KEPT_PAST
            del self._rows[:-KEPT_PAST]
            place = self._names.index("paths") if "paths" in self._names else None
            self._paths = 0 if place is None else sum(len(row[place]) for row in self._rows)

    def get(self, number: int) -> dict[str, Any] | None:
        """Return the flow with this number as the API answers it, or None."""
        index = number - self._first
        if not 0 <= index < len(self._rows):
            return None
        return dict(zip(self._names, self._rows[index], strict=True))

    def newest(self, before: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield those with a number below *before*, the newest first."""
        end = len(self._rows) if before is None else min(before - self._first, len(self._rows))
        for index in range(end - 1, -1, -1):
            yield dict(zip(self._names, self._rows[index], strict=True))
