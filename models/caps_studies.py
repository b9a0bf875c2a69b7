"""CAPS's analysis as figures and tables."""

from __future__ import annotations

from typing import Final

import numpy as np

from host_agent.coding.redundancy import decode_probability, paper_rule, repairs_for
from models import caps, trials, unit_size
from models.study import Axis, Mark, Panel, Study, curve
from protocol.policy import CodeName, CodingPolicy

FLOW_PACKETS: Final = 42
"""Packets of a short flow of 60 kB."""
SEED: Final = 1
FLOWS: Final = 1500
"""Simulated for each point."""
TARGET: Final = CodingPolicy(max_overhead=8.0, max_r=64)
PAPER: Final = CodingPolicy(max_overhead=8.0, max_r=64, redundancy="paper")


def unit_readings() -> Study:
    """Return the cost against unit size, and where it is least, for readings of Eq. 4 and for ours."""
    ks = tuple(range(8, unit_size.LARGEST + 1))
    drawn = [
        reading
        for reading in unit_size.READINGS
        if reading.name in ("printed", "fitted", "agent", "slow start")
    ]
    panels = []
    for p, printed in unit_size.PRINTED.items():
        curves, marks = [], []
        for reading in drawn:
            costs = [reading.cost(k, p) for k in ks]
            least = min(costs)
            best = reading.optimum(p)
            curves.append(curve(reading.name, [cost / least for cost in costs]))
            marks.append(Mark(best, reading.cost(best, p) / least, reading.name))
        panels.append(
            Panel(
                f"pB = {p:.2f}",
                Axis("unit size k", "packets"),
                Axis("cost / its least"),
                tuple(float(k) for k in ks),
                tuple(curves),
                (*marks, Mark(printed, 1.0, curves[-1].label, f"printed: {printed}")),
            )
        )
    optima: list[tuple[int | str, ...]] = [("the paper prints", *unit_size.PRINTED.values())]
    for rule in unit_size.READINGS:
        optima.append((rule.name, *(rule.optimum(p) for p in unit_size.PRINTED)))
    return Study(
        "CAPS: the unit size with the least cost, by readings of Eq. 4",
        tuple(panels),
        ("reading", *(f"pB {p:g} (pkt)" for p in unit_size.PRINTED)),
        tuple(optima),
        (
            "Rings: least cost; dashed: printed by the paper. Table: k with the least cost; pkt: packets.",
            *(f"{reading.name}: {reading.formula}" for reading in unit_size.READINGS),
            "P: all k rebuilt from k + r packets, r = ceil(k / (1 - pB) - k), perfect code. See docs/models.md.",
        ),
    )


def decoding() -> Study:
    """Return the decode probability by rule and code: what the mean of blocked packets leaves out."""
    ks = tuple(range(1, 65))
    curves = [
        curve(f"pB = {p:.2f}", [decode_probability("rlc", k, paper_rule(k, p), p) for k in ks])
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
                "rlc, paper's r",
                Axis("unit size k", "packets"),
                Axis("P(decode)"),
                ks,
                tuple(curves),
            ),
            by_code,
            redundancy,
        ),
        (
            "k (pkt)",
            "pB",
            "paper's r (pkt)",
            "P rlc",
            "P ldpc",
            "P xor",
            "r for 0.95, rlc (pkt)",
            "its P",
        ),
        rows,
        (
            "P: probability that the unit is decoded; pkt: packets.",
            "The paper's r = ceil(k / (1 - pB) - k) lets k packets arrive on average: large units fail 4 times of 10."
            " 0.5 is where it leads as k grows.",
        ),
    )


def _target(code: CodeName) -> CodingPolicy:
    return CodingPolicy(max_overhead=8.0, code=code, max_r=64)


def long_flows() -> Study:
    """Return the completion time of short flows against the number of long ones, by scheme."""
    fabric = caps.Fabric()
    return _completion(
        "CAPS: short flows beside m long ones",
        Axis("long flows m"),
        [(m, fabric) for m in (0, 1, 2, 3, 4, 6, 8, 12, 16)],
        by_paths=False,
    )


def paths() -> Study:
    """Return the completion time of short flows against the number of paths, by scheme."""
    return _completion(
        "CAPS: short flows over n paths beside 4 long ones",
        Axis("paths n"),
        [(4, caps.Fabric(paths=n)) for n in (4, 6, 8, 12, 16, 20, 24, 28, 32, 40)],
        by_paths=True,
    )


def _completion(title: str, axis: Axis, points: list[tuple[int, caps.Fabric]], by_paths: bool) -> Study:
    packets = FLOW_PACKETS
    rng = np.random.default_rng(SEED)
    xs = tuple(float(fabric.paths if by_paths else m) for m, fabric in points)
    times = {
        ("ecmp", "ecmp"): [caps.hashed_time(f, m, packets) for m, f in points],
        ("rps", "rps"): [caps.all_sprayed_time(f, m, packets) for m, f in points],
        ("caps, no code", "caps-spray"): [caps.sprayed_time(f, m, packets) for m, f in points],
        ("caps, paper's r", "caps-paper"): [caps.coded_time(f, m, packets, PAPER) for m, f in points],
        ("caps, P >= 0.95", "caps"): [caps.coded_time(f, m, packets, TARGET) for m, f in points],
    }
    lines = [curve(label, ys, scheme) for (label, scheme), ys in times.items()]
    simulated = (
        ("ecmp", [trials.hashed_flow_times(f, m, packets, flows=FLOWS, rng=rng) for m, f in points]),
        ("caps, no code", [_simulated(f, m, rng, None) for m, f in points]),
        ("caps, paper's r", [_simulated(f, m, rng, PAPER) for m, f in points]),
        ("caps, P >= 0.95", [_simulated(f, m, rng, TARGET) for m, f in points]),
    )
    dots = tuple(curve(label, ys, trials=True) for label, ys in simulated)
    blocking = Panel(
        "paths that a long flow holds",
        axis,
        Axis("blocking probability pB"),
        xs,
        (curve("1 - (1 - 1/n)^m", [caps.blocking_probability(f.paths, m) for m, f in points]),),
    )
    time = Panel("mean completion time", axis, Axis("time", "packet times"), xs, (*lines, *dots))
    rows = tuple(
        (
            int(x),
            round(caps.blocking_probability(f.paths, m), 3),
            round(m * f.access_ratio / f.paths, 2),
            *(round(ys[i], 1) for ys in times.values()),
        )
        for i, (x, (m, f)) in enumerate(zip(xs, points, strict=True))
    )
    fabric = points[0][1]
    return Study(
        title,
        (time, blocking),
        (axis.what, "pB", "load if sprayed", *(f"{line.label} (pt)" for line in lines)),
        rows,
        (
            f"Points: simulation, {FLOWS} flows each. pt: packet time on a fabric link. A flow has {packets} packets; "
            f"RTT {fabric.base_rtt:g} pt; long flows fill buffers of {fabric.buffer_packets} packets; hosts send at "
            f"{fabric.access_ratio:g} times a fabric link's rate.",
            "rps: from a load of 1 on, long flows fill every path; what reordering costs TCP is not counted.",
        ),
    )


def _simulated(
    fabric: caps.Fabric, long_flows: int, rng: np.random.Generator, coding: CodingPolicy | None
) -> float:
    return trials.short_flow_times(fabric, long_flows, FLOW_PACKETS, flows=FLOWS, rng=rng, coding=coding)
