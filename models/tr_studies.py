"""TR's analysis as figures and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from models import tr, trials
from models.study import Axis, Panel, Study, curve

SHORT_PACKETS: Final = 71
"""100 kB."""
LONG_PACKETS: Final = 1000
SEED: Final = 1
PACKETS: Final = 20_000
"""Simulated for each point."""
ROUNDS: Final = 2000


def bad_paths() -> Study:
    """Return the completion time against the number of bad paths."""
    base = tr.Asymmetry()
    fabrics = [replace(base, bad_paths=bad) for bad in range(0, 13)]
    return _times(
        "TR: completion time beside bad paths",
        Axis(f"bad paths n_b of {base.paths}"),
        [float(fabric.bad_paths) for fabric in fabrics],
        fabrics=fabrics,
        where=f"d_b = {base.bad_delay / base.good_delay:g} d_g",
    )


def asymmetry() -> Study:
    """Return the completion time against how much slower bad paths are."""
    base = tr.Asymmetry()
    ratios = [float(ratio) for ratio in np.linspace(1.0, 3.5, 11)]
    fabrics = [replace(base, bad_delay=ratio * base.good_delay) for ratio in ratios]
    return _times(
        "TR: completion time on asymmetric fabrics",
        Axis("d_b / d_g"),
        ratios,
        fabrics=fabrics,
        where=f"{base.bad_paths} of {base.paths} paths are bad",
    )


def _times(title: str, axis: Axis, xs: list[float], *, fabrics: list[tr.Asymmetry], where: str) -> Study:
    rps = [tr.rps_time(fabric, SHORT_PACKETS) for fabric in fabrics]
    tr_times = [tr.tr_time(fabric, SHORT_PACKETS) for fabric in fabrics]
    rps_rate = [LONG_PACKETS / tr.rps_time(fabric, LONG_PACKETS) for fabric in fabrics]
    kept_rate = [LONG_PACKETS / tr.tr_time(fabric, LONG_PACKETS) for fabric in fabrics]
    rng = np.random.default_rng(SEED)
    delays = [trials.least_time_delays(fabric, PACKETS, rng)[0] for fabric in fabrics]
    rounds = [tr.rps_round(fabric, tr.INITIAL_WINDOW) for fabric in fabrics]
    base = fabrics[0]
    return Study(
        title,
        (
            Panel(
                f"a flow of {SHORT_PACKETS} packets",
                axis,
                Axis("completion time", "packet times"),
                tuple(xs),
                (curve("rps", rps, "rps"), curve("tr", tr_times, "tr")),
            ),
            Panel(
                f"a flow of {LONG_PACKETS} packets",
                axis,
                Axis("throughput", "packets per packet time"),
                tuple(xs),
                (curve("rps", rps_rate, "rps"), curve("tr", kept_rate, "tr")),
            ),
            Panel(
                "a round, r = p + q",
                axis,
                Axis("time", "packet times"),
                tuple(xs),
                (
                    curve(f"rps, {tr.INITIAL_WINDOW} packets", rounds, "rps"),
                    curve("tr", [tr.tr_round(fabric) for fabric in fabrics], "tr"),
                    curve("tr", delays, trials=True),
                ),
            ),
        ),
        (
            axis.what.removesuffix(f" of {base.paths}"),
            "FCT rps (pt)",
            "FCT tr (pt)",
            "w rps (pkt)",
            "w tr (pkt)",
            "long rps (pkt/pt)",
            "long tr (pkt/pt)",
        ),
        tuple(
            (
                round(x, 3),
                round(rps[i], 1),
                round(tr_times[i], 1),
                round(tr.rps_window(fabric, SHORT_PACKETS), 2),
                round(tr.tr_window(fabric, SHORT_PACKETS), 2),
                round(rps_rate[i], 3),
                round(kept_rate[i], 3),
            )
            for i, (x, fabric) in enumerate(zip(xs, fabrics, strict=True))
        ),
        (
            f"FCT, w: of a flow of {SHORT_PACKETS} packets; long: throughput of {LONG_PACKETS}; pt: packet time on "
            "a fabric link; pkt: packets.",
            f"{where}, load {base.load:g}, H = {base.fast_retransmit}, d_g = {base.good_delay:g} pt. "
            f"Points: packets by least time, simulated ({PACKETS} each).",
            "TCP is reno: each spurious fast retransmission halves the window. RACK, Linux's default, forgives most.",
        ),
    )


def windows() -> Study:
    """Return how often reordering halves a window under RPS, and what window that leaves, by the threshold H."""
    base = tr.Asymmetry()
    sizes = tuple(range(2, 41, 2))
    thresholds = (2, 3, 6, 12)
    rng = np.random.default_rng(SEED)
    halving = []
    for threshold in thresholds:
        fabric = replace(base, fast_retransmit=threshold)
        label = f"H = {threshold}"
        halving.append(curve(label, [tr.halving_probability(fabric, size) for size in sizes]))
        points = [trials.halvings(fabric, size, ROUNDS, rng) if size % 4 == 0 else None for size in sizes]
        halving.append(curve(label, points, trials=True))
    shares = range(0, 13)
    rps_windows = {
        threshold: [
            tr.rps_window(replace(base, fast_retransmit=threshold, bad_paths=bad), LONG_PACKETS)
            for bad in shares
        ]
        for threshold in thresholds
    }
    tr_window = tr.tr_window(base, LONG_PACKETS)
    return Study(
        "TR: what reordering does to TCP's window under RPS",
        (
            Panel(
                f"P(a round halves the window), {base.bad_paths} of {base.paths} bad",
                Axis("window", "packets"),
                Axis("probability"),
                tuple(float(size) for size in sizes),
                tuple(halving),
            ),
            Panel(
                f"packets per round, flow of {LONG_PACKETS}",
                Axis(f"bad paths n_b of {base.paths}"),
                Axis("window w", "packets"),
                tuple(float(bad) for bad in shares),
                (
                    *(curve(f"H = {threshold}", ys) for threshold, ys in rps_windows.items()),
                    curve("tr", [tr_window] * len(shares), "tr"),
                ),
            ),
        ),
        (
            "bad paths",
            *(f"w at H = {threshold} (pkt)" for threshold in thresholds),
            "w, tr (pkt)",
        ),
        tuple(
            (bad, *(round(ys[i], 2) for ys in rps_windows.values()), round(tr_window, 2))
            for i, bad in enumerate(shares)
        ),
        (
            f"w: packets per round of a flow of {LONG_PACKETS}; pkt: packets.",
            f"Points: a TCP receiver, simulated ({ROUNDS} rounds each).",
        ),
    )
