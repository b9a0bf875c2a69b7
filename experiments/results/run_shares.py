"""Figures of which a run has one: shares of packets, round trips, flows that did not ask; and their ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from experiments.results.admissions import Admissions
from experiments.results.outcome import FlowOutcome
from experiments.results.path_use import Paths, spread, unused_while_on
from experiments.results.statistics import paired_ratio
from workloads.records import TrafficClassName

_STREAM: Final = 9
"""Of random numbers for resampling, beyond those of `experiments.results.statistics`."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What a share is reckoned from: the flows of a run that count, and what was admitted of all *sent* flows.

    modes: changes of leaves' modes; paths: None: of a fabric whose paths are not counted.
    """

    flows: Sequence[FlowOutcome]
    sent: int
    admitted: Admissions | None = None
    modes: Sequence[Mapping[str, Any]] = ()
    paths: Paths | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """part over whole; a run whose whole is 0 has no figure."""

    part: float
    whole: float


def _again(of: TrafficClassName | None) -> Callable[[RunCounts], Share]:
    def share(run: RunCounts) -> Share:
        flows = run.flows if of is None else _class(run, of)
        # TCP counts what both copies of a replicated flow sent again
        packets = sum(flow.packets + flow.copy_packets for flow in flows)
        return Share(sum(flow.retransmissions for flow in flows), packets)

    return share


def _reordering(run: RunCounts) -> Share:
    flows = _class(run, "short")
    return Share(sum(flow.out_of_order for flow in flows), sum(flow.packets for flow in flows))


def _round_trip(run: RunCounts) -> Share:
    times = [flow.rtt_ms for flow in _class(run, "short") if flow.state == "finished"]
    return Share(sum(times), len(times))


def _slowest_round_trips(run: RunCounts) -> Share:
    times = sorted(flow.rtt_ms for flow in _class(run, "short") if flow.state == "finished")
    if not times:
        return Share(0, 0)
    slowest = times[-max(1, len(times) // 10) :]
    return Share(sum(slowest) / len(slowest), sum(times) / len(times))


def _path_spread(run: RunCounts) -> Share:
    return Share(0, 0) if run.paths is None else Share(*spread(_class(run, "long"), run.paths.number))


def _unused_paths(run: RunCounts) -> Share:
    return Share(0, 0) if run.paths is None else Share(*unused_while_on(run.flows, run.modes, run.paths))


def _datagrams(run: RunCounts) -> Share:
    sent = sum(flow.packets + flow.repairs + flow.copy_packets for flow in run.flows)
    return Share(sent, sum(flow.bytes_acked for flow in run.flows) / 1000)


def _unscheduled(run: RunCounts) -> Share:
    return Share(0, 0) if run.admitted is None else Share(run.sent - run.admitted.scheduled, run.sent)


def _class(run: RunCounts, wanted: TrafficClassName) -> list[FlowOutcome]:
    return [flow for flow in run.flows if flow.traffic_class == wanted]


SHARES: Final[Mapping[str, Callable[[RunCounts], Share]]] = {
    "short-retransmissions": _again("short"),
    "long-retransmissions": _again("long"),
    "all-retransmissions": _again(None),
    "short-reordering": _reordering,
    "short-round-trip": _round_trip,
    "short-round-trip-tail": _slowest_round_trips,
    "short-unused-paths": _unused_paths,
    "long-path-spread": _path_spread,
    "datagrams": _datagrams,
    "unscheduled": _unscheduled,
}
"""By measure: what TCP retransmits of a class's packets, and of all; segments of short flows that came behind a gap, of
their packets; the mean smoothed round trip of short flows, in ms, and that of the slowest tenth over it; paths that
short flows do not take while their leaves are ON; the standard deviation over paths of what they carry of long flows,
over its mean; datagrams with repairs and copies for each kB delivered; flows that did not ask before they sent.
"""


def add_shares(
    schemes: dict[str, dict[str, Any]], runs: Mapping[str, Sequence[RunCounts]], seed: int
) -> None:
    """Put ``shares`` into each scheme of *schemes* (`summarize`'s), and their ratios among those over other schemes.

    A scheme's share is ``{"value": of all runs together, "per_repeat": of each (null: it has none)}``; a ratio is
    paired by repeat, its 95 % interval over repeats.
    """
    shares_by_label = {
        label: {measure: [of_run(run) for run in group] for measure, of_run in SHARES.items()}
        for label, group in runs.items()
    }
    for label, measures in shares_by_label.items():
        schemes[label]["shares"] = {
            measure: {
                "value": _over(sum(share.part for share in shares), sum(share.whole for share in shares)),
                "per_repeat": [_over(share.part, share.whole) for share in shares],
            }
            for measure, shares in measures.items()
            if any(share.whole for share in shares)
        }
    for entry in schemes.values():
        for other, against in entry["against"].items():
            theirs = schemes[other]["shares"]
            for measure, share in entry["shares"].items():
                if measure in theirs:
                    against |= share_ratio(measure, share, theirs[measure], seed)


def share_ratio(
    measure: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return ``{"<measure>_ratio": ..., "<measure>_ratio_ci": ...}`` of two schemes' shares."""
    name = f"{measure.replace('-', '_')}_ratio"
    ratio, span = per_repeat_ratio(ours["per_repeat"], theirs["per_repeat"], seed)
    return {name: ratio, f"{name}_ci": span}


def per_repeat_ratio(
    ours: Sequence[float | None], theirs: Sequence[float | None], seed: int
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the ratio of two means over repeats with its 95 % interval over repeats, which are drawn in pairs.

    (None, None): repeats without a figure, another number of them, or 0 in all of *theirs*. An interval that reaches
    infinity is None.
    """
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if a is not None and b is not None]
    if not pairs or len(ours) != len(theirs) or len(pairs) < len(ours):
        return None, None
    return paired_ratio(np.array(pairs, dtype=float), np.random.default_rng([seed, _STREAM]))


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None
