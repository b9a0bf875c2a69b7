"""Two experiments side by side: the same measures of every scheme that both have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal


@dataclass(frozen=True, slots=True)
class _Measure:
    """Where an experiment's summary has a measure: class of flows, name, name of its interval; and its words."""

    kind: str
    name: str
    interval: str | None
    unit: str
    title: str
    better: Literal["less", "more"] = "less"


_MEASURES: Final = (
    _Measure("short", "afct_ms", "afct_ci_ms", "ms", "Short flows: mean completion time"),
    _Measure("short", "p50_ms", None, "ms", "Short flows: median completion time"),
    _Measure("short", "p95_ms", None, "ms", "Short flows: p95 of the completion time"),
    _Measure("short", "p99_ms", "p99_ci_ms", "ms", "Short flows: p99 of the completion time"),
    _Measure("long", "afct_ms", "afct_ci_ms", "ms", "Long flows: mean completion time"),
    _Measure("long", "p99_ms", "p99_ci_ms", "ms", "Long flows: p99 of the completion time"),
    _Measure("long", "goodput_mbps", "goodput_ci_mbps", "Mbit/s", "Long flows: goodput together", "more"),
)


def compare(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemes that both summaries have, with the measures that both have; ``ratio`` is b / a.

    Summaries are what clients sent: whatever is not of the known form is left out. So is a p99 that was not to be
    shown, being of too few flows.
    """
    ours, theirs = _schemes(a), _schemes(b)
    return [
        {
            "label": label,
            "cpu_limited": [bool(scheme.get("cpu_limited")) for scheme in (ours[label], theirs[label])],
            "disturbed": [bool(scheme.get("disturbed")) for scheme in (ours[label], theirs[label])],
            "measures": _rows(ours[label], theirs[label]),
        }
        for label in ours
        if label in theirs
    ]


def _schemes(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    schemes = summary.get("schemes")
    if not isinstance(schemes, dict):
        return {}
    return {label: scheme for label, scheme in schemes.items() if isinstance(scheme, dict)}


def _rows(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for measure in _MEASURES:
        first, other = _estimate(a, measure), _estimate(b, measure)
        if first is None or other is None:
            continue
        ratio = other["mean"] / first["mean"] if first["mean"] else None
        words = {"title": measure.title, "unit": measure.unit, "better": measure.better}
        rows.append(
            {"name": f"{measure.kind}.{measure.name}", **words, "a": first, "b": other, "ratio": ratio}
        )
    return rows


def _estimate(scheme: Mapping[str, Any], measure: _Measure) -> dict[str, Any] | None:
    block = scheme.get(measure.kind)
    if not isinstance(block, dict) or not _number(block.get(measure.name)):
        return None
    if measure.name == "p99_ms" and block.get("p99_shown") is False:
        return None
    bounds = block.get(measure.interval) if measure.interval is not None else None
    known = isinstance(bounds, list) and len(bounds) == 2 and all(map(_number, bounds))
    low, high = bounds if known and bounds is not None else (None, None)
    flows = block.get("n")
    return {
        "mean": block[measure.name],
        "low": low,
        "high": high,
        "n": flows if isinstance(flows, int) else None,
    }


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
