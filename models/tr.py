"""TR's analysis (Journal of Cloud Computing 10, 2021): completion time under spraying and under in-order rerouting.

The stated model has n parallel paths, n_g good ones of delay d_g and n_b bad ones of delay d_b; a flow of S packets
sends a window w a round; a round takes r = p + q, delay and wait in queues; H duplicate ACKs make TCP halve its window.

    FCT = S / w r        with w, p, q under RPS, and ^w, ^p, ^q under TR                (its Table 3's symbols)

Ours: the paper's own Eq. 2-8 (`models.printed.tr`) have one window for a whole flow, from full buffers. How w, p and
q follow from rounds of slow start at a given load is derived here, and held against simulation:

- RPS takes a bad path with n_b/n. A round ends with its last packet: p = d_g + (d_b - d_g) (1 - (n_g/n)^w). Where a
  packet of a bad path is overtaken by H or more, TCP halves its window though nothing is lost (reno: no RACK).
- TR keeps order, so no window is halved, and takes the path with the least time to the next leaf, so bad paths serve
  only what would wait longer than d_b - d_g at the good ones.

Times are in packet times of a fabric link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, pow, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from host_agent.coding.redundancy import binomial

Floats = NDArray[np.float64]
INITIAL_WINDOW: Final = 10
"""RFC 6928."""
LEAST_WINDOW: Final = 2
"""What a halved window cannot fall below (RFC 5681: ssthresh)."""


@dataclass(frozen=True, slots=True)
class Asymmetry:
    """A fabric with good and bad paths. Times in packet times."""

    paths: int = 16
    bad_paths: int = 4
    good_delay: float = 8.0
    """d_g, with the way back."""
    bad_delay: float = 28.0
    """d_b, with the way back."""
    load: float = 0.4
    """Of all paths together."""
    fast_retransmit: int = 3
    """H."""
    largest_window: int = 64
    """Packets; what the receiver or the access link's buffer allows."""
    packet_gap: float = 0.2
    """Time between two packets of a window: 1 / (rate of a host's link in those of a fabric link)."""

    def __post_init__(self) -> None:
        wrong = (
            not 0 <= self.bad_paths < self.paths
            or not 0 < self.good_delay <= self.bad_delay
            or not 0 <= self.load < 1
            or self.fast_retransmit < 1
            or self.largest_window < INITIAL_WINDOW
            or self.packet_gap <= 0
        )
        if wrong:
            raise ValueError(f"no such fabric: {self}")

    @property
    def bad_share(self) -> float:
        return self.bad_paths / self.paths

    @property
    def overtakers(self) -> int:
        """Return most packets of a window that a packet on a bad path can be overtaken by."""
        return int((self.bad_delay - self.good_delay) / self.packet_gap + 1e-9)


def halving_probability(fabric: Asymmetry, window: int) -> float:
    """Return P(a round of RPS has a packet that H or more later ones overtake).

    The first packet on a bad path is overtaken by those of the next g = (d_b - d_g) / gap that take good paths; if
    they are fewer than H, all is in order again g packets later. With b = n_b / n and S(0) = 1, the window keeps with

        S(w) = (1 - b)^w + sum over j = 1 .. w of (1 - b)^(j - 1) b P(Binomial(min(g, w - j), 1 - b) < H) S(w - j - g)

    Exact where all of the window can overtake (g >= w - 1). Else it forgets that bad packets among the g are owed too:
    within 0.03 of simulation for b <= 1/4, up to 0.25 too high at b = 1/2 and g of a few packets.
    """
    if min(fabric.overtakers, window - 1) < fabric.fast_retransmit:
        return 0.0
    return 1.0 - _keeping(window, fabric.overtakers, fabric.bad_share, fabric.fast_retransmit)


@lru_cache(maxsize=1 << 14)
def _keeping(window: int, reach: int, bad: float, threshold: int) -> float:
    if window <= 0:
        return 1.0
    probability = pow(1.0 - bad, window)
    for j in range(1, window + 1):
        overtaking = min(reach, window - j)
        few = sum(binomial(overtaking, x, 1.0 - bad) for x in range(min(threshold, overtaking + 1)))
        probability += pow(1.0 - bad, j - 1) * bad * few * _keeping(window - j - reach, reach, bad, threshold)
    return probability


def md1_wait(load: float) -> float:
    """Return mean wait of an M/D/1 queue in service times: load / (2 (1 - load)) (Pollaczek and Khinchine)."""
    return load / (2.0 * (1.0 - load))


def mdc_wait(servers: int, load: float) -> float:
    """Return mean wait of an M/D/c queue in service times: Erlang's C, halved, with Cosmetatos' correction (1975).

    Sending each packet where the least work waits is a single queue for all links (Kiefer and Wolfowitz): hence what
    TR's choice by time to the next leaf makes of equal paths. Within 3 % of simulation.
    """
    offered = servers * load
    last = offered**servers / factorial(servers) / (1.0 - load)
    waits = last / (sum(offered**i / factorial(i) for i in range(servers)) + last)
    if waits == 0.0:
        return 0.0
    mmc = waits / (servers * (1.0 - load))
    correction = 1.0 + (1.0 - load) * (servers - 1) * (sqrt(4.0 + 5.0 * servers) - 2.0) / (16.0 * offered)
    return mmc * correction / 2.0


