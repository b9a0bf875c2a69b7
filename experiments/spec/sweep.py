"""A spec with a sweep as the experiments that it stands for: one for each point of its grid."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from capstan_client.errors import FieldError
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Axis, Claim, Comparison, SchemeChoice, Spec, scheme_choice, spec_from_dict
from plain.overrides import merge
from plain.shown import shown
from topologies.fabric_spec import canonical_name

MOST_POINTS: Final = 200
_OTHER_UNIT: Final[Mapping[str, str]] = {
    "rate_gbps": "rate_mbps",
    "rate_mbps": "rate_gbps",
    "buffer_bytes": "buffer_packets",
    "buffer_packets": "buffer_bytes",
}
"""Fields of a link that say the same, of which it has one."""
_MOST_WHOLE: Final = 1e15
"""Below, whole numbers are shown with all digits: seeds like 20261122 and 20261123 are two."""


class SweepError(FieldError):
    """A sweep that gives no grid. path: below `sweep`."""


@dataclass(frozen=True, slots=True)
class Point:
    """One experiment of a grid. at: what each axis shows here, in the axes' order."""

    spec: Spec
    at: tuple[Any, ...] = ()


def points(spec: Spec) -> list[Point]:
    """Return the grid of a spec, the last axis running fastest; a spec without a sweep is its own only point.

    Every point has the spec's seed: what an axis does not touch (arrivals, pairs, ports) is alike at all of them.

    Raises:
        SweepError: the axes cannot be. PlainError, FabricSpecError: what a value makes of the spec cannot be.
    """
    if not spec.sweep:
        return [Point(spec)]
    check_axes(spec.sweep)
    combinations = []
    whole = spec_to_dict(spec)
    for scheme in whole["schemes"]:
        if scheme["label"] == scheme_choice(scheme["name"]).label:
            del scheme["label"]  # that of its name, which an axis may set
    for ticks, data in grid(whole, spec.sweep):
        point = spec_from_dict(data)
        title = f"{spec.title} ({words(spec.sweep, ticks)})"
        combinations.append(Point(replace(point, title=title, claims=claims_of_points(spec)), ticks))
    return combinations


def schemes_of_points(spec: Spec) -> list[SchemeChoice]:
    """Return the schemes that run at the points of a spec, those of the policy among their overrides.

    Those that differ in nothing but their label are there once.
    """
    found: dict[str, SchemeChoice] = {}
    for point in points(spec):
        for choice in point.spec.schemes:
            overrides = merge(point.spec.policy, choice.overrides)
            found.setdefault(repr((choice.name, overrides)), replace(choice, overrides=overrides))
    return list(found.values())


def by_fabric(grid: Sequence[Point]) -> list[list[int]]:
    """Return the indices of the points, those together that one deployment can serve."""
    groups: list[list[int]] = []
    for index, point in enumerate(grid):
        for group in groups:
            first = grid[group[0]].spec
            if (first.fabric, first.transport) == (point.spec.fabric, point.spec.transport):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def is_across(claim: Claim) -> bool:
    """Return whether a claim compares two points of a sweep, so that no point alone shows it."""
    return claim.compare is not None and claim.compare.points is not None


def claims_of_points(spec: Spec) -> tuple[Claim, ...]:
    """Return the claims that each point of a spec's sweep has."""
    return tuple(claim for claim in spec.claims if not is_across(claim))


def with_own_claims(spec: Spec) -> Spec:
    """Return the spec without claims about schemes, or points of a sweep, that it has no more: `check` refuses them."""
    there = {choice.label for choice in spec.schemes}
    ticks = {show(tick) for axis in spec.sweep[:1] for tick in axis.ticks}
    claims = tuple(claim for claim in spec.claims if _names_only(claim.compare, there, ticks))
    return replace(spec, claims=claims)


def _names_only(compare: Comparison | None, there: set[str], ticks: set[str]) -> bool:
    """Return whether a comparison is of these schemes, and at these points."""
    if compare is None:
        return True
    return {compare.scheme, compare.against} <= there | {""} and set(map(show, compare.points or ())) <= ticks


def only(spec: Spec, wanted: Sequence[str]) -> Spec:
    """Return the spec with these points of its first axis only, given as tables call them (`show`).

    Claims about other points go.

    Raises:
        SweepError: there is no sweep, or no such point.
    """
    if not spec.sweep:
        raise SweepError("there is no sweep to take points of")
    first, *others = spec.sweep
    there = [show(tick) for tick in first.ticks]
    for name in wanted:
        if name not in there:
            raise SweepError(
                f"{first.label} {name!r} is not a point of this sweep; there are {', '.join(there)}"
            )
    indices = [index for index, name in enumerate(there) if name in wanted]
    axis = replace(
        first,
        values=tuple(first.values[index] for index in indices),
        shown=None if first.shown is None else tuple(first.shown[index] for index in indices),
    )
    return with_own_claims(replace(spec, sweep=(axis, *others)))


