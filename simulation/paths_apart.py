"""Long flows on paths of their own, as the papers' tests have them: source ports whose flow hashes do not collide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from simulation.fabrics import SettingsError
from workloads.description import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from workloads.plan import Plan

FIELD: Final = "simulation.long_paths_apart"
_CANDIDATES_A_PATH: Final = 24
"""So a path is missed by all candidates of a flow with a probability below e^-24."""

HashedPaths = Callable[[Plan], Sequence[int | None]]
"""Returns the path that each flow of a plan takes where leaves hash it; None: it has no choice."""


def with_paths_apart(plan: Plan, paths: int, hashed: HashedPaths) -> Plan:
    """Return the plan with source ports of its flows without end by which each takes another of *paths* paths.

    A port that is apart already stays; others are the next ones that no flow of the plan has.

    Raises:
        SettingsError: there are more long flows than paths, too few free ports, or flows without a choice of path.
    """
    background = plan.background
    if len(background) > paths:
        raise SettingsError(
            f"{len(background)} long flows cannot have paths of their own among {paths}",
            where=FIELD,
            remedy="have fewer long flows or more spines",
        )
    used = {port for flow in plan.flows for port in (flow.source_port, flow.copy_port)}
    free = [port for port in range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1) if port not in used]
    each = paths * _CANDIDATES_A_PATH
    taken: set[int | None] = {None}
    ports: dict[int, int] = {}
    for place, flow in enumerate(background):
        candidates = [flow, *(replace(flow, source_port=port) for port in free[place * each :][:each])]
        chosen = _first_apart(replace(plan, flows=tuple(candidates)), taken, hashed)
        if chosen is None:
            raise SettingsError(
                f"no source port gives long flow {flow.id} a path of its own",
                where=FIELD,
                remedy="leave it out",
            )
        ports[flow.id], path = chosen
        taken.add(path)
    apart = (replace(flow, source_port=ports.get(flow.id, flow.source_port)) for flow in plan.flows)
    return replace(plan, flows=tuple(apart))


def _first_apart(candidates: Plan, taken: set[int | None], hashed: HashedPaths) -> tuple[int, int] | None:
    """Return port and path of the first candidate whose path is not taken."""
    for flow, path in zip(candidates.flows, hashed(candidates), strict=True):
        if path is not None and path not in taken:
            return flow.source_port, path
    return None
