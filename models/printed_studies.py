"""The papers' figures of their equations: CAPS Fig. 6, 8, 9, 10, HTPC Fig. 5, TR Fig. 6; formulas: `models.printed`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from host_agent.coding.redundancy import paper_rule
from models.printed import caps, htpc, tr
from models.study import Axis, Panel, Study, curve
from protocol.policy import Weight

PATHS: Final = 40
UNIT: Final = 10
UNIT_PB: Final = {0.20: 29, 0.25: 31, 0.30: 33, 0.35: 40}
"""pB of Fig. 9 (a), and the unit sizes that the paper prints for them."""
SHARES: Final = (0.1, 0.2, 0.3, 0.4)
RULE: Final = Weight()
BLOCKED: Final = 0.5
"""Fig. 5's blocking rate of a link."""
LONG_BYTES: Final = 2_000_000
"""A flow that has sent so much has the weight 0."""
_PB: Final = Axis("blocking probability pB")
_K: Final = Axis("unit size k", "packets")


def caps_fig6() -> Study:
    """Return the repairs by pB, and the chance to decode by repairs."""
    ps = tuple(float(p) for p in np.linspace(0.0, 0.5, 51))
    rs = tuple(range(7))
    long_flows = (1, 2, 3, 4)
    chances = {m: [caps.decodes(UNIT, r, m / PATHS) for r in rs] for m in long_flows}
    return Study(
        "CAPS Fig. 6: repairs and the chance to decode (Eq. 1, 2)",
        (
            Panel(
                "(a) r = ceil(k / (1 - pB) - k)",
                _PB,
                Axis("repairs r", "packets"),
                ps,
                tuple(curve(f"k = {k}", [paper_rule(k, p) for p in ps]) for k in (10, 20, 30)),
            ),
            Panel(
                f"(b) k = {UNIT}, {PATHS} paths",
                Axis("repairs r", "packets"),
                Axis("p_S"),
                tuple(float(r) for r in rs),
                tuple(curve(f"{m} long flows", chances[m]) for m in long_flows),
            ),
        ),
        ("r (pkt)", *(f"p_S, {m} long" for m in long_flows)),
        tuple((r, *(round(chances[m][r], 3) for m in long_flows)) for r in rs),
        (
            "p_S: chance that a unit decodes; pkt: packets; pB: long flows over paths.",
            "The paper says: almost 1 at r = 2 beside 2 long flows.",
        ),
    )


def caps_fig8() -> Study:
    """Return the chance to decode, and the delay of a window, by unit size."""
    ks = tuple(range(1, caps.FIG_9.window + 1))
    chance = {p: [caps.decodes(k, paper_rule(k, p), p) for k in ks] for p in SHARES}
    delay = {p: [1e3 * caps.coded_delay_s(k, paper_rule(k, p), p) for k in ks] for p in SHARES}
    shown = (1, 2, 5, 10, 20, 30, 40, 50, 60, 64)
    return Study(
        "CAPS Fig. 8: decoding and delay by unit size (Eq. 2-4)",
        (
            Panel("(a)", _K, Axis("p_S"), ks, tuple(curve(f"pB = {p:.1f}", chance[p]) for p in SHARES)),
            Panel("(b)", _K, Axis("d_w", "ms"), ks, tuple(curve(f"pB = {p:.1f}", delay[p]) for p in SHARES)),
        ),
        ("k (pkt)", *(f"d_w, pB {p:.1f} (ms)" for p in SHARES)),
        tuple((k, *(round(delay[p][k - 1], 2) for p in SHARES)) for k in shown),
        (
            f"Window {caps.FIG_9.window} packets, 1 Gbit/s, RTT 0.1 and 3 ms, r by the paper's rule; pkt: packets.",
            "The paper's (b) falls and then rises. As printed, Eq. 4 falls to the end but for what rounding r up does.",
        ),
    )


