"""Estimators of the blocking probability: native/agent/src/blocking."""

from typing import Final

class BlockingEstimator:
    """Estimates pB of a peer's next packet. Times are in seconds and must not run backwards."""

    MAX_BLOCKING_PROBABILITY: Final[float]
    PRIOR: Final[float]
    prior: float
    """pB while nothing is known of this peer; an agent may set it to what it knows of its other peers."""
    @property
    def overdue_s(self) -> float:
        """See `path_loss`."""
    def ack_rtt(self, rtt_s: float, now: float) -> None:
        """An inner ACK showed this round-trip time."""
    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        """A datagram over path *stamp* took *delay_us* one way: unsigned 32 bit, arbitrary offset."""
    def path_loss(self, stamp: int | None, now: float) -> None:
        """A datagram is lost or overdue; *stamp* is its path if that is known. Once for each datagram.

        It is overdue when the peer has reported one that was sent more than `overdue_s` later: reports of blocked paths
        are late by as much as these are blocked, so those that come first all speak of the others.
        """
    def reported(self, arrived: int, overdue: int, now: float) -> None:
        """One feedback: of coded datagrams not reported before, so many had arrived, so many were overdue or lost.

        Each coded datagram is counted once, on whatever path.
        """
    def blocking_probability(self, now: float) -> float:
        """pB, 0 .. 1; of all but `AckShareEstimator` at most MAX_BLOCKING_PROBABILITY."""
    def rtt_s(self) -> float:
        """Round-trip time over paths that are not blocked, seconds; 0.0 while nothing is known."""
    def blocked_rtt_s(self) -> float:
        """Round-trip time over blocked paths, seconds; at least `rtt_s`."""

class PathsEstimator(BlockingEstimator):
    """The share of paths whose recent one-way delay is far above the best (native/agent/src/blocking/paths.rs)."""

    def __init__(self, packet_time_s: float, max_age_s: float | None = None) -> None: ...
    def paths(self, now: float) -> dict[int, tuple[float, float]]:
        """Recent paths by stamp: (last delay above the best in seconds, share of blocked datagrams)."""

class RttEstimator(BlockingEstimator):
    """The share of ACKs whose RTT is above twice the smoothed average of those before."""

    MIN_SAMPLES: Final[int]
    def __init__(self, packet_time_s: float, interval_s: float | None = None) -> None: ...

class LossRateEstimator(BlockingEstimator):
    """P_L of HTPC's Eq. 1, where what is overdue counts as lost."""

    MIN_SAMPLES: Final[int]
    def __init__(self, packet_time_s: float, sampling_s: float | None = None) -> None: ...

class AckShareEstimator(BlockingEstimator):
    """As printed (HTPC, Eq. 4; CAPS, sections VI and IX-C): ACKs of a sampling period above twice its average RTT.

    *smoothed*: above twice RTT_smooth = 7/8 RTT_smooth + 1/8 of that average.
    """

    def __init__(
        self, packet_time_s: float, sampling_s: float | None = None, smoothed: bool = False
    ) -> None: ...
