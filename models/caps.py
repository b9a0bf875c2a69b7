"""CAPS's analysis (Hu et al., INFOCOM 2018; ToN 27(6), 2019): what blocking costs short flows, with code and without.

The stated model: n equal-cost paths between two leaves; m long flows, each hashed to one path, whose buffer it fills;
short flows' packets sprayed, each to a path of its own choice. A packet that meets a long flow's queue is blocked: it
comes RTT_b - RTT later. A flow sends X packets in slow start, a window a round; a round ends when all of it is
there, or rebuilt.

Ours, where the paper's own equations (`models.printed.caps`) stop: they have one pB for all and one window. r and the
decode probability are those that host agents use (`host_agent.coding.redundancy`), the continuous form of Eq. 4 is
`host_agent.coding.unit_size`; everything here is derived from the model above, exactly, and held against simulation by
the tests. docs/models.md says which is which.

Two things are finer than a formula in pB alone. The number B of paths with long flows is random, and the packets of a
flow share it, so a round's chance is the mean over B, not the chance at the mean. And rounds are whole: windows
of w0, 2 w0, ... packets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from host_agent.coding.redundancy import decode_probability, repairs_for
from protocol.policy import CodingPolicy

Floats = NDArray[np.float64]
INITIAL_WINDOW: Final = 10
"""RFC 6928."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """What the papers' analyses know of a fabric. Times in packet times of a fabric link."""

    paths: int = 16
    base_rtt: float = 8.0
    """RTT over a path without long flows."""
    buffer_packets: int = 256
    """A long flow fills it: RTT_b = RTT + buffer_packets."""
    access_ratio: float = 5.0
    """Rate of a host's link, in those of a fabric link."""

    def __post_init__(self) -> None:
        if self.paths < 1 or self.buffer_packets < 0 or self.base_rtt <= 0 or self.access_ratio <= 0:
            raise ValueError(f"no such fabric: {self}")


def blocking_probability(paths: int, long_flows: int) -> float:
    """Return pB = 1 - (1 - 1/n)^m: the chance that a path has at least one of m flows hashed over n paths."""
    return 1.0 - (1.0 - 1.0 / paths) ** long_flows


def blocked_paths(paths: int, long_flows: int) -> Floats:
    """Return P(B = b) for b = 0 .. n: how many of n paths have one of m hashed flows; the mean is n pB.

    The occupancy distribution, by adding one flow after the other: it hits a free path with (n - b) / n.
    """
    chances = np.zeros(paths + 1)
    chances[0] = 1.0
    taken = np.arange(paths + 1) / paths
    for _ in range(long_flows):
        hits_new = chances * (1.0 - taken)
        chances = chances * taken
        chances[1:] += hits_new[:-1]
    return chances


def windows(packets: int, initial: int = INITIAL_WINDOW) -> tuple[int, ...]:
    """Return the packets that each round of slow start sends until all are sent: w0, 2 w0, 4 w0, ..., rest."""
    sent: list[int] = []
    window = initial
    while packets > 0:
        sent.append(min(window, packets))
        packets -= window
        window *= 2
    return tuple(sent)


def rounds_time(fabric: Fabric, late: Sequence[float], packets: int) -> float:
    """Return the expected completion time, packet times: RTT each round, RTT_b - RTT more with chance *late*, and
    sending."""
    return len(late) * fabric.base_rtt + fabric.buffer_packets * sum(late) + packets / fabric.access_ratio


def uncoded_late(share: float, sent: Sequence[int]) -> tuple[float, ...]:
    """Return P(round blocked) when one blocked packet blocks it: 1 - (1 - share)^w; *share* of the paths blocked."""
    return tuple(1.0 - (1.0 - share) ** window for window in sent)


def units_of(packets: int, k: int) -> tuple[int, ...]:
    """Return the sizes of the units of a flow: k, k, ..., rest."""
    return (k,) * (packets // k) + ((packets % k,) if packets % k else ())


def hashed_time(fabric: Fabric, long_flows: int, packets: int) -> float:
    """Return E[FCT] under ECMP: the flow has one path, which is blocked for all of its rounds or for none."""
    share = blocking_probability(fabric.paths, long_flows)
    rounds = len(windows(packets))
    return rounds_time(fabric, (share,) * rounds, packets)


def sprayed_time(fabric: Fabric, long_flows: int, packets: int) -> float:
    """Return E[FCT] with long flows hashed, short flows sprayed, and no code: the mean over B."""
    return _over_blocked(
        fabric,
        long_flows,
        lambda share: rounds_time(fabric, uncoded_late(share, windows(packets)), packets),
    )


def coded_time(
    fabric: Fabric, long_flows: int, packets: int, coding: CodingPolicy, *, k: int | None = None
) -> float:
    """Return E[FCT] under CAPS while ON: as `sprayed_time`, with units of *k* (None: one window a unit, at most max_k).

    r follows from the true share of blocked paths, as an estimator that errs in nothing gives it. A round is blocked
    if one of its units is not decoded. Repairs travel beside the window, as in the agent: they add to what the
    access link sends, not to the number of rounds.
    """

    def time(share: float) -> float:
        late, sent = [], packets
        for window in windows(packets):
            chance = 1.0
            for size in units_of(window, min(k or coding.max_k, coding.max_k)):
                repairs = repairs_for(coding, share, size)
                sent += repairs
                chance *= decode_probability(coding.code, size, repairs, share)
            late.append(1.0 - chance)
        return rounds_time(fabric, late, sent)

    return _over_blocked(fabric, long_flows, time)


def spread_wait(fabric: Fabric, long_flows: int) -> float:
    """Return mean wait at a link, packet times, when m long flows at access rate are sprayed over all paths (RPS).

    An M/D/1 queue at load rho = m a / n: rho / (2 (1 - rho)), and no more than the buffer, which long flows fill
    from rho = 1 on.
    """
    rho = long_flows * fabric.access_ratio / fabric.paths
    if rho >= 1.0:
        return float(fabric.buffer_packets)
    return min(rho / (2.0 * (1.0 - rho)), float(fabric.buffer_packets))


def all_sprayed_time(fabric: Fabric, long_flows: int, packets: int) -> float:
    """Return E[FCT] under RPS: every path has the same queue. What reordering costs TCP is not counted."""
    rounds = len(windows(packets))
    return rounds * (fabric.base_rtt + spread_wait(fabric, long_flows)) + packets / fabric.access_ratio


def _over_blocked(fabric: Fabric, long_flows: int, time: Callable[[float], float]) -> float:
    chances = blocked_paths(fabric.paths, long_flows)
    return sum(
        float(chance) * time(blocked / fabric.paths)
        for blocked, chance in enumerate(chances)
        if chance > 1e-15
    )
