"""An experiment made to fit a machine: fewer paths, or slower links, the same picture in packet times.

TCP's own times (its least retransmission time-out of 200 ms, its delayed acknowledgements) stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from capstan_client.errors import CapstanError
from experiments.spec.load import CARRIED_SHARE, SAME_MACHINE, Load, PacketCosts, load_of
from experiments.spec.spec import Axis, Spec
from experiments.spec.sweep import points
from plain.bounds import bounded_fields, first_beyond
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import Workload

LEAST_PATHS: Final = 8
"""With fewer, spraying and hashing differ too little to show anything in the demo's nine runs."""
LEAST_SCALE: Final = 0.02
SIZED_FOR: Final = "sized for"
"""Begin of what a result says of how it was sized."""
_LONGEST_TIMEOUT_S: Final = float(bounded_fields(Spec)["timeout_s"].le or 0)
_SLOWER_FIELDS: Final = ("rate_mbps", "rate_gbps", "rate_per_s")
_LONGER_FIELDS: Final = (
    "duration_s",
    "lead_in_s",
    "on_s",
    "off_s",
    "warm_up_s",
    "timeout_s",
    "quiet_s",
    "delay_ms",
)
_SIZED_FIELDS: Final = frozenset({*_SLOWER_FIELDS, *_LONGER_FIELDS, "spines", "number", "values", "shown"})
"""What may differ in a spec that was sized: rates, times, paths, long flows, and the values of axes."""


class FitError(CapstanError, ValueError):
    """A spec cannot be scaled; the text says why."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A spec as it will run. changes: how it differs from what was asked for, in words; empty where it does not."""

    spec: Spec
    load: Load
    changes: tuple[str, ...] = ()


def busiest(spec: Spec, costs: PacketCosts) -> Load:
    """Return the load of the heaviest point of *spec*'s sweep, or of its only one."""
    return max((load_of(point.spec, costs) for point in points(spec)), key=lambda load: load.cores)


def fit(spec: Spec, cores: float, costs: PacketCosts, *, paths_first: bool = False) -> Fit:
    """Return *spec* made light enough that *cores* processors carry it; unchanged where they do.

    paths_first: leave paths and long flows out before links become slower, so that a run takes no longer.

    Raises:
        FitError: the lab at rest takes more than that already.
    """
    changes: list[str] = []
    if paths_first:
        spec = _without_paths(spec, _paths_carried(spec, cores, costs), changes)
    load = busiest(spec, costs)
    room = CARRIED_SHARE * cores - load.idle_cores
    if load.share(cores) > CARRIED_SHARE:
        if room <= 0:
            raise FitError(
                f"the fabric at rest takes {load.idle_cores:.1f} of {cores:g} cores: "
                "use a smaller fabric, or more cores"
            )
        carried = room / (load.cores - load.idle_cores)
        scale = math.floor(carried * 100) / 100
        if scale < LEAST_SCALE:
            raise FitError(
                f"links would need {carried:.1g} of their rates (at least {LEAST_SCALE:g}): "
                "use a smaller fabric, or more cores"
            )
        spec = _with_slower_links(spec, scale, changes)
        load = busiest(spec, costs)
    return Fit(spec, load, tuple(changes))


def scaled(spec: Spec, scale: float, costs: PacketCosts, *, paths_first: bool = False) -> Fit:
    """Return *spec* with that share (`LEAST_SCALE` to 1) of its packets a second. Raises FitError for another number.

    paths_first: by fewer paths as far as they go, the rest by slower links.
    """
    if not LEAST_SCALE <= scale <= 1:
        raise FitError(f"a scale must be between {LEAST_SCALE:g} and 1, not {scale:g}")
    changes: list[str] = []
    if paths_first and _alike(spec) and spec.fabric.spines > LEAST_PATHS:
        paths = max(LEAST_PATHS, round(spec.fabric.spines * scale))
        spec, scale = _without_paths(spec, paths, changes), min(1.0, scale * spec.fabric.spines / paths)
    if scale < 1:
        spec = _with_slower_links(spec, scale, changes)
    return Fit(spec, busiest(spec, costs), tuple(changes))


def _without_paths(spec: Spec, paths: int, changes: list[str]) -> Spec:
    """Return *spec* with *paths* spines, and add to *changes* what that means."""
    if paths == spec.fabric.spines:
        return spec
    fewer = fewer_paths(spec, paths)
    changes.append(f"{paths} of {spec.fabric.spines} paths")
    had, has = spec.workload.long_flows, fewer.workload.long_flows
    if had is not None and has is not None and had.number != has.number:
        changes.append(f"{has.number} of {had.number} long flows")
    return fewer


def _with_slower_links(spec: Spec, scale: float, changes: list[str]) -> Spec:
    changes.append(f"links at {scale:.2g} of their rates, times {1 / scale:.3g} times as long")
    light = slower(spec, scale)
    wrong = first_beyond(light)
    if wrong is not None:
        field, rule = wrong
        raise FitError(
            f"links at {scale:.2g} of their rates take longer times, and {field} {rule}: make it shorter"
        )
    return light


