"""How many packets a switch may send up: what its meters would let through, were they ours.

A switch that has our entries and meters stays below. One that has not, whatever it is, would take the time of all
others: each packet costs a tenth of a millisecond. So do errors and changes of its ports.
"""

from __future__ import annotations

from typing import Final

from controller.openflow.punts import PORT_PPS, SHARED_PPS
from controller.token_bucket import TokenBucket

MOST_PPS: Final = 4000.0
"""Of one switch, however many ports it says it has."""
BURST: Final = 1000.0
SIGNAL_WEIGHT: Final = 0.1
"""Of a mode signal, in packets: no meter is in its way, and a leaf sends many until it has its update."""


class PacketAllowance:
    """That of one connection; times are in seconds, by the caller's clock."""

    def __init__(self, now: float) -> None:
        self._packets = TokenBucket(BURST, now)

    def take(self, packets: float, ports: int, now: float) -> float:
        """Return for how many seconds nothing more should be read of a switch with so many *ports*, after *packets*."""
        rate = min(MOST_PPS, SHARED_PPS + PORT_PPS * ports)
        level = self._packets.level(rate, now) - packets
        self._packets.spend(packets)
        return max(0.0, -level / rate)
