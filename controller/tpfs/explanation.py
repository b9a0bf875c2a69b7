"""What TPFS has found out, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.tpfs.features import Feature
from controller.tpfs.flow_type import FlowType
from controller.tpfs.selection import Choice

_SHOWN: Final = 5
_WORDS: Final[dict[Feature, str]] = {
    "source": "source address",
    "source_port": "source port",
    "destination": "destination address",
    "destination_port": "destination port",
}


def words(features: Sequence[Feature]) -> str:
    """Return the features as a person says them."""
    return " and ".join(_WORDS[feature] for feature in features)


def explain(
    features: Sequence[Feature],
    types: Sequence[FlowType],
    choice: Choice,
    *,
    default: Sequence[int],
    unknown: int,
    flows: int,
) -> str:
    """Return which features, which values, and why, in a few lines."""
    if not types:
        return (
            f"Of {flows} flows no value of any field has enough for a type: all have the default thresholds."
        )
    best = choice.best
    other = next(
        (candidate for candidate in choice.candidates if candidate.combination != best.combination), None
    )
    lines = [
        f"The {words(features)} of a flow predicts its size best: {len(types)} "
        f"type{'s' if len(types) != 1 else ''} of {flows} flows, spread within types {best.spread:.3f}"
        + (f" ({words(other.combination)}: {other.spread:.3f})." if other else ".")
    ]
    if unknown:
        lines.append(f"{unknown} flows ({100 * unknown / flows:.1f} %) are of no type: default thresholds.")
    for number, flow_type in enumerate(types):
        shown = ", ".join("/".join(value) for value in flow_type.values[:_SHOWN])
        more = len(flow_type.values) - _SHOWN
        lines.append(
            f"Type {number}: {shown}{f' and {more} more' if more > 0 else ''}; {flow_type.flows} flows, "
            f"half of them up to {size(flow_type.median_bytes)}, 90 % up to {size(flow_type.p90_bytes)}; "
            f"{_moved(flow_type.thresholds_bytes, default)}."
        )
    return "\n".join(lines)


def size(count: float) -> str:
    """Return bytes with a decimal unit."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count:.0f} B"


def _moved(chosen: Sequence[int], default: Sequence[int]) -> str:
    if not chosen:
        return "there is one queue only"
    begins = sum(1 for queue in chosen if queue == 0)
    lowered = [queue for queue, usual in zip(chosen, default, strict=True) if queue < usual]
    if not lowered:
        return "default thresholds"
    text = f"{len(lowered)} of {len(chosen)} thresholds lowered, the first to {size(lowered[0])}"
    return f"begins in queue {begins + 1}, {text}" if begins else text
