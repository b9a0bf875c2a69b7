"""HTPC's analysis as figures and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from host_agent.coding.redundancy import flow_weight, htpc_rule, repairs_for
from models import htpc, trials
from models.study import Axis, Curve, Panel, Study, curve
from protocol.policy import CodingPolicy, Weight

PATHS: Final = 16
WINDOW: Final = 20
"""Packets of a window, k."""
WEIGHT: Final = Weight()
"""T_s, T_w and T_fr as schemes have them if they say nothing else."""
PACKET_BYTES: Final = 1426
SEED: Final = 1
WINDOWS: Final = 20_000
"""Simulated for each point."""
TARGET: Final = CodingPolicy(max_overhead=8.0, max_r=64)


def redundancy() -> Study:
    """Return the repairs of a window against the bytes that its flow has sent, and what that adds to whole flows."""
    sent = tuple(int(x) for x in np.linspace(0, 1.2 * WEIGHT.none_bytes, 121))
    shares = (0.1, 0.2, 0.3, 0.4)
    by_sent = Panel(
        f"repairs of a window of {WINDOW}",
        Axis("sent before, D", "kB"),
        Axis("repairs r", "packets"),
        tuple(x / 1000 for x in sent),
        tuple(
            curve(
                f"n_b/n = {share:.1f}",
                [htpc_rule(WINDOW, share, WEIGHT, x) for x in sent],
            )
            for share in shares
        ),
    )
    sizes = tuple(int(x) for x in np.geomspace(10_000, 10_000_000, 40))
    by_size = Panel(
        "repairs added to a whole flow",
        Axis("flow size", "kB"),
        Axis("repairs per packet", "%"),
        tuple(size / 1000 for size in sizes),
        tuple(
            curve(
                f"n_b/n = {share:.1f}",
                [
                    100 * htpc.flow_overhead(size, WINDOW, share, weight=WEIGHT, packet_bytes=PACKET_BYTES)
                    for size in sizes
                ],
            )
            for share in shares
        ),
        log_x=True,
    )
    rows = tuple(
        (
            kilobytes,
            round(flow_weight(WEIGHT, kilobytes * 1000), 3),
            *(htpc_rule(WINDOW, share, WEIGHT, kilobytes * 1000) for share in shares),
        )
        for kilobytes in (0, 100, 200, 300, 400, 500, 700, 1000)
    )
    return Study(
        "HTPC: redundancy fades as a flow grows (Eq. 2-5)",
        (by_sent, by_size),
        (
            "D (kB)",
            "w",
            *(f"r at n_b/n {share:.1f} (pkt)" for share in shares),
        ),
        rows,
        (
            "D: sent before; w: weight; r: repairs; pkt: packets.",
            f"k = {WINDOW}, T_s = {WEIGHT.full_bytes / 1000:g} kB, T_w = {WEIGHT.none_bytes / 1000:g} kB, "
            f"T_fr = {WEIGHT.fast_retransmit} packets.",
            "r is 0 long before w is: w k + (1 - w) T_fr falls below k (1 - n_b/n) first.",
        ),
    )


def tail() -> Study:
    """Return P(a short flow waits for a bad path), against the number of bad paths."""
    bad = tuple(range(PATHS // 2 + 1))
    shares = [b / PATHS for b in bad]
    rules: tuple[tuple[str, str, Callable[[float], int]], ...] = (
        ("rps", "rps", lambda share: 0),
        ("htpc, w = 1", "htpc", lambda share: htpc_rule(WINDOW, share, WEIGHT, 0)),
        ("P(decode) >= 0.95", "caps", lambda share: repairs_for(TARGET, share, WINDOW)),
    )
    waits = [[htpc.tail_probability(WINDOW, rule(s), s) for s in shares] for _, _, rule in rules]
    xor = [htpc.tail_probability(WINDOW, 1, share, "xor") for share in shares]
    lines = [curve(label, ys, scheme) for (label, scheme, _), ys in zip(rules, waits, strict=True)]
    lines.insert(1, curve("corrective", xor, "corrective"))
    repairs = tuple(
        curve(label, [rule(share) for share in shares], scheme) for label, scheme, rule in rules[1:]
    )
    rows = tuple(
        (
            b,
            round(waits[0][i], 4),
            round(xor[i], 4),
            round(waits[1][i], 4),
            htpc_rule(WINDOW, b / PATHS, WEIGHT, 0),
            round(waits[2][i], 4),
            repairs_for(TARGET, b / PATHS, WINDOW),
        )
        for i, b in enumerate(bad)
    )
    xs = tuple(float(b) for b in bad)
    axis = Axis(f"bad paths n_b of {PATHS}")
    return Study(
        "HTPC: tails of short flows",
        (
            Panel(f"P(a window of {WINDOW} waits)", axis, Axis("probability"), xs, tuple(lines)),
            Panel("what that takes", axis, Axis("repairs r", "packets"), xs, repairs),
        ),
        (
            "bad paths",
            "P rps",
            "P correct- ive",
            "P htpc",
            "r htpc (pkt)",
            "P target",
            "r target (pkt)",
        ),
        rows,
        (
            f"P: a window of {WINDOW} waits for a packet of a bad path; r: its repairs; pkt: packets.",
            "htpc: at w = 1 its r is CAPS's: k packets arrive on average, and a third to a half of its windows wait.",
            "target: the smallest r that decodes with 0.95.",
            "corrective: one XOR of the window. Rank failures of the random code (1/255) are counted.",
        ),
    )


def timeout() -> Study:
    """Return P(a window of a long flow ends in a time-out), against the loss rate, by weight."""
    losses = tuple(float(p) for p in np.linspace(0.02, 0.6, 30))
    small = _timeout_panel(6, losses)
    large = _timeout_panel(WINDOW, losses)
    rows = []
    for k in (4, 6, 10, 20):
        for p in (0.05, 0.2, 0.4):
            faded, full = (htpc_rule(k, p, WEIGHT, sent) for sent in (WEIGHT.none_bytes, 0))
            rows.append(
                (
                    k,
                    p,
                    _rounded(htpc.timeout_probability(k, 0, p)),
                    faded,
                    _rounded(htpc.timeout_probability(k, faded, p)),
                    full,
                    _rounded(htpc.timeout_probability(k, full, p)),
                    _rounded(htpc.timeout_probability(k, full, p, repairs_acknowledged=False)),
                )
            )
    return Study(
        "HTPC: time-outs of long flows",
        (small, large),
        (
            "k (pkt)",
            "loss",
            "P rps",
            "r, w = 0 (pkt)",
            "P, w = 0",
            "r, w = 1 (pkt)",
            "P, w = 1",
            "P, w = 1, below TCP",
        ),
        tuple(rows),
        (
            f"P: a window of k ends in a time-out; r: its repairs. Points: simulation, {WINDOWS} windows.",
            "w = 0: repairs only where k < T_fr / (1 - loss); a window of 4 gets none below 25 % loss. T_fr = 3.",
            "below TCP: repairs that rebuild nothing are dropped, so they make no duplicate ACKs.",
        ),
    )


def _rounded(probability: float) -> float:
    return float(f"{probability:.2g}")


def _timeout_panel(k: int, losses: tuple[float, ...]) -> Panel:
    rng = np.random.default_rng(SEED)
    some = losses[1::4]
    curves: list[Curve] = []
    half = (WEIGHT.full_bytes + WEIGHT.none_bytes) // 2
    for label, sent, acknowledged in (
        ("rps", None, True),
        ("w = 0", WEIGHT.none_bytes, True),
        ("w = 0.5", half, True),
        ("w = 1", 0, True),
        ("w = 1, below TCP", 0, False),
    ):

        def repairs(p: float, sent: int | None = sent) -> int:
            return 0 if sent is None else htpc_rule(k, p, WEIGHT, sent)

        curves.append(
            curve(
                label,
                [
                    htpc.timeout_probability(k, repairs(p), p, repairs_acknowledged=acknowledged)
                    for p in losses
                ],
                "rps" if sent is None else None,
            )
        )
        if label in ("rps", "w = 1"):
            points = {
                p: trials.timeouts(
                    k,
                    repairs(p),
                    p,
                    count=WINDOWS,
                    rng=rng,
                    fast_retransmit=3,
                    repairs_acknowledged=acknowledged,
                )
                for p in some
            }
            curves.append(curve(label, [points.get(p) for p in losses], trials=True))
    return Panel(
        f"windows of {k}",
        Axis("loss rate"),
        Axis("P(time-out)"),
        losses,
        tuple(curves),
    )
