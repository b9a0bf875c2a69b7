"""CAPS's analysis as figures and tables."""

from __future__ import annotations

from typing import Final

import numpy as np

from host_agent.coding.redundancy import decode_probability, paper_rule, repairs_for
from models import caps, trials, unit_size
from models.study import Axis, Curve, Mark, Panel, Study, curve
from protocol.policy import CodeName, CodingPolicy

FLOW_PACKETS: Final = 42
"""Packets of a short flow of 60 kB."""
SEED: Final = 1
FLOWS: Final = 1500
"""Simulated for each point."""
TARGET: Final = CodingPolicy(max_r=64)
PAPER: Final = CodingPolicy(max_r=64, redundancy="paper")


def unit_sizes() -> Study:
    """Completion time against unit size, and where it is least: ours, the printed optima, the closest reading."""
    ks = tuple(range(4, 61))
    ours, closest = unit_size.READINGS[0], unit_size.READINGS[-1]
    panels = []
    for reading, title in ((ours, "as host agents compute it"), (closest, "the closest reading")):
        curves, marks = [], []
        for p, printed in unit_size.PRINTED.items():
            costs = np.array([reading.cost(k, p) for k in ks])
            costs /= costs.min()
            label = f"pB = {p:.2f}"
            curves.append(curve(label, costs))
            best = min(range(len(ks)), key=lambda i: (costs[i], -ks[i]))
            marks.append(Mark(ks[best], float(costs[best]), label))
            marks.append(Mark(printed, float(costs[ks.index(printed)]), label, str(printed)))
        panels.append(
            Panel(
                title,
                Axis("unit size k", "packets"),
                Axis("cost, relative to its least"),
                ks,
                tuple(curves),
                tuple(marks),
            )
        )
    rows = tuple(
        (
            p,
            printed,
            *(reading.optimum(p) for reading in unit_size.READINGS),
            round(caps.spare_repairs(printed, p), 3),
            round(1.0 - most_spare(p), 3),
        )
        for p, printed in unit_size.PRINTED.items()
    )
    return Study(
        "CAPS: the unit size with the least completion time (Eq. 4)",
        tuple(panels),
        (
            "pB",
            "printed k (packets)",
            *(f"{reading.name} k (packets)" for reading in unit_size.READINGS),
            "spare repairs at the printed k (packets)",
            "most spare possible (packets)",
        ),
        rows,
        (
            "Rings: least cost. Words: the paper's printed optimum.",
            *(f"{reading.name}: {reading.formula}" for reading in unit_size.READINGS),
            "P: all k rebuilt from k + r packets, r = ceil(k / (1 - pB) - k), perfect code. See docs/models.md.",
        ),
    )


def most_spare(p: float) -> float:
    """1 less the most that rounding r up can add, over all k; the least positive part of k / (1 - pB)."""
    return 1.0 - max(caps.spare_repairs(k, p) for k in range(1, unit_size.LARGEST + 1))


def decoding() -> Study:
    """Decode probability by rule and code: what the mean of blocked packets leaves out."""
    ks = tuple(range(1, 65))
    curves = [
        curve(f"rlc, paper's r, pB = {p:.2f}", [decode_probability("rlc", k, paper_rule(k, p), p) for k in ks])
        for p in (0.1, 0.2, 0.35)
    ]
    codes: tuple[CodeName, ...] = ("rlc", "ldpc", "xor")
    by_code = Panel(
        "paper's r, pB = 0.2",
        Axis("unit size k", "packets"),
        Axis("P(decode)"),
        ks,
        tuple(
            curve(code, [decode_probability(code, k, paper_rule(k, 0.2), 0.2) for k in ks]) for code in codes
        ),
    )
    ps = np.linspace(0.01, 0.5, 50)
    redundancy = Panel(
        "repairs of a unit of 32",
        Axis("blocking probability pB"),
        Axis("repairs r", "packets"),
        tuple(float(p) for p in ps),
        (
            curve("paper's rule", [paper_rule(32, p) for p in ps]),
            *(
                curve(f"P(decode) >= 0.95, {code}", [repairs_for(_target(code), p, 32) for p in ps])
                for code in ("rlc", "ldpc")
            ),
        ),
    )
    rows = tuple(
        (
            k,
            p,
            paper_rule(k, p),
            *(round(decode_probability(code, k, paper_rule(k, p), p), 3) for code in codes),
            repairs_for(_target("rlc"), p, k),
            round(decode_probability("rlc", k, repairs_for(_target("rlc"), p, k), p), 3),
        )
        for k in (10, 32, 64)
        for p in (0.1, 0.2, 0.35)
    )
    return Study(
        "CAPS: what a unit's repairs achieve",
        (
            Panel(
                "the rule's saw-tooth",
                Axis("unit size k", "packets"),
                Axis("P(decode)"),
                ks,
                tuple(curves),
            ),
            by_code,
            redundancy,
        ),
        (
            "k (packets)",
            "pB",
            "paper's r (packets)",
            "P(decode) rlc",
            "P(decode) ldpc",
            "P(decode) xor",
            "r for 0.95, rlc (packets)",
            "its P(decode)",
        ),
        rows,
        ("r = ceil(k / (1 - pB) - k) lets k packets arrive on average: every second large unit fails.",),
    )