def caps_fig9() -> Study:
    """Return the delay of a window by repairs, and by pB with and without code."""
    rs = tuple(range(31))
    ps = tuple(float(p) for p in np.linspace(0.01, 0.4, 40))
    unit = UNIT_PB[0.30]
    with_code = [1e3 * caps.coded_delay_s(unit, paper_rule(unit, p), p) for p in ps]
    best = [1e3 * caps.coded_delay_s(k := caps.best_unit(p), paper_rule(k, p), p) for p in ps]
    without = [1e3 * caps.uncoded_delay_s(p) for p in ps]
    return Study(
        "CAPS Fig. 9: delay of a window with and without code (Eq. 4-6)",
        (
            Panel(
                "(a) d_w by repairs",
                Axis("repairs r", "packets"),
                Axis("d_w", "ms"),
                tuple(float(r) for r in rs),
                tuple(
                    curve(f"pB = {p:.2f}, k = {k}", [1e3 * caps.coded_delay_whole_s(k, r, p) for r in rs])
                    for p, k in UNIT_PB.items()
                ),
            ),
            Panel(
                "(b) by pB",
                _PB,
                Axis("delay", "ms"),
                ps,
                (
                    curve("without code, d_wnc", without),
                    curve(f"k = {unit}, d_w", with_code),
                    curve("k of Eq. 4, d_w", best),
                ),
            ),
        ),
        ("pB", "k printed", "k of Eq. 4", "r at printed k", "d_w (ms)", "d_wnc (ms)"),
        tuple(
            (
                p,
                k,
                caps.best_unit(p),
                paper_rule(k, p),
                round(1e3 * caps.coded_delay_s(k, paper_rule(k, p), p), 2),
                round(1e3 * caps.uncoded_delay_s(p), 2),
            )
            for p, k in UNIT_PB.items()
        ),
        (
            "k and r in packets. d_w: at the printed k. Its k do not follow from Eq. 4 (`caps-unit-readings`).",
        ),
    )


def caps_fig10() -> Study:
    """Return the repairs over all packets, by the mix of traffic and by pB."""
    longs = tuple(range(90, 100))
    ps = tuple(float(p) for p in np.linspace(0.0, 0.4, 41))
    by_mix = {p: [100 * caps.overhead(p, long / (100 - long)) for long in longs] for p in SHARES[:3]}
    return Study(
        "CAPS Fig. 10: traffic overhead (Eq. 7)",
        (
            Panel(
                "(a) by long flows' part of the packets",
                Axis("long flows' part", "%"),
                Axis("overhead", "%"),
                tuple(float(long) for long in longs),
                tuple(curve(f"pB = {p:.1f}", ys) for p, ys in by_mix.items()),
            ),
            Panel(
                "(b) by pB",
                _PB,
                Axis("overhead", "%"),
                ps,
                tuple(
                    curve(f"{long}:{100 - long}", [100 * caps.overhead(p, long / (100 - long)) for p in ps])
                    for long in (90, 95, 99)
                ),
            ),
        ),
        ("long flows (%)", *(f"overhead, pB {p:.1f} (%)" for p in by_mix)),
        tuple((long, *(round(ys[i], 2) for ys in by_mix.values())) for i, long in enumerate(longs)),
        (
            "Overhead: repairs over all packets.",
            "The text says that it grows with g and stays below 3.5 %: Eq. 7 falls, and 3.5 % holds up to pB = 0.26.",
        ),
    )


