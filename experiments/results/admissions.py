"""What became of admission in a run: flows that asked and that did not, how soon they were answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from experiments.results.outcome import FlowOutcome
from plain.reading import build
from protocol.latency import Latencies
from protocol.sent_again import Resent, by_cause

_COUNTED: Final = ("flows_scheduled", "flows_unscheduled_by_fail_safe")
SETTLE_S: Final = 1.2
"""Agents report their counters every second."""
RESENT_S: Final = 3.0
"""Within this much more time they report what was retransmitted, and why."""
_AGAIN: Final = "bytes_sent_again"


@dataclass(frozen=True, slots=True)
class Admissions:
    """Of one run: flows by what was decided of them, latencies from request to decision (microseconds).

    resent: what TCP retransmitted, as agents saw it (docs/capton.md), of the newest 1000 such episodes of all runs;
    times ``at_s`` are seconds since the run's start.
    """

    scheduled: int
    unscheduled_by_fail_safe: int
    decisions: int
    median_us: float | None
    p99_us: float | None
    resent: list[dict[str, Any]] = field(default_factory=list)


class AdmissionCount:
    """From the agents' counters before a run. agents, resent: as in the API (``/agents``, ``/capton/resent``)."""

    def __init__(self, agents: Sequence[Mapping[str, Any]], resent: Mapping[str, Any]) -> None:
        self._before = _totals(agents)
        self._known = int(resent["episodes"])
        self._unexplained = _again(agents) - int(resent["bytes"])

    def explained(self, agents: Sequence[Mapping[str, Any]], resent: Mapping[str, Any]) -> bool:
        """Return whether agents have reported the reason of all that they have counted since."""
        return _again(agents) - int(resent["bytes"]) <= self._unexplained

    def until(
        self, agents: Sequence[Mapping[str, Any]], resent: Mapping[str, Any], begun_s_ago: float
    ) -> Admissions:
        """Return what was counted since this was made, of a run that began *begun_s_ago* seconds ago."""
        counts, latencies = _totals(agents)
        scheduled, unscheduled = (now - then for now, then in zip(counts, self._before[0], strict=True))
        new = latencies.less(self._before[1])
        episodes = [
            {key: value for key, value in episode.items() if key not in ("number", "s_ago")}
            | {"at_s": round(begun_s_ago - episode["s_ago"], 3)}
            for episode in reversed(resent["newest"])
            if episode["number"] > self._known
        ]
        return Admissions(
            scheduled, unscheduled, len(new), new.quantile_us(0.5), new.quantile_us(0.99), episodes
        )


def _again(agents: Iterable[Mapping[str, Any]]) -> int:
    return sum(int(agent["counters"].get(_AGAIN, 0)) for agent in agents)


def _totals(agents: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, ...], Latencies]:
    counters = [agent["counters"] for agent in agents]
    counts = tuple(int(sum(counts.get(name, 0) for counts in counters)) for name in _COUNTED)
    return counts, Latencies.from_counters(counters)


def admission_entry(runs: Sequence[Admissions], flows: int) -> dict[str, Any] | None:
    """Return a scheme's runs together, plain; None for a scheme without admission. Quantiles: the highest of a run.

    flows: how many were sent in these runs.
    """
    if not runs:
        return None
    scheduled = sum(run.scheduled for run in runs)
    return {
        "flows": flows,
        "scheduled_flows": scheduled,
        "unscheduled_share": max(0.0, 1 - scheduled / flows) if flows else None,
        "unscheduled_by_fail_safe": sum(run.unscheduled_by_fail_safe for run in runs),
        "decision_median_ms": _most(run.median_us for run in runs),
        "decision_p99_ms": _most(run.p99_us for run in runs),
        "resent_by_cause": resent_by_cause(episode for run in runs for episode in run.resent),
        "runs": [asdict(run) for run in runs],
    }


def resent_by_cause(episodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return bytes by state of the flow, trigger and verdict (`protocol.sent_again`), the most first."""
    resent = [
        build(Resent, {key: value for key, value in episode.items() if key != "host"}, "resent")
        for episode in episodes
    ]
    return [
        {"state": state, "trigger": trigger, "verdict": verdict, "bytes": count}
        for (state, trigger, verdict), count in by_cause(resent).items()
    ]


def _most(times_us: Iterable[float | None]) -> float | None:
    return max((round(time_us / 1e3, 3) for time_us in times_us if time_us is not None), default=None)


def retransmitted_bytes(runs: Iterable[Sequence[FlowOutcome]]) -> int:
    """Return the payload that senders' kernels have retransmitted, of all flows."""
    return sum(flow.bytes_retransmitted for flows in runs for flow in flows)


def admission_note(label: str, entry: Mapping[str, Any], again: int) -> str:
    """Return one line below the tables."""
    share, median, p99 = entry["unscheduled_share"], entry["decision_median_ms"], entry["decision_p99_ms"]
    text = f"{label}: {again} B retransmitted"
    causes = entry.get("resent_by_cause", [])
    if causes:
        shares = [
            f"{cause['bytes']} B {cause['state']}, {cause['trigger']}, {cause['verdict']}" for cause in causes
        ]
        text += f" (by the agents: {'; '.join(shares)})"
    if share is not None:
        text += f"; {share * 100:.1f} % of {entry['flows']} flows left unscheduled"
    if median is not None:
        text += f"; requests decided within {median:.2f} ms (median), {p99:.2f} ms (p99)"
    late = entry["unscheduled_by_fail_safe"]
    return f"{text}; {late} flows went on because the controller was late." if late else f"{text}."
