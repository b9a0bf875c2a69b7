"""Where a field stands in plain data: steps that are written out for an error only.

Peers choose keys: one of megabytes, written out for each of its thousands of items, would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterable

from plain.shown import LONGEST_SHOWN, shown

Where = str | tuple["Where", str | int]
"""The whole, or a field (text) or an item (number) of what stands elsewhere."""


def path_text(where: Where) -> str:
    """Return a place as text: ``body.flows[3].paths.2049``. Keys that are long, or not printable, are quoted, cut."""
    steps: list[str | int] = []
    while not isinstance(where, str):
        where, step = where
        steps.append(step)
    return where + steps_text(reversed(steps))


def steps_text(steps: Iterable[str | int]) -> str:
    """Return steps as text that goes on from a place: ``.flows[3].paths``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_name(step)}" for step in steps)


def last_step(where: Where) -> str:
    """Return the name of a field by itself; "" of an item of a list."""
    if isinstance(where, str):
        return where
    step = where[1]
    return step if isinstance(step, str) else ""


def _name(key: str) -> str:
    return key if len(key) <= LONGEST_SHOWN and key.isprintable() else shown(key)