def htpc_fig5() -> Study:
    """Return the packets delivered of short flows, and time-outs of long ones, by window."""
    ks = tuple(range(3, 21))
    p = BLOCKED
    short = {
        ("rps", "rps"): [1 - p for _ in ks],
        ("corrective", "corrective"): [1 - htpc.corrective_blocking(k, p) for k in ks],
        ("caps, as meant", "caps"): [1 - htpc.blocking_meant(k, paper_rule(k, p), p) for k in ks],
        ("htpc, as meant", "htpc"): [1 - htpc.blocking_meant(k, _short_repairs(k), p) for k in ks],
        ("htpc, Eq. 16 as printed", "htpc-overdue"): [
            1 - htpc.coded_blocking(k, _short_repairs(k), p) for k in ks
        ],
    }
    long = {
        ("rps, caps", "rps"): [htpc.timeouts(k, p) for k in ks],
        ("corrective", "corrective"): [htpc.timeouts(k + 1, p) for k in ks],
        ("htpc, as meant", "htpc"): [
            htpc.timeouts(k + _long_repairs(k), htpc.blocking_meant(k, _long_repairs(k), p)) for k in ks
        ],
    }
    xs = tuple(float(k) for k in ks)
    window = Axis("window w_c = k", "packets")
    return Study(
        "HTPC Fig. 5: its model at a blocking rate of 0.5 (Eq. 9-17)",
        tuple(
            Panel(
                title,
                window,
                Axis(quantity),
                xs,
                tuple(curve(name, ys, style) for (name, style), ys in of.items()),
            )
            for title, quantity, of in (
                ("(a) short flows", "packets delivered, of those sent", short),
                ("(b) long flows", "P(time-out)", long),
            )
        ),
        ("k (pkt)", "RPS", "Correc- tive", "HTPC", "printed", "PTO RPS", "PTO Corr.", "r", "PTO HTPC"),
        tuple(
            (
                k,
                *(round(ys[i], 3) for (_, style), ys in short.items() if style != "caps"),
                *(
                    float(f"{long[name][i]:.2g}")
                    for name in (("rps, caps", "rps"), ("corrective", "corrective"))
                ),
                _long_repairs(k),
                float(f"{long['htpc, as meant', 'htpc'][i]:.2g}"),
            )
            for i, k in enumerate(ks)
            if k in (3, 4, 5, 6, 8, 10, 15, 20)
        ),
        (
            "First four: delivered, short flows; PTO: chance of a time-out, long flows, HTPC's with r repairs.",
            "CAPS (Eq. 13, 14) has HTPC's curve of short flows, with the same r, and RPS's of long ones.",
            "printed: Eq. 16 lets any number of repairs make up for one packet, so that more of them deliver less.",
            "From k = 6 on Eq. 5 gives long flows no repair at this rate: their time-outs are those of RPS.",
        ),
    )


def _short_repairs(k: int) -> int:
    return round(htpc.repairs_by_bytes(0, k, BLOCKED, RULE))


def _long_repairs(k: int) -> int:
    return max(0, round(htpc.repairs_by_bytes(LONG_BYTES, k, BLOCKED, RULE)))


def tr_fig6() -> Study:
    """Return the completion time under RPS and TR by flow size and by number of flows."""
    base = tr.Scenario()
    kilobytes = tuple(range(100, 351, 50))
    numbers = tuple(range(20, 101, 10))
    by_size = [(base, round(size * 1000 / 1500)) for size in kilobytes]
    by_flows = [(replace(base, flows=number), 200) for number in numbers]
    panels = tuple(
        Panel(
            title,
            axis,
            Axis("completion time", "ms"),
            tuple(float(x) for x in xs),
            (
                curve("rps", [1e3 * tr.rps_completion(*point) for point in points], "rps"),
                curve("tr", [1e3 * tr.tr_completion(*point) for point in points], "tr"),
            ),
        )
        for title, axis, xs, points in (
            ("(a) 20 flows", Axis("flow size", "kB"), kilobytes, by_size),
            ("(b) 300 kB", Axis("flows N"), numbers, by_flows),
        )
    )
    return Study(
        "TR Fig. 6: its model (Eq. 2-8)",
        panels,
        ("flow (kB)", "P_fr", "RPS (ms)", "TR (ms)", "TR / RPS"),
        tuple(
            (
                size,
                round(tr.fast_retransmit(*point), 3),
                round(1e3 * tr.rps_completion(*point), 2),
                round(1e3 * tr.tr_completion(*point), 2),
                round(tr.tr_completion(*point) / tr.rps_completion(*point), 3),
            )
            for size, point in zip(kilobytes, by_size, strict=True)
        ),
        (
            "5 good paths (200 us) and 5 bad ones (300 us) of 1 Gbit/s, buffers of 250 packets, H = 3; 20 flows.",
            "P_fr: chance of a needless fast retransmission under RPS. TR is sooner where it is above a half.",
        ),
    )
