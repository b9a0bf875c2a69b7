"""What TPFS has found out, as plain data: the features, the types with their values and thresholds, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.schemes.scheme import Printed
from controller.tpfs.clustering import UNKNOWN
from controller.tpfs.distributions import Spacing
from controller.tpfs.explanation import explain
from controller.tpfs.features import Feature, fair_share
from controller.tpfs.flow_type import FlowType
from controller.tpfs.printed_solution import printed_thresholds
from controller.tpfs.records import Records
from controller.tpfs.selection import Candidate, choose
from controller.tpfs.slowdown import mean_slowdown
from controller.tpfs.thresholds import FlowSizes, queue_loads, thresholds

MOST_VALUES: Final = 4096
"""Of all types together, those with most flows: agents get no more."""

SAME: Final = 0.05
"""Relative: thresholds that are no further apart are the same to agents."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One of the 15 combinations. spread: S (`controller.tpfs.selection`)."""

    features: tuple[Feature, ...]
    spread: float
    types: int
    unknown_share: float


@dataclass(frozen=True, slots=True)
class LearntTypes:
    """Types of *flows* records. Without types no feature predicts anything: all flows have the default thresholds.

    set_aside: records that were not looked at, as their host has so many; removed_bad_bytes, removed_good_bytes,
    delta_bytes: Eq. 4; slowdown_ratio: mean slowdown over that under the default thresholds, by the model.
    """

    flows: int
    set_aside: int
    unknown_flows: int
    features: tuple[Feature, ...]
    types: tuple[FlowType, ...]
    default_thresholds_bytes: tuple[int, ...]
    points_bytes: tuple[float, ...]
    tried: tuple[Tried, ...]
    removed_bad_bytes: float
    removed_good_bytes: float
    delta_bytes: float
    slowdown_ratio: float
    explanation: str


def flow_types(
    records: Records,
    addresses: Sequence[str],
    default: Sequence[int],
    *,
    load: float,
    delta: float | None = None,
    spacing: Spacing = "log",
    printed: Printed | None = None,
) -> LearntTypes | None:
    """Return the types of *records*, and thresholds for each; None where there are no records.

    addresses: the texts of the numbers in records; default: K - 1 thresholds in bytes, not falling; load: of the
    links, 0 to 1; delta: good load that may be removed in bytes, None: by the model; printed: by
    TPFS's own equations instead. Raises `thresholds.SolveError`.
    """
    fair = records[fair_share(records["host"].astype(np.int64))]
    choice = choose(fair, float(default[-1]) if default else None, spacing)
    if choice is None:
        return None
    best = choice.best
    of_flow = best.clusters.of_value[best.values.value]
    samples = [
        FlowSizes(fair["bytes"][best.values.flows[of_flow == number]], best.weight[of_flow == number])
        for number in range(best.clusters.count)
    ]
    typeless = np.ones(len(fair), dtype=bool)
    typeless[best.values.flows[of_flow != UNKNOWN]] = False
    others = FlowSizes(fair["bytes"][typeless])
    solution = (
        thresholds(samples, default, load, delta=delta, others=others)
        if printed is None
        else printed_thresholds(samples, default, load, alpha=printed.most_alpha, others=others)
    )
    before = mean_slowdown(
        [sizes.slowdown for sizes in samples],
        [default] * len(samples),
        load,
        others=others.slowdown,
        default=default,
    )
    values = _values(fair, addresses, best)
    types = tuple(
        FlowType(
            flows=len(sizes),
            values=values[number],
            thresholds_bytes=chosen,
            mean_bytes=sizes.bytes / sizes.flows,
            median_bytes=sizes.quantile(0.5),
            p90_bytes=sizes.quantile(0.9),
            cdf=tuple(sizes.share(choice.points).tolist()),
            queue_bytes=tuple(part.good + part.bad for part in queue_loads(sizes, chosen)),
        )
        for number, (sizes, chosen) in enumerate(zip(samples, solution.thresholds, strict=True))
    )
    unknown = len(fair) - sum(map(len, samples))
    features = best.combination if types else ()
    return LearntTypes(
        flows=len(fair),
        set_aside=len(records) - len(fair),
        unknown_flows=unknown,
        features=features,
        types=types,
        default_thresholds_bytes=tuple(int(threshold) for threshold in default),
        points_bytes=tuple(choice.points.tolist()),
        tried=tuple(
            Tried(candidate.combination, candidate.spread, candidate.clusters.count, candidate.unknown_share)
            for candidate in choice.candidates
        ),
        removed_bad_bytes=solution.removed_bad,
        removed_good_bytes=solution.removed_good,
        delta_bytes=solution.delta,
        slowdown_ratio=solution.slowdown / before if before else 1.0,
        explanation=explain(features, types, choice, default=default, unknown=unknown, flows=len(fair)),
    )


def differ(types: LearntTypes | None, other: LearntTypes | None) -> bool:
    """Return True if agents need an update: other features or values, or a threshold that moved by more than `SAME`."""
    if types is None or other is None:
        return types is not other
    if types.features != other.features or len(types.types) != len(other.types):
        return True
    mine, theirs = ({frozenset(item.values): item for item in side.types} for side in (types, other))
    if mine.keys() != theirs.keys():
        return True
    return any(
        abs(a - b) > SAME * max(a, b)
        for values, item in mine.items()
        for a, b in zip(item.thresholds_bytes, theirs[values].thresholds_bytes, strict=True)
    )


def _values(records: Records, addresses: Sequence[str], best: Candidate) -> list[tuple[tuple[str, ...], ...]]:
    """Return the values of each type as texts."""
    order = np.argsort(-best.distributions.flows, kind="stable")
    known = order[best.clusters.of_value[order] != UNKNOWN][:MOST_VALUES]
    result: list[list[tuple[str, ...]]] = [[] for _ in range(best.clusters.count)]
    for value in known:
        record = records[best.values.example[value]]
        texts = tuple(
            str(record[name]) if name.endswith("_port") else addresses[record[name]]
            for name in best.combination
        )
        result[best.clusters.of_value[value]].append(texts)
    return [tuple(row) for row in result]
