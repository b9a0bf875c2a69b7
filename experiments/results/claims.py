"""What papers claim, beside what was measured here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from experiments.results.run_shares import SHARES, per_repeat_ratio
from experiments.spec.spec import Claim, Comparison, Measure
from experiments.spec.sweep import show

Verdict = Literal["seen", "more", "not seen", "open", "no figure"]
"""By the whole 95 % interval. seen: within what is claimed; more: beyond the claimed range, on the better side; not
seen: outside; open: the interval has both; no figure: `why` says so.
"""

RATIOS: Final[Mapping[Measure, str]] = {
    "all-mean": "all_afct_ratio",
    "short-mean": "short_afct_ratio",
    "short-p99": "short_p99_ratio",
    "long-mean": "long_afct_ratio",
    "medium-mean": "medium_afct_ratio",
    "large-mean": "large_afct_ratio",
    "long-goodput": "goodput_ratio",
    "short-retransmissions": "short_retransmissions_ratio",
    "long-retransmissions": "long_retransmissions_ratio",
    "all-retransmissions": "all_retransmissions_ratio",
    "short-reordering": "short_reordering_ratio",
    "short-round-trip": "short_round_trip_ratio",
    "short-round-trip-tail": "short_round_trip_tail_ratio",
    "short-unused-paths": "short_unused_paths_ratio",
    "long-path-spread": "long_path_spread_ratio",
    "datagrams": "datagrams_ratio",
    "unscheduled": "unscheduled_ratio",
}
"""Where the result document keeps each measure's ratio."""
WORDS: Final[Mapping[Measure, str]] = {
    "all-mean": "mean completion time of all sized flows",
    "short-mean": "mean completion time of short flows",
    "short-p99": "p99 of the completion time of short flows",
    "long-mean": "mean completion time of long flows",
    "medium-mean": "mean completion time of medium flows",
    "large-mean": "mean completion time of large flows",
    "long-goodput": "goodput of long flows",
    "short-retransmissions": "share of short flows' packets that are retransmitted",
    "long-retransmissions": "share of long flows' packets that are retransmitted",
    "all-retransmissions": "share of all flows' packets that are retransmitted",
    "short-reordering": "share of short flows' packets that come behind a gap",
    "short-round-trip": "mean round trip of short flows",
    "short-round-trip-tail": "round trips of the slowest tenth of short flows over all",
    "short-unused-paths": "share of paths that short flows do not take while leaves are ON",
    "long-path-spread": "spread of long flows over paths",
    "datagrams": "datagrams for each kB delivered",
    "unscheduled": "share of flows that leave unscheduled",
}


_PERCENT: Final = 0.01
_MOST_DECIMALS: Final = 5


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """Our figure for a claim: ratio scheme / against, or the scheme's share in %, with its 95 % interval.

    interval: None: of one repeat there is none.
    """

    verdict: Verdict
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it plain, as result documents have it."""
        return {"verdict": self.verdict, "ratio": self.ratio, "interval": self.interval, "why": self.why}


def find(comparison: Comparison, schemes: Mapping[str, Any]) -> ClaimVerdict:
    """Return what the schemes' figures (of a result document) say of a comparison."""
    for label in labels(comparison):
        if label not in schemes:
            return ClaimVerdict("no figure", why=f"{label} was not run")
    if not comparison.against:
        return _share_itself(comparison, schemes[comparison.scheme])
    ours, theirs = schemes[comparison.scheme], schemes[comparison.against]
    entry = ours["against"][comparison.against]
    name = RATIOS[comparison.measure]
    ratio = entry.get(name)
    if ratio is None:
        return ClaimVerdict("no figure", why=_why_none(comparison.measure, ours, theirs))
    return _judged(
        comparison, ratio, entry.get(f"{name}_ci"), {comparison.scheme: ours, comparison.against: theirs}
    )


def labels(comparison: Comparison) -> tuple[str, ...]:
    """Return the schemes that a comparison is about: both, or the only one."""
    return tuple(label for label in (comparison.scheme, comparison.against) if label)


