"""What the sender remembers of its datagrams, so that feedback by number tells about entropy values and paths."""

from __future__ import annotations

from array import array
from typing import Final

RING: Final = 1 << 15
"""Datagrams remembered for each peer."""


class SentLog:
    """Entropy values of the last datagrams to one peer, and the paths that they turned out to take."""

    __slots__ = ("_entropy", "_numbers", "_stamp_of_entropy")

    def __init__(self) -> None:
        self._numbers = array("I", bytes(4 * RING))
        self._entropy = array("H", bytes(2 * RING))
        self._stamp_of_entropy = array("H", bytes(2 * 65536))

    def sent(self, number: int, entropy: int) -> None:
        """Datagram *number* leaves with this EV."""
        slot = number % RING
        self._numbers[slot] = number
        self._entropy[slot] = entropy

    def entropy_of(self, number: int) -> int | None:
        """EV of a datagram; None if it is forgotten or was never sent."""
        slot = number % RING
        entropy = self._entropy[slot]
        return entropy if entropy and self._numbers[slot] == number else None

    def arrived(self, number: int, stamp: int) -> bool:
        """The peer got *number* over path *stamp*. False: we do not remember having sent it."""
        entropy = self.entropy_of(number)
        if entropy is None:
            return False
        self._stamp_of_entropy[entropy] = stamp
        return True

    def stamp_of(self, entropy: int) -> int | None:
        """Path that packets with this EV took when last heard of; None: not heard of yet."""
        return self._stamp_of_entropy[entropy] or None