def for_schemes(axes: Sequence[Axis], own: Sequence[str], chosen: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of a spec of which *chosen* schemes run in place of its *own*, both by their labels.

    Fields name schemes by their place: one of a scheme that is in both gets its new place, one of another is left out.

    Raises:
        SweepError: an axis has no other fields.
    """
    found = []
    for index, axis in enumerate(axes):
        fields: list[str] = []
        missing: list[str] = []
        for field in axis.fields:
            head, *rest = field.split(".")
            place = rest[0] if head == "schemes" and rest else ""
            label = own[int(place)] if place.isdecimal() and int(place) < len(own) else None
            if label is None:
                fields.append(field)
            elif label in chosen:
                fields.append(".".join([head, str(chosen.index(label)), *rest[1:]]))
            else:
                missing.append(label)
        if missing and not fields:
            text = f"sweeps {axis.label} of schemes that would not run ({', '.join(dict.fromkeys(missing))})"
            raise SweepError(f"{text}: run its own schemes, or take this axis out of a copy", index, "fields")
        found.append(replace(axis, fields=tuple(fields)))
    return tuple(found)


def check_axes(axes: Sequence[Axis]) -> None:
    """Raise SweepError for the first thing that does not fit together."""
    labels: dict[str, int] = {}
    for index, axis in enumerate(axes):
        if not axis.fields:
            raise SweepError("must name at least one field of the spec", index, "fields")
        if not axis.values:
            raise SweepError("must have at least one value", index, "values")
        if axis.shown is not None and len(axis.shown) != len(axis.values):
            text = f"has {len(axis.shown)} entries for {len(axis.values)} values"
            raise SweepError(text, index, "shown")
        ticks = [show(tick) for tick in axis.ticks]
        alike = next((tick for place, tick in enumerate(ticks) if tick in ticks[:place]), None)
        if alike is not None:
            text = f"two points would look the same ({shown(alike)}): values repeat, or give them other names by shown"
            raise SweepError(text, index, "values")
        if axis.label in labels:
            raise SweepError(f"{axis.label!r} is there already (sweep[{labels[axis.label]}])", index, "label")
        labels[axis.label] = index
    number = math.prod(len(axis.values) for axis in axes)
    if number > MOST_POINTS:
        raise SweepError(f"{number} points are more than {MOST_POINTS}: leave values out")


def grid(data: Mapping[str, Any], axes: Sequence[Axis]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield for each point what its axes show, and the spec's plain data there, without the sweep.

    Raises:
        SweepError: a path leads through something that has no fields.
    """
    for combination in product(*(range(len(axis.values)) for axis in axes)):
        changed = copy.deepcopy(dict(data))
        changed.pop("sweep", None)
        for index, (axis, position) in enumerate(zip(axes, combination, strict=True)):
            for number, field in enumerate(axis.fields):
                try:
                    set_field(changed, field, axis.values[position])
                except (IndexError, TypeError, ValueError, AttributeError):
                    raise SweepError(
                        f"{field!r} is not a field of this spec", index, "fields", number
                    ) from None
        yield tuple(axis.ticks[position] for axis, position in zip(axes, combination, strict=True)), changed


def set_field(data: dict[str, Any], field: str, value: Any) -> None:
    """Set what a dotted path names; objects on the way that are not there yet are made.

    What a link says of the same in another unit goes: written specs have all rates in Mbit/s, and a buffer of each.
    """
    *way, last = _as_written(data, field.split("."))
    here: Any = data
    for step in way:
        if isinstance(here, list):
            here = here[int(step)]
        else:
            if here.get(step) is None:
                here[step] = {}
            here = here[step]
    if isinstance(here, list):
        here[int(last)] = value
    elif isinstance(here, dict):
        if value is not None or last != "buffer_bytes":  # without one its buffer is the other
            here.pop(_OTHER_UNIT.get(last, ""), None)
        here[last] = value
    else:
        raise TypeError(f"{here!r} has no fields")


def _as_written(data: Mapping[str, Any], steps: list[str]) -> list[str]:
    """Return a path's steps with an override by the name that *data* has: `s1-l1` and `l1-s1` are one link."""
    fabric = data.get("fabric")
    overrides = fabric.get("overrides") if isinstance(fabric, Mapping) else None
    if steps[:2] != ["fabric", "overrides"] or len(steps) < 3 or not isinstance(overrides, Mapping):
        return steps
    wanted = canonical_name(steps[2])
    there = next((name for name in overrides if canonical_name(str(name)) == wanted), steps[2])
    return [*steps[:2], there, *steps[3:]]


def words(axes: Sequence[Axis], ticks: Sequence[Any]) -> str:
    """Return words such as `long flows = 4, ON share = 0.3`."""
    return ", ".join(
        f"{axis.label} = {show(value)}{' ' if axis.unit else ''}{axis.unit}"
        for axis, value in zip(axes, ticks, strict=True)
    )


def show(value: Any) -> str:
    """Return a tick as text: whole numbers with all their digits, others with six at most."""
    if isinstance(value, int):
        return shown(value)  # of a very long number how long it is
    if not isinstance(value, float):
        return str(value)
    whole = abs(value) < _MOST_WHOLE and value == int(value)
    return str(int(value)) if whole else f"{value:g}"
