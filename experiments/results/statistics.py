"""From flow outcomes to figures with intervals, per scheme and class.

Intervals are 95 % percentile bootstrap intervals of two levels: repeats are drawn with replacement, then flows
within each drawn repeat (flows of one repeat share their fabric and are not independent). All schemes are
resampled alike, repeat by repeat and flow by flow, so ratios between schemes are paired: what a seed does to
all of them cancels out. With one repeat only the flows are drawn, and the interval says nothing about seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError
from experiments.results.counts import counts, path_balance, per_class
from experiments.results.outcome import FlowOutcome, Runs
from workloads.records import TrafficClassName

RESAMPLES: Final = 1000
CONFIDENCE: Final = 0.95
FLOWS_FOR_P99: Final = 1000
"""Tables show a p99 from this many flows on: of 100 flows it is one flow's luck."""

FLOWS_FOR_INTERVAL: Final = 2
"""All resamples of a single flow are alike: that says nothing of how far off its time may be."""

_HELD_AT_ONCE: Final = 2_000_000
"""Times in resamples that wait to be reckoned: 16 MB."""
PERCENTILES: Final = (0.5, 0.95, 0.99)

Interval = tuple[float, float]


class EmptyError(CapstanError, RuntimeError):
    """A class of flows of which none finished: there is no figure, so there is no row."""


@dataclass(frozen=True, slots=True)
class Resamples:
    """Which flows each bootstrap resample holds: repeats, then flow positions within each drawn repeat.

    They are drawn anew whenever they are asked for, the same each time: kept, those of 100,000 flows take 800 MB.
    """

    counts: tuple[int, ...]
    """Flows of the class in each repeat."""
    seed: tuple[int, ...]
    number: int = RESAMPLES

    def each(self) -> Iterator[list[tuple[int, NDArray[np.intp]]]]:
        """Yield, resample by resample, the repeats that were drawn, each with the positions among its flows."""
        rng = np.random.default_rng(self.seed)
        for row in rng.integers(len(self.counts), size=(self.number, len(self.counts))):
            yield [
                (repeat, rng.integers(max(1, self.counts[repeat]), size=self.counts[repeat]))
                for repeat in row
            ]


def _interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    edge = (1 - CONFIDENCE) / 2
    array = np.asarray(values)
    with np.errstate(invalid="ignore"):  # between two infinite ones
        low, high = np.quantile(array[~np.isnan(array)], [edge, 1 - edge])
    return (float(low), float(high))


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion times of one scheme's flows of one class: milliseconds, repeat by repeat, NaN: failed."""

    values: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, runs: Runs, traffic_class: TrafficClassName) -> Completion:
        """Return the flows with a size of one class."""
        return cls.where(runs, lambda flow: flow.traffic_class == traffic_class)

    @classmethod
    def where(cls, runs: Runs, holds: Callable[[FlowOutcome], bool]) -> Completion:
        """Return the flows with a size for which *holds*."""
        return cls(
            tuple(
                np.array(
                    [
                        np.nan if flow.fct_s is None else flow.fct_s * 1e3
                        for flow in run
                        if flow.size_bytes is not None and holds(flow)
                    ]
                )
                for run in runs
            )
        )

    @property
    def counts(self) -> list[int]:
        """Return flows per repeat, with those that failed."""
        return [len(run) for run in self.values]

    def resampled(self, resamples: Resamples) -> Resampled:
        """Return mean and percentiles of every resample; flows that did not finish (NaN) drop out."""
        resampled = Resampled(
            np.full(resamples.number, np.nan), np.full((resamples.number, len(PERCENTILES)), np.nan)
        )
        alike: dict[int, list[int]] = {}
        picks: dict[int, NDArray[np.float64]] = {}
        held = 0
        for index, drawn in enumerate(resamples.each()):
            pick = np.concatenate([self.values[repeat][positions] for repeat, positions in drawn])
            pick = pick[~np.isnan(pick)]
            if len(pick):
                alike.setdefault(len(pick), []).append(index)
                picks[index] = pick
                held += len(pick)
            if held > _HELD_AT_ONCE:
                resampled.take(alike, picks)
                held = 0
        resampled.take(alike, picks)
        return resampled

    @property
    def finished(self) -> NDArray[np.float64]:
        """Return the times of all flows that finished, repeats together."""
        everything = np.concatenate(self.values)
        finished: NDArray[np.float64] = everything[~np.isnan(everything)]
        return finished

    def figures(self, resampled: Resampled) -> dict[str, Any]:
        """Return n, failed, mean and percentiles in ms with intervals (None: of one flow). Raise EmptyError if no flow
        finished."""
        finished = self.finished
        if len(finished) == 0:
            raise EmptyError("no flow finished")
        p50, p95, p99 = np.quantile(finished, PERCENTILES)
        intervals = [
            _interval(values) if len(finished) >= FLOWS_FOR_INTERVAL else None
            for values in (resampled.means, *resampled.percentiles.T)
        ]
        return {
            "n": len(finished),
            "failed": sum(self.counts) - len(finished),
            "afct_ms": float(finished.mean()),
            "afct_ci_ms": intervals[0],
            "p50_ms": float(p50),
            "p50_ci_ms": intervals[1],
            "p95_ms": float(p95),
            "p95_ci_ms": intervals[2],
            "p99_ms": float(p99),
            "p99_ci_ms": intervals[3],
            "p99_shown": len(finished) >= FLOWS_FOR_P99,
            "max_ms": float(finished.max()),
            "afct_per_repeat_ms": [_mean(run) for run in self.values],
        }


