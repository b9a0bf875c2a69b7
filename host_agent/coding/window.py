"""The congestion window of a TCP flow as the agent of its sender sees it: what fills a unit of HTPC and Corrective.

The window is inside the host's kernel. What shows outside is the data in flight: the highest sequence number that was
sent, less the highest acknowledgement that came back. A sender that has enough to send keeps as much in flight as its
window allows, so the most that was in flight over the current and the last round trip is the estimate. It is too small
for a flow that has little to send (which then has no more to code either), and too large while losses are repaired
(what was acknowledged selectively still counts as in flight).
"""

from __future__ import annotations

from typing import Final

from protocol.datagram import serial_difference

INITIAL_WINDOW: Final = 10
"""Packets, before the first round trip is over (RFC 6928)."""


class WindowEstimate:
    """One TCP flow and direction. Sequence numbers are modulo 2**32."""

    __slots__ = ("_acked", "_before", "_largest", "_most", "_next", "_round")

    def __init__(self) -> None:
        self._next: int | None = None
        """Behind the highest byte sent."""
        self._acked = 0
        self._round = 0
        """The round trip is over when this is acknowledged."""
        self._most = 0
        """Most bytes in flight in this round trip, and in the one before (None: there was none)."""
        self._before: int | None = None
        self._largest = 1

    def sent(self, sequence: int, payload: int, size: int | None = None) -> None:
        """A segment of *payload* bytes from *sequence* on leaves, for the first time or again.

        Or segments, of *size* bytes each but for the last.
        """
        end = sequence + payload
        if self._next is None:
            self._next = self._round = end
            self._acked = sequence
        elif serial_difference(end, self._next) > 0:
            self._next = end
        largest = payload if size is None else min(size, payload)
        if largest > self._largest:
            self._largest = largest
        flight = serial_difference(self._next, self._acked)
        if flight > self._most:
            self._most = flight

    def acknowledged(self, ack: int) -> None:
        """The receiver has everything before *ack*."""
        if self._next is None or serial_difference(ack, self._acked) <= 0:
            return
        if serial_difference(ack, self._next) > 0:  # a FIN's, or of what went before we saw the flow
            ack = self._next
        self._acked = ack
        if serial_difference(ack, self._round) >= 0:
            self._before, self._most = self._most, serial_difference(self._next, ack)
            self._round = self._next

    def packets(self) -> int:
        """The window in packets of the flow's largest payload, at least 1."""
        if self._before is None:
            return max(INITIAL_WINDOW, -(-self._most // self._largest))
        return max(1, -(-max(self._most, self._before) // self._largest))
