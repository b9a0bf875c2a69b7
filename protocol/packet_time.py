"""The packet time, in which schemes count, and the times of policies where a scheme says nothing."""

from __future__ import annotations

from typing import Final

PACKET_BYTES: Final = 1500
"""What a packet counts as: an IP packet of a full Ethernet frame."""
LINK_RATE_MBPS: Final = 20.0
"""Rate of the slowest fabric link where nothing else is said, in Mbit/s."""


def packet_time_s(rate_mbps: float) -> float:
    """Return the seconds that `PACKET_BYTES` take on a link of *rate_mbps* (Mbit/s)."""
    return PACKET_BYTES * 8 / (rate_mbps * 1e6)


PACKET_TIME_S: Final = packet_time_s(LINK_RATE_MBPS)
PATH_TIMES: Final = {"gap_s": 41.7, "congested_s": 50.0, "freeze_s": 500.0, "avoid_s": 128.0}
"""Times of path policies, in packet times: LetFlow's 500 us at 1 Gbit/s; a fifth of a buffer of 256 packets, where
REPS's switches begin to mark; two full buffers; half of one."""
FLUSH_PACKET_TIMES: Final = 1.25
"""A unit that has got no packet for this long is closed with the packets it has."""
