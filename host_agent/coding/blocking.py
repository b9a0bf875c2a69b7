"""Blocking probability pB: how likely the next sprayed packet of a peer is blocked (queued for long, or lost).

One estimator per (sending agent, peer), fed from the peer's feedback and, for RTTs, from the inner ACKs. By name:
`rtt` is the CAPS paper's, `loss-rate` HTPC's, and `paths` the default, because the first is nearly blind behind a
recovering code and cumulative ACKs (docs/traps.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.datagram import serial_difference
from protocol.policy import EstimatorName
from protocol.underlay import STAMP_LAST

MAX_BLOCKING_PROBABILITY: Final = 0.6
"""Bound of every estimate: beyond it coding more than doubles the load, and feeds what it fights."""
PRIOR: Final = 0.1
"""pB while nothing is known yet."""
SMOOTHING: Final = 1 / 8
"""Weight of a new RTT in the smoothed average (CAPS; RFC 6298)."""


class BlockingEstimator(ABC):
    """Times are in seconds and must not run backwards."""

    name: EstimatorName
    prior: float = PRIOR
    """pB while nothing is known of this peer; an agent may set it to what it knows of its other peers."""
    overdue_s: float
    """See `path_loss`."""

    @abstractmethod
    def ack_rtt(self, rtt_s: float, now: float) -> None:
        """An inner ACK showed this round-trip time."""

    @abstractmethod
    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        """A datagram over path *stamp* took *delay_us* one way: unsigned 32 bit, arbitrary offset."""

    @abstractmethod
    def path_loss(self, stamp: int | None, now: float) -> None:
        """A datagram is lost or overdue; *stamp* is its path if that is known. Once for each datagram.

        It is overdue when the peer has reported one that was sent more than `overdue_s` later. To call this then,
        rather than when it is lost for good, is what tells of blocked paths in time: their own reports are late by
        as much as they are blocked, so those that come first all speak of the others.
        """

    @abstractmethod
    def told(self, arrived: int, overdue: int, now: float) -> None:
        """One feedback: of coded datagrams not told of before, so many had arrived, so many were overdue or lost.

        Each coded datagram is counted once, on whatever path.
        """

    @abstractmethod
    def blocking_probability(self, now: float) -> float:
        """pB, 0 .. MAX_BLOCKING_PROBABILITY."""

    @abstractmethod
    def rtt_s(self) -> float:
        """Round-trip time over paths that are not blocked, seconds; 0.0 while nothing is known."""

    @abstractmethod
    def blocked_rtt_s(self) -> float:
        """Round-trip time over blocked paths, seconds; at least `rtt_s`."""


def estimator(
    name: EstimatorName, packet_time_s: float, sampling_s: float | None = None
) -> BlockingEstimator:
    """The estimator of that name; *packet_time_s*: 1500 B on the slowest fabric link.

    *sampling_s*: of ``rtt`` and ``loss-rate``; None: 256 packet times.
    """
    if name == "rtt":
        return RttEstimator(packet_time_s, sampling_s)
    if name == "loss-rate":
        return LossRateEstimator(packet_time_s, sampling_s)
    if name == "paths":
        return PathsEstimator(packet_time_s)
    raise ValueError(f"estimator {name!r} is not known; there are loss-rate, paths, rtt")


class _Average:
    """Smoothed average, 7/8 old + 1/8 new; the first sample is the average."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float | None = None

    def add(self, sample: float) -> None:
        self.value = sample if self.value is None else self.value + SMOOTHING * (sample - self.value)


class RttEstimator(BlockingEstimator):
    """The paper's (CAPS, section IV): the share of ACKs whose RTT is above twice the smoothed average.

    The share is taken over update intervals; an interval with fewer than MIN_SAMPLES ACKs is carried on into the
    next. Path delays and losses do not enter.
    """

    name: EstimatorName = "rtt"
    MIN_SAMPLES: Final = 8

    def __init__(self, packet_time_s: float, interval_s: float | None = None) -> None:
        self.overdue_s = PathsEstimator.threshold_s(packet_time_s)
        self._interval_s = 256 * packet_time_s if interval_s is None else interval_s
        self._smoothed = _Average()
        self._normal = _Average()
        self._blocked = _Average()
        self._since: float | None = None
        self._samples = 0
        self._late = 0
        self._share: float | None = None

    def ack_rtt(self, rtt_s: float, now: float) -> None:
        if not rtt_s > 0.0:
            return
        self._roll(now)
        average = self._smoothed.value
        late = average is not None and rtt_s > 2.0 * average
        self._samples += 1
        self._late += late
        (self._blocked if late else self._normal).add(rtt_s)
        self._smoothed.add(rtt_s)

    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        """Not used."""

    def path_loss(self, stamp: int | None, now: float) -> None:
        """Not used."""

    def told(self, arrived: int, overdue: int, now: float) -> None:
        """Not used."""

    def blocking_probability(self, now: float) -> float:
        self._roll(now)
        return min(self.prior if self._share is None else self._share, MAX_BLOCKING_PROBABILITY)

    def rtt_s(self) -> float:
        return self._normal.value or 0.0

    def blocked_rtt_s(self) -> float:
        return max(self._blocked.value or 0.0, self.rtt_s())

    def _roll(self, now: float) -> None:
        if self._since is None:
            self._since = now
        elif now - self._since >= self._interval_s:
            if self._samples >= self.MIN_SAMPLES:
                self._share = self._late / self._samples
                self._samples = self._late = 0
            self._since = now