def _target(code: CodeName) -> CodingPolicy:
    return CodingPolicy(code=code, max_r=64)


def long_flows() -> Study:
    """Completion time of short flows against the number of long ones, by scheme."""
    fabric = caps.Fabric()
    return _completion(
        "CAPS: short flows beside m long ones",
        Axis("long flows m"),
        [(m, fabric) for m in (0, 1, 2, 3, 4, 6, 8, 12, 16)],
        by_paths=False,
    )


def paths() -> Study:
    """Completion time of short flows against the number of paths, by scheme."""
    return _completion(
        "CAPS: short flows over n paths beside 4 long ones",
        Axis("paths n"),
        [(4, caps.Fabric(paths=n)) for n in (4, 6, 8, 12, 16, 20, 28, 40)],
        by_paths=True,
    )


def _completion(title: str, axis: Axis, points: list[tuple[int, caps.Fabric]], by_paths: bool) -> Study:
    packets = FLOW_PACKETS
    rng = np.random.default_rng(SEED)
    xs = tuple(float(fabric.paths if by_paths else m) for m, fabric in points)
    lines: list[Curve] = [
        curve("ecmp", [caps.hashed_time(f, m, packets) for m, f in points], "ecmp"),
        curve("rps", [caps.all_sprayed_time(f, m, packets) for m, f in points], "rps"),
        curve("caps without code", [caps.sprayed_time(f, m, packets) for m, f in points], "caps-spray"),
        curve("caps, paper's r", [caps.coded_time(f, m, packets, PAPER) for m, f in points], "caps-paper"),
        curve("caps, P(decode) >= 0.95", [caps.coded_time(f, m, packets, TARGET) for m, f in points], "caps"),
    ]
    simulated = (
        ("ecmp", [trials.hashed_flow_times(f, m, packets, FLOWS, rng) for m, f in points]),
        ("caps without code", [_simulated(f, m, rng, None) for m, f in points]),
        ("caps, paper's r", [_simulated(f, m, rng, PAPER) for m, f in points]),
        ("caps, P(decode) >= 0.95", [_simulated(f, m, rng, TARGET) for m, f in points]),
    )
    dots = tuple(curve(label, ys, trials=True) for label, ys in simulated)
    blocking = Panel(
        "paths that a long flow holds",
        axis,
        Axis("blocking probability pB"),
        xs,
        (curve("1 - (1 - 1/n)^m", [caps.blocking_probability(f.paths, m) for m, f in points]),),
    )
    unit = "packet times"
    time = Panel("mean completion time", axis, Axis("time", unit), xs, (*lines, *dots))
    rows = tuple(
        (
            int(x),
            round(caps.blocking_probability(f.paths, m), 3),
            round(m * f.access_ratio / f.paths, 2),
            *(round(line.ys[i], 1) for line in lines),
        )
        for i, (x, (m, f)) in enumerate(zip(xs, points, strict=True))
    )
    fabric = points[0][1]
    return Study(
        title,
        (time, blocking),
        (axis.what, "pB", "long flows' load if sprayed", *(f"{line.label} ({unit})" for line in lines)),
        rows,
        (
            f"Points: simulation, {FLOWS} flows each. A flow of {packets} packets, RTT {fabric.base_rtt:g} packet times, "
            f"long flows fill buffers of {fabric.buffer_packets} packets, hosts send at {fabric.access_ratio:g} times a "
            "link's rate.",
            "rps: from a load of 1 on, long flows fill every path; what reordering costs TCP is not counted.",
        ),
    )


def _simulated(
    fabric: caps.Fabric, long_flows: int, rng: np.random.Generator, coding: CodingPolicy | None
) -> float:
    return trials.short_flow_times(fabric, long_flows, FLOW_PACKETS, FLOWS, rng, coding)