@dataclass(frozen=True, slots=True)
class Resampled:
    """What each resample gave, in ms; NaN for one without a finished flow."""

    means: NDArray[np.float64]
    """Shape (resamples,)."""
    percentiles: NDArray[np.float64]
    """Shape (resamples, 3): p50, p95, p99."""

    def take(self, alike: dict[int, list[int]], picks: dict[int, NDArray[np.float64]]) -> None:
        """Fill in resamples, and forget them. alike: their numbers by length, for one by one takes seconds."""
        for indices in alike.values():
            rows = np.stack([picks.pop(index) for index in indices])
            self.means[indices] = rows.mean(axis=1)
            self.percentiles[indices] = np.quantile(rows, PERCENTILES, axis=1, overwrite_input=True).T
        alike.clear()


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def ratio_of(
    name: str,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    *,
    resamples: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[float, Interval | None]:
    """Return a figure of our block of times over theirs with its interval, paired: both were resampled alike.

    resamples: the figure in each, ours and theirs. No interval where either is of a single flow.
    """
    enough = min(ours["n"], theirs["n"]) >= FLOWS_FOR_INTERVAL
    return ours[name] / theirs[name], _interval(resamples[0] / resamples[1]) if enough else None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Rates of one scheme's background flows over the measuring window, Mbit/s, shape (repeats, flows)."""

    mbps: NDArray[np.float64]

    @classmethod
    def of(cls, runs: Runs) -> Goodput | None:
        """Return the rates of background flows, Mbit/s; None: there are none. What one that failed had sent counts."""
        rows = [
            [
                flow.window_bytes * 8e-6 / flow.window_s if flow.window_s > 0 else 0.0
                for flow in run
                if flow.size_bytes is None
            ]
            for run in runs
        ]
        return cls(np.array(rows)) if rows and rows[0] else None

    @property
    def total(self) -> NDArray[np.float64]:
        """Return the sum over the flows, per repeat."""
        total: NDArray[np.float64] = self.mbps.sum(axis=1)
        return total

    def figures(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return the sum (mean over repeats) with its interval over repeats (None with one repeat), and each flow's."""
        return {
            "goodput_mbps": float(self.total.mean()),
            "goodput_ci_mbps": _over_repeats(self.total, lambda rows: float(rows.mean()), rng),
            "per_flow_mbps": float(self.mbps.mean()),
            "slowest_flow_mbps": float(self.mbps.min(axis=1).mean()),
            "goodput_per_repeat_mbps": [float(value) for value in self.total],
            "background_flows": int(self.mbps.shape[1]),
        }


def paired_ratio(both: NDArray[np.float64], rng: np.random.Generator) -> tuple[float | None, Interval | None]:
    """Return the first column's sum over the second's, shape (repeats, 2), and its interval over repeats.

    (None, None) where the second is zero; no interval with one repeat, or where it reaches infinity: where the second
    is zero in one of 40 resamples, as with few repeats of which most have none.
    """
    if both[:, 1].sum() == 0:
        return None, None

    def ratio(rows: NDArray[np.float64]) -> float:
        return float(rows[:, 0].sum() / rows[:, 1].sum()) if rows[:, 1].sum() else float("inf")

    return ratio(both), _over_repeats(both, ratio, rng)


def _over_repeats(
    rows: NDArray[np.float64], figure: Callable[[NDArray[np.float64]], float], rng: np.random.Generator
) -> Interval | None:
    if len(rows) < 2:
        return None
    picks = rng.integers(len(rows), size=(RESAMPLES, len(rows)))
    interval = _interval([figure(rows[pick]) for pick in picks])
    return interval if np.isfinite(interval).all() else None


def summarize(
    outcomes: Mapping[str, Runs], baseline: str, seed: int, resamples: int = RESAMPLES
) -> dict[str, dict[str, Any]]:
    """Return figures of every scheme: ``{label: {"short": ..., "long": ..., "against": ..., ...}}``.

    All schemes must have the same repeats and planned flows.

    Raises:
        EmptyError: a class that was planned has no finished flow under some scheme.
    """
    result: dict[str, dict[str, Any]] = {}
    completions: dict[str, dict[TrafficClassName, Completion]] = {}
    goodputs: dict[str, Goodput | None] = {}
    resampled: dict[str, dict[TrafficClassName, Resampled]] = {label: {} for label in outcomes}
    picks: dict[TrafficClassName, Resamples] = {}
    classes: tuple[TrafficClassName, ...] = ("short", "long")
    for label, runs in outcomes.items():
        completions[label] = {kind: Completion.of(runs, kind) for kind in classes}
        goodputs[label] = Goodput.of(runs)
        entry: dict[str, Any] = {}
        for kind in classes:
            completion = completions[label][kind]
            block: dict[str, Any] = {}
            if sum(completion.counts):
                if kind not in picks:
                    picks[kind] = Resamples(tuple(completion.counts), (seed, len(picks)), resamples)
                resampled[label][kind] = completion.resampled(picks[kind])
                try:
                    block |= completion.figures(resampled[label][kind])
                except EmptyError:
                    raise EmptyError(f"scheme {label!r}: no {kind} flow finished") from None
            if kind == "long" and (goodput := goodputs[label]) is not None:
                block |= goodput.figures(np.random.default_rng([seed, 7]))
                block["failed_background_flows"] = sum(
                    flow.size_bytes is None and flow.state == "failed" for run in runs for flow in run
                )
            if block:
                entry[kind] = block | per_class(runs, kind)
        entry |= counts(runs)
        entry["paths"] = {kind: path_balance(runs, kind) for kind in classes if kind in entry}
        result[label] = entry
    for label, entry in result.items():
        entry["baseline"] = label == baseline
        entry["against"] = {
            other: _ratios(entry, result[other], resampled[label], resampled[other])
            | _goodput_ratio(goodputs[label], goodputs[other], seed)
            for other in outcomes
            if other != label
        }
    return result


def _ratios(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    our_resamples: Mapping[TrafficClassName, Resampled],
    their_resamples: Mapping[TrafficClassName, Resampled],
) -> dict[str, Any]:
    """Return the ratios ours / theirs of mean completion time per class, and of p99 where there are flows enough."""
    entry: dict[str, Any] = {}
    for kind, resamples in our_resamples.items():
        other = their_resamples[kind]
        a, b = ours[kind], theirs[kind]
        ratio, interval = ratio_of("afct_ms", a, b, resamples=(resamples.means, other.means))
        entry |= {f"{kind}_afct_ratio": ratio, f"{kind}_afct_ratio_ci": interval}
        if a["p99_shown"] and b["p99_shown"]:
            tails = resamples.percentiles[:, 2], other.percentiles[:, 2]
            ratio, interval = ratio_of("p99_ms", a, b, resamples=tails)
            entry |= {f"{kind}_p99_ratio": ratio, f"{kind}_p99_ratio_ci": interval}
    return entry


def _goodput_ratio(ours: Goodput | None, theirs: Goodput | None, seed: int) -> dict[str, Any]:
    if ours is None or theirs is None:
        return {}
    both = np.stack([ours.total, theirs.total], axis=1)
    rate, span = paired_ratio(both, np.random.default_rng([seed, 8]))
    return {"goodput_ratio": rate, "goodput_ratio_ci": span}
