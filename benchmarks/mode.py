"""How fast a leaf changes its mode, measured in the data plane of real switches (CAPS, section IV-C).

A steady stream of long-class datagrams with fresh entropy crosses a leaf: sprayed over all uplinks while the leaf is
OFF, on one while it is ON. Single short-class datagrams, far enough apart that the leaf is OFF before each, turn it ON.
The kernel's time stamps at the leaf's ports say when the short datagram arrived, when the last long one was still
sprayed (OFF->ON is effective) and when the first one was sprayed again (ON->OFF is effective).
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, Goal, document, percentile
from benchmarks.unused_workload import UNUSED_WORKLOAD
from controller.modes.monitor import LONGEST_HOLD, ModeMonitor
from controller.schemes import loader
from experiments.run.deployment import ROOT, Deployment
from experiments.spec.spec import Spec, spec_from_dict
from protocol.underlay import TrafficClass

ON_MEDIAN_GOAL_MS: Final = Goal(5.0, cores=2)
ON_P99_GOAL_MS: Final = (Goal(15.0, cores=4), Goal(20.0, cores=2))
OFF_OVER_T_GOAL_MS: Final = (Goal(15.0, cores=4), Goal(20.0, cores=2))
CYCLES: Final = 200
LINK_MBPS: Final = 3.0
SPINES: Final = 8
LONG_PER_SECOND: Final = 2000.0
SEEN_ON: Final = 0.8
"""Part of T after which a long datagram on another uplink means OFF again, not yet ON."""
SURE: Final = 2
"""A sprayed datagram may take the one uplink by chance: so many more after it, and with 8 uplinks it is 1 in 512."""
STEADY_NOTE: Final = (
    "steady: no gap in the stream as it came to the leaf, so the moment of the change is known; below 50 % the machine "
    "was too busy to send it evenly, and times are upper bounds (at most)"
)
BLIND_MS: Final = 3.0
"""A gap in the long stream, as it arrives at the leaf, that is too long to see a change in."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One datagram at one port of the leaf: nanoseconds of the kernel's clock, port, direction, class."""

    at: int
    port: str
    leaves: bool
    kind: TrafficClass


