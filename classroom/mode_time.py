"""Lab 4: the sampling time T of CAPS's modes, on packets of short flows that come and go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from classroom.answer import AnswerError, CheckResult
from controller.modes.monitor import ModeMonitor
from controller.schemes import loader
from controller.schemes.scheme import ModeRule

PACKET_TIME_S: Final = 0.004
FLOWS: Final = 120
MOST_CHANGES: Final = 2.2
"""Per short flow; one to ON and one to OFF are what there must be."""
LEAST_OFF: Final = 0.75
"""Share of the silence between short flows in which long flows may be sprayed."""
LEAF: Final = 1
METER_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Modes:
    """changes: per short flow. off_share: of the silence between short flows."""

    changes: float
    off_share: float


def check(file: Path, results: Path) -> list[CheckResult]:
    """Play a leaf under the scheme in *file*; return the findings. Raise AnswerError."""
    try:
        scheme = loader.load(file)
    except loader.SchemeError as error:
        raise AnswerError(str(error)) from None
    if scheme.mode is None:
        raise AnswerError(f"{file}: has no mode: copy start.yaml of this lab, and give the copy's name")
    modes = play(scheme.mode)
    rule = scheme.mode
    t_ms = rule.sampling_packet_times * PACKET_TIME_S * 1e3
    return [
        CheckResult(
            modes.changes <= MOST_CHANGES,
            f"step 5: T = {rule.sampling_packet_times:g} packet times ({t_ms:g} ms): {modes.changes:.2f} changes a flow"
            + (
                ""
                if modes.changes <= MOST_CHANGES
                else "; more than 2.2: T is shorter than a flow's own pauses"
            ),
        ),
        CheckResult(
            modes.off_share >= LEAST_OFF,
            f"step 6: OFF in {modes.off_share:.0%} of the silence"
            + ("" if modes.off_share >= LEAST_OFF else f"; {LEAST_OFF:.0%} are wanted: T is too long"),
        ),
    ]


def arrivals(seed: int = 1) -> tuple[list[float], list[tuple[float, float]]]:
    """Return the times of short packets, and the silences between flows, seconds.

    A flow is six windows, a round-trip time of 8 to 15 packet times apart; flows are some 0.6 s apart.
    """
    rng = np.random.default_rng(seed)
    now, times, silences = 1.0, [], []
    for _ in range(FLOWS):
        for _ in range(6):
            times += [now + place * 0.001 for place in range(10)]
            now = times[-1] + float(rng.uniform(8, 15)) * PACKET_TIME_S
        end = times[-1]
        now = end + 0.2 + float(rng.exponential(0.4))
        silences.append((end, now))
    return times, silences


def play(rule: ModeRule) -> Modes:
    """Return the controller's own monitor on those packets, its meter read whenever it asks."""
    times, silences = arrivals()
    monitor = ModeMonitor(rule, PACKET_TIME_S)
    monitor.leaf_added(LEAF, 0.0)
    changes: list[tuple[float, str]] = []
    coming, passed = 0, 0
    while coming < len(times) or monitor.mode(LEAF) == "on":
        deadline = monitor.deadline()
        packet = times[coming] if coming < len(times) else float("inf")
        if deadline is None or packet <= deadline:
            coming, passed = coming + 1, passed + 1
            change = monitor.first_packet(LEAF, packet) if monitor.mode(LEAF) == "off" else None
        else:
            monitor.due(deadline)
            change = monitor.sample(LEAF, passed, deadline + METER_S)
        if change is not None:
            changes.append((change.at, change.mode))
    off_s = sum(
        max(0.0, min(end, until) - max(begin, start))
        for (start, mode), until in zip(
            changes, [*(start for start, _ in changes[1:]), silences[-1][1]], strict=True
        )
        if mode == "off"
        for begin, end in silences
    )
    return Modes(len(changes) / FLOWS, off_s / sum(end - begin for begin, end in silences))