def without_sizes(data: Any) -> Any:
    """Return a spec's plain data without what differs between the spec and what was made of it for a machine."""
    if isinstance(data, Mapping):
        return {name: without_sizes(value) for name, value in data.items() if name not in _SIZED_FIELDS}
    return [without_sizes(value) for value in data] if isinstance(data, list) else data


# -- fewer paths -----------------------------------------------------------------------------------


def fewer_paths(spec: Spec, paths: int) -> Spec:
    """Return *spec* with *paths* spines, and as many long flows fewer as still could fill all paths.

    Raises FitError where paths are not alike: a fat tree, links of their own rate or down, a sweep.
    """
    fabric = spec.fabric
    if not _alike(spec):
        raise FitError(f"{spec.name}: its paths are not alike, or a sweep changes them: none can be left out")
    long_flows = spec.workload.long_flows
    if long_flows is not None:
        number = max(min(2, long_flows.number), math.ceil(long_flows.number * paths / fabric.spines))
        long_flows = replace(long_flows, number=number)
    return replace(
        spec,
        fabric=replace(fabric, spines=paths),
        workload=replace(spec.workload, long_flows=long_flows),
    )


def _alike(spec: Spec) -> bool:
    """Return whether one spine is as good as another, in all of the spec's points."""
    fabric = spec.fabric
    return fabric.topology == "leaf-spine" and not (fabric.overrides or fabric.down or spec.sweep)


def _paths_carried(spec: Spec, cores: float, costs: PacketCosts) -> int:
    """Return the largest number of paths that *cores* processors carry, LEAST_PATHS or more where there are so many.

    They carry it also where they are slower than was measured, by as much as measurements of a machine differ:
    leaving paths out costs no time, as slower links do. All paths where they are not alike: only slower links help.
    """
    if not _alike(spec):
        return spec.fabric.spines
    for paths in range(spec.fabric.spines, LEAST_PATHS, -1):
        fewer = spec if paths == spec.fabric.spines else fewer_paths(spec, paths)
        if load_of(fewer, costs).share(cores) <= CARRIED_SHARE / SAME_MACHINE:
            return paths
    return min(spec.fabric.spines, LEAST_PATHS)


# -- slower links ----------------------------------------------------------------------------------


def slower(spec: Spec, scale: float) -> Spec:
    """Return *spec* with all rates times *scale* (below 1) and all times of its own over it; time-outs have an end."""
    return replace(
        spec,
        fabric=_slower_fabric(spec.fabric, scale),
        workload=_slower_workload(spec.workload, scale),
        warm_up_s=spec.warm_up_s / scale,
        quiet_s=None if spec.quiet_s is None else spec.quiet_s / scale,
        timeout_s=min(spec.timeout_s / scale, _LONGEST_TIMEOUT_S),
        sweep=tuple(_slower_axis(axis, scale) for axis in spec.sweep),
    )


def _slower_link(link: Link, scale: float) -> Link:
    rate = None if link.rate_mbps is None else link.rate_mbps * scale
    return replace(link, rate_mbps=rate, delay_ms=link.delay_ms / scale)


def _slower_fabric(fabric: FabricSpec, scale: float) -> FabricSpec:
    return replace(
        fabric,
        link=_slower_link(fabric.link, scale),
        access=_slower_link(fabric.access, scale),
        overrides={name: _slower_link(link, scale) for name, link in fabric.overrides.items()},
    )


def _slower_workload(workload: Workload, scale: float) -> Workload:
    flows = workload.flows
    arrivals = replace(
        flows.arrivals,
        rate_per_s=_times(flows.arrivals.rate_per_s, scale),
        on_s=_times(flows.arrivals.on_s, 1 / scale),
        off_s=_times(flows.arrivals.off_s, 1 / scale),
    )
    return replace(
        workload,
        flows=replace(
            flows,
            arrivals=arrivals,
            duration_s=_times(flows.duration_s, 1 / scale),
            lead_in_s=flows.lead_in_s / scale,
        ),
    )


def _slower_axis(axis: Axis, scale: float) -> Axis:
    """Return an axis that sets rates or times; tables go on to call its points as before."""
    names = {field.rpartition(".")[2] for field in axis.fields}.union(*map(_fields_in, axis.values))
    if names <= set(_SLOWER_FIELDS):
        factor = scale
    elif names <= set(_LONGER_FIELDS):
        factor = 1 / scale
    elif names & {*_SLOWER_FIELDS, *_LONGER_FIELDS}:
        raise FitError(
            f"axis {axis.label!r} sets rates or times together with something else: it cannot be scaled"
        )
    else:
        return axis
    shown = axis.shown if axis.shown is not None else _numbers(axis)
    return replace(axis, values=tuple(_times(value, factor) for value in axis.values), shown=shown)


def _fields_in(value: Any) -> set[str]:
    """Return the names of fields within a value of an axis: whole links, or arrivals, may be its values."""
    if isinstance(value, list | tuple):
        return set().union(*map(_fields_in, value))
    return {*value}.union(*map(_fields_in, value.values())) if isinstance(value, Mapping) else set()


def _numbers(axis: Axis) -> tuple[float, ...] | None:
    return tuple(axis.values) if all(isinstance(value, int | float) for value in axis.values) else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
