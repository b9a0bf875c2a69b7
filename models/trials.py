"""The same mechanisms, simulated: what the formulas of this package are compared with, and the points in their figures.

Nothing here uses a formula: paths are drawn, packets counted, acknowledgements sent. Randomness is passed in.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from host_agent.coding.redundancy import repairs_for
from models.caps import Fabric, units_of, windows
from models.tr import Asymmetry
from protocol.policy import CodingPolicy


def short_flow_times(
    fabric: Fabric, long_flows: int, packets: int, *, flows: int, rng: Generator, coding: CodingPolicy | None
) -> float:
    """Return mean completion time of *flows* sprayed short flows, each beside *long_flows* hashed anew, packet times.

    With *coding*, a unit is there when as many of its packets as it has sources are (rank failures are left out).
    """
    total = 0.0
    plan = [units_of(window, coding.max_k if coding else window) for window in windows(packets)]
    sizes = {size for units in plan for size in units}
    for _ in range(flows):
        blocked = np.zeros(fabric.paths, dtype=bool)
        blocked[rng.integers(fabric.paths, size=long_flows)] = True
        share = float(blocked.mean())
        repairs_of = {size: repairs_for(coding, share, size) if coding else 0 for size in sizes}
        sent = packets
        for units in plan:
            late = False
            for size in units:
                repairs = repairs_of[size]
                lost = int(np.count_nonzero(blocked[rng.integers(fabric.paths, size=size + repairs)]))
                late |= lost > repairs
                sent += repairs
            total += fabric.base_rtt + (fabric.buffer_packets if late else 0)
        total += sent / fabric.access_ratio
    return total / flows


def hashed_flow_times(fabric: Fabric, long_flows: int, packets: int, *, flows: int, rng: Generator) -> float:
    """Return mean completion time of *flows* short flows that are hashed like the long ones, packet times."""
    total = 0.0
    for _ in range(flows):
        occupied = rng.integers(fabric.paths, size=long_flows)
        late = bool((occupied == rng.integers(fabric.paths)).any())
        round_trip = fabric.base_rtt + (fabric.buffer_packets if late else 0)
        total += len(windows(packets)) * round_trip + packets / fabric.access_ratio
    return total / flows


def timeouts(
    k: int,
    r: int,
    bad_share: float,
    *,
    count: int,
    rng: Generator,
    fast_retransmit: int,
    repairs_acknowledged: bool,
) -> float:
    """Return share of *count* windows of k sources and r repairs that end in a time-out
    (`htpc.timeout_probability`)."""
    arrived = rng.random((count, k + r)) >= bad_share
    stuck = ~arrived[:, :k].all(axis=1) & (arrived.sum(axis=1) < k)
    after = np.cumsum(~arrived[:, :k], axis=1) > 0  # from the first lost source on
    answering = (arrived[:, :k] & after).sum(axis=1)
    if repairs_acknowledged:
        answering += arrived[:, k:].sum(axis=1)
    return float((stuck & (answering < fast_retransmit)).mean())


def halvings(fabric: Asymmetry, window: int, rounds: int, rng: Generator) -> float:
    """Return share of *rounds* of RPS in which a TCP receiver sends H duplicate ACKs though nothing is lost.

    Packets arrive when they arrive; the receiver acknowledges each with the next position that it lacks.
    """
    gap = fabric.packet_gap
    halved = 0
    for _ in range(rounds):
        bad = rng.random(window) < fabric.bad_share
        arrival = np.arange(window) * gap + np.where(bad, fabric.bad_delay, fabric.good_delay)
        have = [False] * (window + 1)
        lacks, duplicates = 0, 0
        for position in np.argsort(arrival, kind="stable").tolist():
            have[position] = True
            if position == lacks:
                while have[lacks]:
                    lacks += 1
                duplicates = 0
            else:
                duplicates += 1
                if duplicates == fabric.fast_retransmit:
                    halved += 1
                    break
    return halved / rounds


def least_time_delays(fabric: Asymmetry, packets: int, rng: Generator) -> tuple[float, float]:
    """Return the delays of packets at random times, each sent over the path with the least delay and wait
    (TR, but for keeping order).

    Returns:
        Mean delay and wait, packet times, and the share of packets over bad paths; the first tenth is left out.
    """
    delay = np.full(fabric.paths, fabric.good_delay)
    delay[: fabric.bad_paths] = fabric.bad_delay
    free = np.zeros(fabric.paths)
    now, total, bad, counted = 0.0, 0.0, 0, 0
    gaps = rng.exponential(1.0 / (fabric.load * fabric.paths), size=packets)
    for index, gap in enumerate(gaps.tolist()):
        now += gap
        times = free - now
        np.maximum(times, 0.0, out=times)
        times += delay
        best = int(times.argmin())
        free[best] = max(free.item(best), now) + 1.0
        if index >= packets // 10:
            total += times.item(best)
            bad += best < fabric.bad_paths
            counted += 1
    return total / counted, bad / counted