@dataclass(frozen=True, slots=True)
class Cycle:
    """One short datagram: how long after it the leaf was ON, and OFF again, in milliseconds."""

    on_ms: float
    off_ms: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a leaf's passages say: cycles that count, of how many tried, and in how many the stream was steady.

    bound: it was steady in less than half of them, so that all count, and each time is an upper bound.
    """

    cycles: tuple[Cycle, ...]
    tried: int
    steady: int
    bound: bool

    @property
    def steady_percent(self) -> float:
        return 100 * self.steady / self.tried


def run(cycles: int = CYCLES) -> dict[str, Any]:
    """Return all figures in milliseconds; ON->OFF against T + 15 ms. Takes about 0.2 s a cycle."""
    spec = mode_spec(SPINES)
    rule = loader.load("caps").mode
    assert rule is not None
    t_ms = ModeMonitor(rule, spec.packet_time_s).sampling_time_s * 1e3
    with Deployment(spec) as lab:
        _, cursor = lab.client.modes()
        passages = traffic(lab, cycles, t_ms)
        traces = mode_traces(lab, cursor)
    return document(_figures(evaluate(passages, t_ms), traces, t_ms), _notes(t_ms, cycles))


def mode_spec(spines: int) -> Spec:
    """Return two leaves, a host each, and nothing that would send by itself."""
    return spec_from_dict(
        {
            "name": "bench-mode",
            "title": f"two leaves, {spines} spines",
            "fabric": {
                "leaves": 2,
                "spines": spines,
                "hosts_per_leaf": 1,
                "link": {"rate_mbps": LINK_MBPS},
                "access": {},
            },
            "schemes": ["caps"],
            "workload": UNUSED_WORKLOAD,
        }
    )


def evaluate(passages: Sequence[Passage], t_ms: float) -> Evaluation:
    """Return the cycles in what a leaf saw; the last short datagram only ends the last cycle.

    A cycle during which the long stream itself paused before it came to the leaf (the sender was kept waiting for a
    processor) shows a change later than it was, and is left out. Where that is so for more than half of them, to leave
    them out would show the moments with an idle processor only: then all count, as upper bounds, but those that show
    no change at all. Raises BenchmarkError where none is left.
    """
    starts = [passage.at for passage in passages if passage.kind is TrafficClass.SHORT and not passage.leaves]
    arrived = sorted(
        passage.at for passage in passages if passage.kind is TrafficClass.LONG and not passage.leaves
    )
    departed = sorted(
        (passage.at, passage.port)
        for passage in passages
        if passage.kind is TrafficClass.LONG and passage.leaves
    )
    steady, all_cycles = [], []
    for start, end in pairwise(starts):
        inside = [((time_us - start) / 1e6, port) for time_us, port in departed if start <= time_us < end]
        held = Counter(port for ms, port in inside if 0.5 * t_ms <= ms < SEEN_ON * t_ms)
        uplink = max(held, key=held.__getitem__, default="")
        others = [ms for ms, port in inside if port != uplink]
        if not held:  # nothing of the stream came while the leaf must have been ON
            continue
        on_ms = max((ms for ms in others if ms < SEEN_ON * t_ms), default=0.0)
        cycle = Cycle(
            on_ms=on_ms,
            off_ms=min((ms for ms in others if ms >= SEEN_ON * t_ms), default=(end - start) / 1e6),
        )
        until = start + cycle.off_ms * 1e6
        steps = [start, *(time_us for time_us in arrived if start <= time_us < until), until]
        if max(later - earlier for earlier, later in pairwise(steps)) <= BLIND_MS * 1e6:
            steady.append(cycle)
        after = [ms for ms, _ in inside if on_ms < ms <= cycle.off_ms]
        all_cycles.append(Cycle(after[SURE] if len(after) > SURE else cycle.off_ms, cycle.off_ms))
    tried = len(starts) - 1
    bound = 2 * len(steady) < tried
    cycles = tuple(all_cycles if bound else steady)
    if not cycles:
        raise BenchmarkError(
            f"in none of {tried} cycles was the leaf seen to be ON: did the long stream arrive?"
        )
    return Evaluation(cycles, tried, len(steady), bound)


def _figures(evaluation: Evaluation, traces: Sequence[dict[str, Any]], t_ms: float) -> dict[str, Figure]:
    on = [cycle.on_ms for cycle in evaluation.cycles]
    off = [cycle.off_ms for cycle in evaluation.cycles]
    off_goal = tuple(Goal(t_ms + goal.value, goal.cores) for goal in OFF_OVER_T_GOAL_MS)
    figures = {
        "off_to_on_median": Figure(statistics.median(on), "ms", ON_MEDIAN_GOAL_MS, bound=evaluation.bound),
        "off_to_on_p99": Figure(percentile(on, 99), "ms", ON_P99_GOAL_MS, bound=evaluation.bound),
        "off_to_on_max": Figure(max(on), "ms", bound=evaluation.bound),
        "on_to_off_median": Figure(statistics.median(off), "ms", bound=evaluation.bound),
        "on_to_off_p99": Figure(percentile(off, 99), "ms", off_goal, bound=evaluation.bound),
        "on_to_off_max": Figure(max(off), "ms", bound=evaluation.bound),
        "sampling_time": Figure(t_ms, "ms"),
        "cycles": Figure(len(evaluation.cycles), "changes each way"),
        "steady_cycles": Figure(evaluation.steady_percent, "% of those tried", better="higher"),
    }
    for mode in ("on", "off"):
        confirmed = [
            (trace["confirmed"] - trace["noticed"]) * 1e3 for trace in traces if trace["mode"] == mode
        ]
        if confirmed:
            figures[f"{mode}_noticed_to_confirmed_median"] = Figure(statistics.median(confirmed), "ms")
    return figures


def _notes(t_ms: float, cycles: int) -> tuple[str, ...]:
    return (
        f"two leaves, {SPINES} spines, links of {LINK_MBPS:g} Mbit/s, T = {t_ms:g} ms, {cycles} cycles tried",
        f"the stream has a datagram every {1e3 / LONG_PER_SECOND:g} ms: no time here is known better than that",
        STEADY_NOTE,
        "noticed_to_confirmed: in the controller, from reading the signal to reading the switch's barrier reply",
    )


def traffic(lab: Deployment, cycles: int, t_ms: float) -> list[Passage]:
    """Run the cycles, return what leaf l1 saw."""
    program = [sys.executable, "-m", "benchmarks.mode_traffic"]
    leaf = str(lab.lab.switch("l1").pid)
    source, destination = (place.underlay for place in lab.spec.fabric.hosts())
    observer = start_process(lab, None, ["nsenter", "-t", leaf, "-n", *program, "observe"])
    sender = start_process(
        lab, "h1", [*program, "send", "h1-eth0", source, destination, str(LONG_PER_SECOND)]
    )
    gaps = random.Random(1)
    time.sleep(1.0)
    for _ in range(cycles + 1):
        print("short", file=sender.stdin, flush=True)
        # Far enough apart that the leaf does not hold its mode longer than T, and out of step with every timer.
        time.sleep((LONGEST_HOLD * t_ms * gaps.uniform(1.3, 1.9)) / 1e3)
    sender.communicate(timeout=60)
    seen, _ = observer.communicate(timeout=60)
    return [
        Passage(time_us, port, leaves, TrafficClass(kind)) for time_us, port, leaves, kind in json.loads(seen)
    ]


def start_process(lab: Deployment, host: str | None, argv: Sequence[str]) -> subprocess.Popen[str]:
    """Return a program of `benchmarks.mode_traffic` that has said that it works."""
    process: subprocess.Popen[str] = lab.lab.popen(
        host, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    if not process.stdout.readline():
        raise BenchmarkError(f"`{' '.join(argv)}` did not start")
    return process


def mode_traces(lab: Deployment, cursor: int) -> list[dict[str, Any]]:
    """Return the controller's own traces of the changes after *cursor*."""
    traces: list[dict[str, Any]] = []
    while True:
        events, cursor = lab.client.events(cursor)
        if not events:
            return traces
        traces += [event for event in events if event["kind"] == "mode-switched"]


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