def _share_itself(comparison: Comparison, scheme: Mapping[str, Any]) -> ClaimVerdict:
    """Return what a share says that is claimed without another scheme's: the mean over repeats, in %."""
    shares = _per_repeat(comparison.measure, scheme)
    mean, span = per_repeat_ratio(shares, [_PERCENT] * len(shares), seed=0)
    if mean is None:
        return ClaimVerdict("no figure", why=_why_none(comparison.measure, scheme))
    return _judged(comparison, mean, span, {comparison.scheme: scheme})


def rejudged(comparison: Comparison, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded verdict as its interval has it by now; others stay as they are."""
    if verdict["verdict"] == "no figure" or verdict["interval"] is None:
        return dict(verdict)
    low, high = verdict["interval"]
    return {**verdict, "verdict": _verdict(comparison, (low, high))}


def find_across(comparison: Comparison, points: Mapping[str, Mapping[str, Any]], seed: int) -> ClaimVerdict:
    """Return what two points of a sweep say of a comparison with `points`: the ratio of means over repeats, paired.

    The same point twice says what it says of any comparison.

    points: of each point of the sweep, by what it is called (`show`), the schemes' figures of its result document.
    """
    assert comparison.points is not None
    ticks = [show(point) for point in comparison.points]
    if ticks[0] == ticks[1]:
        return find(comparison, points.get(ticks[0], {}))
    entries = {}
    for label, point in zip((comparison.scheme, comparison.against), ticks, strict=True):
        if label not in points.get(point, {}):
            return ClaimVerdict("no figure", why=f"{label} was not run at {point}")
        entries[f"{label} at {point}"] = points[point][label]
    ours, theirs = (_per_repeat(comparison.measure, entry) for entry in entries.values())
    ratio, span = per_repeat_ratio(ours, theirs, seed)
    if ratio is None:
        return ClaimVerdict("no figure", why="no figure of every repeat at both points")
    return _judged(comparison, ratio, span, entries)


def _per_repeat(measure: Measure, entry: Mapping[str, Any]) -> Sequence[float | None]:
    kind, _, name = measure.partition("-")
    if measure == "long-goodput":
        values = entry.get("long", {}).get("goodput_per_repeat_mbps")
    elif name == "mean":
        values = entry.get(kind, {}).get("afct_per_repeat_ms")
    else:
        values = entry.get("shares", {}).get(measure, {}).get("per_repeat")
    return values or ()


def _judged(
    comparison: Comparison,
    ratio: float,
    span: Sequence[float] | None,
    entries: Mapping[str, Mapping[str, Any]],
) -> ClaimVerdict:
    """Return the verdict of a ratio. entries: of both schemes, by what they are called; a pair may be one scheme."""
    interval = None if span is None else (float(span[0]), float(span[1]))
    limited = [label for label, entry in entries.items() if entry.get("cpu_limited")]
    if limited:
        return ClaimVerdict("no figure", ratio, interval, f"{' and '.join(limited)} limited by the processor")
    disturbed = [label for label, entry in entries.items() if entry.get("disturbed")]
    if disturbed:
        why = f"a part of the lab ended during runs of {' and '.join(disturbed)}"
        return ClaimVerdict("no figure", ratio, interval, why)
    if interval is None:
        return ClaimVerdict("open", ratio, None, _why_no_interval(comparison.measure, entries))
    return ClaimVerdict(_verdict(comparison, interval), ratio, interval)


def _why_no_interval(measure: Measure, entries: Mapping[str, Mapping[str, Any]]) -> str:
    kind, _, name = measure.partition("-")
    if name == "mean" and any(entry.get(kind, {}).get("n") == 1 for entry in entries.values()):
        return "a single flow has no interval"
    if all(len(_per_repeat(measure, entry)) > 1 for entry in entries.values()):
        return "the interval has no end: what it is compared with is 0 in too many repeats"
    return "one repeat has no interval"


def _verdict(comparison: Comparison, interval: tuple[float, float]) -> Verdict:
    low, high = interval
    if comparison.between is not None:
        return _within(comparison, comparison.between, interval)
    more = comparison.measure == "long-goodput"
    if more:  # as if it were a time: less is better
        low, high = (1 / high if high > 0 else math.inf), (1 / low if low > 0 else math.inf)
    claimed = comparison.at_least if more else comparison.at_most
    if claimed is None or (claimed == 1 and comparison.against):  # sooner, or more: a tie shows neither
        return "seen" if high < 1 else "not seen" if low > 1 else "open"
    limit = 1 / claimed if more else claimed
    return "seen" if high <= limit else "not seen" if low > limit else "open"


def _within(comparison: Comparison, claimed: Sequence[float], interval: tuple[float, float]) -> Verdict:
    """Return the verdict on a range. A range around 1 says that schemes are alike: neither side of it is better."""
    (least, most), (low, high) = claimed, interval
    if least <= low and high <= most:
        return "seen"
    if low <= most and high >= least:
        return "open"
    if comparison.measure == "long-goodput":
        return "more" if low > most and least >= 1 else "not seen"
    return "more" if high < least and most <= 1 and comparison.against else "not seen"


def _why_none(measure: Measure, *schemes: Mapping[str, Any]) -> str:
    kind = measure.partition("-")[0]
    if measure in SHARES:
        return "no such packets, or none of the other's in all repeats"
    if measure == "short-p99" and all("n" in scheme.get(kind, {}) for scheme in schemes):
        return f"{min(scheme[kind]['n'] for scheme in schemes)} flows are too few for a p99"
    if measure == "long-goodput" and all("goodput_mbps" in scheme.get(kind, {}) for scheme in schemes):
        return "the long flows of the other carried nothing"
    if kind in ("medium", "large"):  # left out where one scheme finished none (`flow_kinds.add_kinds`)
        return f"there are no such {kind} flows, or a scheme finished none of them"
    return f"there are no such {kind} flows"


def claim_verdicts(claims: tuple[Claim, ...], schemes: Mapping[str, Any]) -> list[dict[str, Any] | None]:
    """Return a verdict for each claim, plain; None for a claim without a comparison."""
    return [None if claim.compare is None else find(claim.compare, schemes).to_dict() for claim in claims]


def heading(claim: Mapping[str, Any]) -> str:
    """Return a line such as `Claim (CAPS, INFOCOM 2018, Fig. 11; qualitative): ...` of a result document's claim."""
    where = ", ".join(text for text in (claim.get("source", ""), claim.get("figure", "")) if text)
    kind = "qualitative" if claim.get("kind", "qualitative") == "qualitative" else ""
    inside = "; ".join(text for text in (where, kind) if text)
    return f"Claim{f' ({inside})' if inside else ''}: {claim['text'].strip()}"


def compared(comparison: Mapping[str, Any]) -> str:
    """Return words such as `caps / rps, mean completion time of short flows`, with the limit that is claimed."""
    names = [name for name in (comparison["scheme"], comparison["against"]) if name]
    if comparison.get("points") is not None:
        names = [f"{name} at {show(tick)}" for name, tick in zip(names, comparison["points"], strict=False)]
    text = f"{' / '.join(names)}, {WORDS[comparison['measure']]}" + ("" if comparison["against"] else " in %")
    if comparison.get("at_most") is not None:
        text += f", claimed at most {comparison['at_most']:g}"
    if comparison.get("at_least") is not None:
        text += f", claimed at least {comparison['at_least']:g}"
    if comparison.get("between") is not None:
        text += ", claimed {:g} to {:g}".format(*comparison["between"])
    return text


def figure_text(value: float) -> str:
    """Return a ratio or a share with two decimals, and with more where it would look like 0 or 1 and is neither.

    Verdicts turn there: `0.01 [0.00, 0.02]` would be a share that may be 0.
    """
    for decimals in range(2, _MOST_DECIMALS + 1):
        text = f"{value:.{decimals}f}"
        if float(text) not in (0.0, 1.0) or float(text) == value:
            return text
    return f"{value:.2f}"


def estimate_text(verdict: Mapping[str, Any]) -> str:
    """Return the ratio or share of a verdict, which has one, with its interval if there is one: `0.43 [0.31, 0.60]`."""
    text = figure_text(verdict["ratio"])
    if verdict["interval"] is not None:
        text += f" [{', '.join(map(figure_text, verdict['interval']))}]"
    return text


def verdict_text(verdict: Mapping[str, Any]) -> str:
    """Return a verdict as a line such as `0.43 [0.31, 0.60] seen`, or why there is none."""
    if verdict["ratio"] is None:
        return f"- ({verdict['why']})"
    return f"{estimate_text(verdict)} {verdict['verdict']}" + (
        f" ({verdict['why']})" if verdict["why"] else ""
    )
