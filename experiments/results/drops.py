"""Packets that ports dropped in simulated runs, by the hop of their way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

HOPS: Final = (
    "host to leaf",
    "leaf to spine",
    "aggregation to core",
    "core to aggregation",
    "spine to leaf",
    "leaf to host",
)
"""In the order of a packet's way; a leaf-spine has no aggregation."""
Drops = Mapping[str, int]
"""Packets by hop; all count: data, acknowledgements, repairs and feedback."""


def all_drops(runs: Iterable[Drops | None]) -> dict[str, int] | None:
    """Return the packets dropped in several runs together, by hop in order; None: all were in a lab."""
    simulated = [drops for drops in runs if drops is not None]
    if not simulated:
        return None
    present = [hop for hop in HOPS if any(hop in drops for drops in simulated)]
    return {hop: sum(drops.get(hop, 0) for drops in simulated) for hop in present}
