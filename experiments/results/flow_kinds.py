"""Figures of finer kinds of flows than short and long: medium, large, and each application's short ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from experiments.results.outcome import FlowOutcome, Runs
from experiments.results.statistics import (
    RESAMPLES,
    Completion,
    EmptyError,
    Interval,
    Resampled,
    Resamples,
    ratio_of,
)

Holds = Callable[[FlowOutcome], bool]
_FIRST_STREAM: Final = 100
"""Random streams of resampling, beyond those of `experiments.results.statistics`."""


def add_kinds(
    schemes: dict[str, dict[str, Any]],
    outcomes: Mapping[str, Runs],
    seed: int,
    *,
    large_limit_bytes: int | None,
    resamples: int = RESAMPLES,
) -> None:
    """Put blocks of completion times into each scheme of *schemes* (`summarize`'s), and their ratios.

    ``all`` (sized flows, where there are short and long ones), ``medium`` and ``large``, where there is a limit, with
    ``medium_afct_ratio`` and so on among the ratios; ``applications``: for each that has a name, its short flows'
    block, with ``ratios`` of their mean over other schemes. A kind of which no flow was planned is left out; where some
    scheme finished none of it, also.
    """
    both = all("long" in entry and "afct_ms" in entry["long"] for entry in schemes.values())
    for stream, (kind, holds) in enumerate(_sizes(large_limit_bytes, both=both).items()):
        for label, (block, ratios) in _compared(
            outcomes, holds, seed=seed, stream=_FIRST_STREAM + stream, resamples=resamples
        ).items():
            schemes[label][kind] = block
            for other, (ratio, interval) in ratios.items():
                schemes[label]["against"][other] |= {
                    f"{kind}_afct_ratio": ratio,
                    f"{kind}_afct_ratio_ci": interval,
                }
    names = sorted({flow.application for runs in outcomes.values() for run in runs for flow in run} - {""})
    for stream, name in enumerate(names, 10):
        for label, (block, ratios) in _compared(
            outcomes, _short_of(name), seed=seed, stream=_FIRST_STREAM + stream, resamples=resamples
        ).items():
            of_each = schemes[label].setdefault("applications", {})
            of_each[name] = block | {
                "ratios": {
                    other: {"afct_ratio": ratio, "afct_ratio_ci": interval}
                    for other, (ratio, interval) in ratios.items()
                }
            }


def _sizes(large_limit_bytes: int | None, *, both: bool) -> dict[str, Holds]:
    every: dict[str, Holds] = {"all": lambda flow: flow.size_bytes is not None}
    if large_limit_bytes is None:
        return every if both else {}
    limit = large_limit_bytes
    return every | {
        "medium": lambda flow: flow.traffic_class == "long" and (flow.size_bytes or 0) < limit,
        "large": lambda flow: (flow.size_bytes or 0) >= limit,
    }


def _short_of(application: str) -> Holds:
    return lambda flow: flow.traffic_class == "short" and flow.application == application


_Ratios = dict[str, tuple[float, Interval | None]]


def _compared(
    outcomes: Mapping[str, Runs], holds: Holds, *, seed: int, stream: int, resamples: int
) -> dict[str, tuple[dict[str, Any], _Ratios]]:
    """Return by scheme: the figures of flows for which *holds*, and the ratio of their mean over each other
    scheme's."""
    times = {label: Completion.where(runs, holds) for label, runs in outcomes.items()}
    counts = next(iter(times.values())).counts
    if not sum(counts):
        return {}
    picks = Resamples(tuple(counts), (seed, stream), resamples)
    resampled: dict[str, Resampled] = {label: sample.resampled(picks) for label, sample in times.items()}
    try:
        blocks = {label: sample.figures(resampled[label]) for label, sample in times.items()}
    except EmptyError:
        return {}
    return {
        label: (
            block,
            {
                other: ratio_of(
                    "afct_ms", block, theirs, resamples=(resampled[label].means, resampled[other].means)
                )
                for other, theirs in blocks.items()
                if other != label
            },
        )
        for label, block in blocks.items()
    }