def rps_round(fabric: Asymmetry, window: int) -> float:
    """Return r = p + q of a round of RPS with *window* packets, and no less than sending them takes."""
    any_bad = 1.0 - (1.0 - fabric.bad_share) ** window
    propagation = fabric.good_delay + (fabric.bad_delay - fabric.good_delay) * any_bad
    return max(propagation + md1_wait(fabric.load), window * fabric.packet_gap)


def tr_round(fabric: Asymmetry, window: int = 1) -> float:
    """Return ^r = ^p + ^q of a round of TR with *window* packets, and no less than sending them takes.

    The lesser of d_g + wait where only good paths serve, and d_b + wait where all do: the former while good paths
    have room, the latter once their queues have made up for d_b - d_g.
    """
    good = fabric.paths - fabric.bad_paths
    all_paths = fabric.bad_delay + mdc_wait(fabric.paths, fabric.load)
    load = fabric.load * fabric.paths / good
    round_time = all_paths if load >= 1.0 else min(fabric.good_delay + mdc_wait(good, load), all_paths)
    return max(round_time, window * fabric.packet_gap)


def rps_time(fabric: Asymmetry, packets: int) -> float:
    """Return E[FCT] of a flow of *packets* under RPS: reno from slow start, over all its rounds, exactly."""
    widths = range(fabric.largest_window + 1)
    return flow_time(
        packets,
        fabric.largest_window,
        np.array([rps_round(fabric, width) for width in widths]),
        np.array([halving_probability(fabric, width) for width in widths]),
    )[0]


def rps_window(fabric: Asymmetry, packets: int) -> float:
    """Return w: packets per round of a flow of *packets* under RPS, S / E[rounds]."""
    halving = np.array([halving_probability(fabric, w) for w in range(fabric.largest_window + 1)])
    return packets / flow_time(packets, fabric.largest_window, np.ones(len(halving)), halving)[0]


def tr_time(fabric: Asymmetry, packets: int) -> float:
    """Return E[FCT] of a flow of *packets* under TR."""
    return flow_time(
        packets,
        fabric.largest_window,
        np.array([tr_round(fabric, width) for width in range(fabric.largest_window + 1)]),
        np.zeros(fabric.largest_window + 1),
    )[0]


def tr_window(fabric: Asymmetry, packets: int) -> float:
    """Return ^w: packets per round of a flow of *packets* under TR."""
    size = fabric.largest_window + 1
    return packets / flow_time(packets, fabric.largest_window, np.ones(size), np.zeros(size))[0]


def flow_time(packets: int, largest: int, round_time: Floats, halving: Floats) -> tuple[float, Floats]:
    """Return the expected time of a flow of *packets*, by recursion over what is left and the window.

    Slow start doubles the window from 10 until *largest*, or until it is halved; then it grows by one a round. Its
    last round cannot halve anything that matters.

    Args:
        round_time, halving: by packets in the round, shape (largest + 1,).

    Returns:
        The time, and that of a flow in congestion avoidance by packets left and window, shape
        (packets + 1, largest + 1).
    """
    avoiding = np.zeros((packets + 1, largest + 1))
    starting = np.zeros((packets + 1, largest + 1))
    window = np.arange(largest + 1)
    halved = np.maximum(LEAST_WINDOW, window // 2)
    grown = np.minimum(window + 1, largest)
    doubled = np.minimum(window * 2, largest)
    for packets_left in range(1, min(packets, largest) + 1):
        last = window >= packets_left
        remain = np.maximum(packets_left - window, 0)
        sent = np.minimum(window, packets_left)
        back = avoiding[remain, halved]
        cost = round_time[sent]
        avoiding[packets_left] = cost + np.where(
            last, 0.0, halving[sent] * back + (1.0 - halving[sent]) * avoiding[remain, grown]
        )
        starting[packets_left] = cost + np.where(
            last, 0.0, halving[sent] * back + (1.0 - halving[sent]) * starting[remain, doubled]
        )
        avoiding[packets_left, 0] = starting[packets_left, 0] = 0.0  # no such window
    # No window is the last one from here on: the same by fewer steps, for most flows are far longer than a window.
    width = largest + 1
    growing = 1.0 - halving
    flat_avoiding, flat_starting = avoiding.reshape(-1), starting.reshape(-1)
    before = -window * width
    for packets_left in range(largest + 1, packets + 1):
        here = packets_left * width + before
        back = halving * flat_avoiding[here + halved]
        avoiding[packets_left] = round_time + (back + growing * flat_avoiding[here + grown])
        starting[packets_left] = round_time + (back + growing * flat_starting[here + doubled])
        avoiding[packets_left, 0] = starting[packets_left, 0] = 0.0
    return float(starting[packets, min(INITIAL_WINDOW, largest)]), avoiding
