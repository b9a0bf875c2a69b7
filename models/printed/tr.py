"""TR's Eq. 1-8 as printed (Journal of Cloud Computing 10, 2021): time to the next leaf, and its model of completion
times.

Sizes, windows and buffers in packets, times in one unit. What the algebra says of the model:

- Eq. 2 divides a flow by 3 w^2 / 8 packets for each climb of the window from w / 2 to w: w is the *largest* window.
  Eq. 3 gives it for RPS (n B / N, or half). For TR the text puts the *mean* of that saw-tooth, 3 n B / 4 N, into the
  same equation.
- So where all rounds take bad paths, F_TR < F_RPS exactly if 3/4 > 1 - P_fr / 2: if P_fr is above a half. By this
  model a flow that reorders little is sooner under RPS, whose window is no larger.
- Eq. 8's middle term has N (3 n B / 4 N) t where Eq. 6 has N w t / n; its result, (16 d_b + 12 B t), is that with the
  n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pow

from host_agent.coding.redundancy import binomial


def next_leaf(
    now: float,
    propagation: float,
    *,
    own_queue: float,
    own_rate: float,
    spine_queue: float,
    spine_rate: float,
) -> float:
    """Return Eq. 1: TNL_j = ct + pd_j + lql_j / lqw_j + sql_j / sqw_j; queues in bits where rates are bit/s."""
    return now + propagation + own_queue / own_rate + spine_queue / spine_rate


@dataclass(frozen=True, slots=True)
class Scenario:
    """Table 3's symbols. t: time of a packet on a link, in the unit of the delays d_g and d_b; H: duplicate ACKs."""

    flows: int = 20
    good: int = 5
    bad: int = 5
    buffer: int = 250
    good_delay: float = 200e-6
    bad_delay: float = 300e-6
    packet_time: float = 12e-6
    threshold: int = 3

    @property
    def paths(self) -> int:
        return self.good + self.bad

    @property
    def largest_window(self) -> float:
        """Return n B / N."""
        return self.paths * self.buffer / self.flows


def completion(size: float, window: float, delay: float) -> float:
    """Return Eq. 2: F = S / (3 w^2 / 8) (w r / 2) = 4 S r / 3 w."""
    return size / (3 * window**2 / 8) * (window * delay / 2)


def rps_window(scenario: Scenario, fast_retransmit: float) -> float:
    """Return Eq. 3: w = n B / N (1 - P_fr) + n B / 2N P_fr."""
    largest = scenario.largest_window
    return largest * (1 - fast_retransmit) + largest / 2 * fast_retransmit


def fast_retransmit(scenario: Scenario, size: int) -> float:
    """Return Eq. 4: P_fr of a flow of *size* packets.

    The sums over path assignments, divided by n^S, are probabilities: with g = n_g / n and b = n_b / n, of each i the
    chance g^(i-1) b P(Binomial(S - i, g) >= H): the first packet on a bad path is the i-th, and H or more of *all*
    later ones take good paths.
    """
    good, bad = scenario.good / scenario.paths, scenario.bad / scenario.paths
    total = 0.0
    for i in range(1, size - scenario.threshold + 1):
        few = sum(binomial(size - i, k, good) for k in range(scenario.threshold))
        total += pow(good, i - 1) * bad * (1 - few)
    return total


def rps_window_whole(scenario: Scenario, size: int) -> float:
    """Return Eq. 5: Eq. 4 put into Eq. 3."""
    return rps_window(scenario, fast_retransmit(scenario, size))


def rps_delay(scenario: Scenario, window: float) -> float:
    """Return Eq. 6: r = (1 - (n_g/n)^w) d_b + (n_g/n)^w d_g + N w t / n."""
    good = pow(scenario.good / scenario.paths, window)
    queues = scenario.flows * window * scenario.packet_time / scenario.paths
    return (1 - good) * scenario.bad_delay + good * scenario.good_delay + queues


def rps_completion(scenario: Scenario, size: int) -> float:
    """Return Eq. 7: F_RPS."""
    window = rps_window_whole(scenario, size)
    return 4 * size * rps_delay(scenario, window) / (3 * window)


def tr_completion(scenario: Scenario, size: int) -> float:
    """Return Eq. 8: F_TR = S N (16 d_b + 12 B t) / (9 n B), where all packets take bad paths."""
    return (
        size
        * scenario.flows
        * (16 * scenario.bad_delay + 12 * scenario.buffer * scenario.packet_time)
        / (9 * scenario.paths * scenario.buffer)
    )