class LossRateEstimator(BlockingEstimator):
    """HTPC's (Eq. 1): P_L = n_b / n, n_b of the n packets of a sampling time T being blocked or lost.

    Blocked is what is overdue, as everywhere here. A sampling time with fewer than MIN_SAMPLES datagrams is carried
    on into the next. Round-trip times are told as `PathsEstimator` tells them, for units of CAPS's optimal size.
    """

    name: EstimatorName = "loss-rate"
    MIN_SAMPLES: Final = 8

    def __init__(self, packet_time_s: float, sampling_s: float | None = None) -> None:
        self._delays = PathsEstimator(packet_time_s)
        self.overdue_s = self._delays.overdue_s
        self._sampling_s = 256 * packet_time_s if sampling_s is None else sampling_s
        self._since: float | None = None
        self._arrived = 0
        self._overdue = 0
        self._rate: float | None = None

    def told(self, arrived: int, overdue: int, now: float) -> None:
        self._roll(now)
        self._arrived += arrived
        self._overdue += overdue

    def ack_rtt(self, rtt_s: float, now: float) -> None:
        self._delays.ack_rtt(rtt_s, now)

    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        self._delays.path_delay(stamp, delay_us, now)

    def path_loss(self, stamp: int | None, now: float) -> None:
        """Counted by `told`."""

    def blocking_probability(self, now: float) -> float:
        self._roll(now)
        return min(self.prior if self._rate is None else self._rate, MAX_BLOCKING_PROBABILITY)

    def rtt_s(self) -> float:
        return self._delays.rtt_s()

    def blocked_rtt_s(self) -> float:
        return self._delays.blocked_rtt_s()

    def _roll(self, now: float) -> None:
        if self._since is None:
            self._since = now
        elif now - self._since >= self._sampling_s:
            n = self._arrived + self._overdue
            if n >= self.MIN_SAMPLES:
                self._rate = self._overdue / n
                self._arrived = self._overdue = 0
            self._since = now


@dataclass(slots=True)
class _Path:
    excess_us: int
    """Last delay above the reference; of a lost datagram, what it was before."""
    blocked: float
    """Share of blocked datagrams, each new one counting one half."""
    at: float


