"""Whose turn it is: labs and simulations never run beside each other, for simulations take all the processor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

Kind = Literal["lab", "simulation"]


def turn(backlog: Sequence[Kind], active: Collection[Kind], slots: Mapping[Kind, int]) -> Kind | None:
    """Return the kind of which workers may begin something now; None: of neither.

    backlog: what waits, in the queue's order. active: what workers of ours are at. slots: workers of each kind.
    The first in the queue that any worker takes decides: what is at work of the other kind ends first.
    """
    first = next((kind for kind in backlog if slots[kind] > 0), None)
    return None if first is None or set(active) - {first} else first


def cores_each(slots: int, waiting: int, most: int) -> int:
    """Return how many cores each simulating worker may use: those of an experiment alone in the queue are all, but at
    most *most*, as many as a single worker has.
    """
    return max(1, min(most, slots // max(1, waiting)))
