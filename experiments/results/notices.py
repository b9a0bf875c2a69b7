"""Sentences for people on what happened to the fabric, or parts of the lab, during a run, and on points that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.results.simulated import Document, is_simulated

_OF_MACHINE: Final = ("cores", "processor", "kernel")


def types_notices(
    label: str, repeat: int, learnt: Sequence[Mapping[str, Any]], counted_from_s: float
) -> list[str]:
    """Return a sentence on a run in which types were not known when flows began to count.

    For schemes that learn types.
    """
    known = next((event["at_s"] for event in learnt if event["types"]), None)
    if known is not None and known <= counted_from_s:
        return []
    when = "never" if known is None else f"at {known:.1f} s"
    return [
        f"{label}'s run {repeat + 1}: types of flows were {when} known, and flows count from {counted_from_s:.1f} s "
        "on: until then all had the default thresholds"
    ]


def fabric_notices(label: str, repeat: int, changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for people on what happened to the fabric during one run, or none."""
    if not changes:
        return []
    first = changes[0]
    cause = f" ({first['cause']})" if first["cause"] else ""
    element, how = first["kind"].split("-")
    more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
    return [
        f"the fabric changed during {label}'s run {repeat + 1}: {element} {first['name']} {how} "
        f"at {first['at_s']:.1f} s{cause}{more}; flows took other paths meanwhile"
    ]


def limited_notices(label: str, repeat: int, limited_before: int) -> list[str]:
    """Return a sentence for people on a run that was done again since the processor had limited it, or none."""
    if not limited_before:
        return []
    return [
        f"{label}'s run {repeat + 1} was measured again with the same flows: the processor had limited it"
    ]


def disturbance_notices(
    label: str, repeat: int, disturbed: tuple[Mapping[str, Any], ...], repeated: int
) -> list[str]:
    """Return a sentence for people on a run that was disturbed or repeated, or none."""
    times = "once" if repeated == 1 else f"{repeated} times"
    lines = []
    if repeated:
        lines.append(
            f"{label}'s run {repeat + 1} was repeated {times} with the same flows: "
            "a part of the lab had ended during it"
        )
    if disturbed:
        first = disturbed[0]
        more = f", and {len(disturbed) - 1} more" if len(disturbed) > 1 else ""
        lines.append(
            f"{label}'s run {repeat + 1} is disturbed: {first['part']} ended ({first['how']}) at {first['at_s']:.1f} s "
            f"and was back after {first['after_s']:.1f} s{more}"
        )
    return lines


def unlike_notices(points: Sequence[tuple[str, Document]]) -> list[str]:
    """Return sentences for people on points of a sweep that had other versions or another machine than its first one.

    points: words and result document of each. Figures of simulations depend on versions alone.
    """
    first = equipment(points[0][1])
    groups: dict[str, list[str]] = {}
    for words, document in points[1:]:
        if own := unlike(equipment(document), first):
            groups.setdefault(own, []).append(words)
    return [
        f"{len(there)} of {len(points)} points (the first of them: {there[0]}) had {own}: "
        "run the sweep anew for points that are alike in this"
        for own, there in groups.items()
    ]


def unlike(own: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return in words which of its `equipment` something has in place of another's; empty: it is the same."""
    return ", ".join(
        f"{name} {own.get(name, 'unknown')} in place of {other.get(name, 'unknown')}"
        for name in {**other, **own}
        if own.get(name) != other.get(name)
    )


def equipment(document: Document) -> dict[str, Any]:
    """Return by name with what a result was made, as far as its figures depend on it."""
    parts = {**(document.get("versions") or {}), **(document.get("machine") or {})}
    left_out = _OF_MACHINE if is_simulated(document) else ()
    return {name: value for name, value in parts.items() if name not in left_out}