class PathsEstimator(BlockingEstimator):
    """The share of paths whose recent one-way delay is far above the best.

    *Far* is THRESHOLD_PACKETS packet times (and never under NOISE_S, the hiccups of software switches and agents).
    Short flows alone queue a few packets; a long flow fills the buffer, which is 256. So the threshold separates
    them anywhere in between, and a packet that is late by less is not worth a repair, which itself leaves several
    packet times after it. Only differences of delays count, as the clocks are two machines'.

    Every path weighs the same, for spraying is even. A path keeps its last state until it is unheard of for as long
    as eight full buffers take (and at least 2 s): long flows stay on their paths for longer than the pauses between
    short ones, and silence speaks for a blocked path rather than against it. The best delay is the least of the last
    10 to 20 s, so that it holds even while all paths are blocked, and clocks that drift (1e-4) stay within the
    threshold.

    Lost and overdue datagrams with a known path count as blocked ones of it. Those without make a share of their
    own, and pB is the larger of both shares: mostly it is the blocked paths that they were on, and adding would
    count them twice.
    """

    name: EstimatorName = "paths"
    THRESHOLD_PACKETS: Final = 8
    NOISE_S: Final = 0.002
    BUFFER_PACKETS: Final = 256
    MIN_AGE_S: Final = 2.0
    BEST_PERIOD_S: Final = 10.0
    SURE_SAMPLES: Final = 8
    """Datagrams heard of after which the prior has no weight left."""
    LOSS_SMOOTHING: Final = 1 / 64
    """Weight of a new datagram in the share of lost and overdue ones (the n-th one's is at least 1/n)."""

    def __init__(self, packet_time_s: float, max_age_s: float | None = None) -> None:
        self.overdue_s = self.threshold_s(packet_time_s)
        self._threshold_us = round(1e6 * self.overdue_s)
        self._max_age_s = (
            max(8 * self.BUFFER_PACKETS * packet_time_s, self.MIN_AGE_S) if max_age_s is None else max_age_s
        )
        self._paths: dict[int, _Path] = {}
        self._reference: int | None = None
        """First delay ever: all others are kept as signed differences to it, which do not wrap."""
        self._best_us = 0
        self._best_before_us = 0
        self._best_since = 0.0
        self._samples = 0
        self._heard = 0.0
        self._events = 0
        self._lost = 0.0
        self._rtt = _Average()
        self._least_rtt = 0.0
        self._excess_s = _Average()

    @classmethod
    def threshold_s(cls, packet_time_s: float) -> float:
        """Delay above the best from which a datagram counts as blocked, seconds."""
        return max(cls.THRESHOLD_PACKETS * packet_time_s, cls.NOISE_S)

    def ack_rtt(self, rtt_s: float, now: float) -> None:
        if not rtt_s > 0.0:
            return
        self._least_rtt = min(self._least_rtt, rtt_s) if self._least_rtt else rtt_s
        # an ACK that waited behind a gap tells of a blocked path or a timer, not of the round trip
        if rtt_s <= self._least_rtt + self._threshold_us * 1e-6:
            self._rtt.add(rtt_s)

    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        if not 0 <= stamp <= STAMP_LAST:
            return
        if self._reference is None:
            self._reference = delay_us
            self._best_since = now
        excess = serial_difference(delay_us, self._reference)
        self._learn_best(excess, now)
        above_best = excess - min(self._best_us, self._best_before_us)
        blocked = above_best > self._threshold_us
        self._count(now)
        if blocked:
            self._excess_s.add(above_best * 1e-6)
        else:  # a blocked one has been counted when it was overdue
            self._count_lost(False)
        path = self._paths.get(stamp)
        if path is None or now - path.at > self._max_age_s:
            self._paths[stamp] = _Path(excess, float(blocked), now)
        else:
            path.excess_us = excess
            path.blocked = 0.5 * path.blocked + 0.5 * blocked
            path.at = now

    def path_loss(self, stamp: int | None, now: float) -> None:
        self._count(now)
        if stamp is None or not 0 <= stamp <= STAMP_LAST:
            self._count_lost(True)
            return
        path = self._paths.get(stamp)
        if path is None or now - path.at > self._max_age_s:
            self._paths[stamp] = _Path(0, 1.0, now)
        else:
            path.blocked = 0.5 * path.blocked + 0.5
            path.at = now

    def told(self, arrived: int, overdue: int, now: float) -> None:
        """Not used: paths, not packets, are what is counted."""

    def blocking_probability(self, now: float) -> float:
        shares = list(self._recent(now))
        if not shares:
            return min(self.prior, MAX_BLOCKING_PROBABILITY)
        known = min(1.0, self._samples / self.SURE_SAMPLES)
        measured = max(sum(shares) / len(shares), self._lost)
        return min(known * measured + (1.0 - known) * self.prior, MAX_BLOCKING_PROBABILITY)

    def rtt_s(self) -> float:
        return self._rtt.value or 0.0

    def blocked_rtt_s(self) -> float:
        return self.rtt_s() + (self._excess_s.value or 0.0)

    def paths(self, now: float) -> dict[int, tuple[float, float]]:
        """Recent paths by stamp: (last delay above the best in seconds, share of blocked datagrams)."""
        best = min(self._best_us, self._best_before_us)
        return {
            stamp: (max(0.0, (path.excess_us - best) * 1e-6), path.blocked)
            for stamp, path in self._paths.items()
            if now - path.at <= self._max_age_s
        }

    def _recent(self, now: float) -> Iterator[float]:
        return (path.blocked for path in self._paths.values() if now - path.at <= self._max_age_s)

    def _count(self, now: float) -> None:
        if now - self._heard > self._max_age_s:
            # after a silence what was sure before is so no more
            self._samples = self._events = 0
            self._lost = 0.0
        self._samples += 1
        self._heard = now

    def _count_lost(self, lost: bool) -> None:
        self._events += 1
        self._lost += max(self.LOSS_SMOOTHING, 1 / self._events) * (lost - self._lost)

    def _learn_best(self, excess: int, now: float) -> None:
        if self._samples == 0 and not self._paths:
            self._best_us = self._best_before_us = excess
        if now - self._best_since >= self.BEST_PERIOD_S:
            long_ago = now - self._best_since >= 2 * self.BEST_PERIOD_S
            self._best_before_us = excess if long_ago else self._best_us
            self._best_us = excess
            self._best_since = now
        self._best_us = min(self._best_us, excess)
