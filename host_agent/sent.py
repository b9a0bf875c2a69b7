"""What the sender remembers of its datagrams, so that feedback by number tells about entropy values and paths."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from protocol.datagram import NUMBER_MODULUS

RING: Final = 1 << 15
"""Datagrams remembered for each peer."""
_REPORTED: Final = np.inf


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

    def sent_many(self, number: int, entropies: Sequence[int]) -> None:
        """Datagrams from *number* on leave with these EVs."""
        count, slot = len(entropies), number % RING
        if slot + count > RING or number + count > NUMBER_MODULUS:
            for offset, entropy in enumerate(entropies):
                self.sent((number + offset) % NUMBER_MODULUS, entropy)
            return
        self._numbers[slot : slot + count] = array("I", range(number, number + count))
        self._entropy[slot : slot + count] = array("H", entropies)

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

    def arrived_many(self, numbers: Sequence[int], stamps: Sequence[int]) -> None:
        """As `arrived`, of many."""
        ours, entropies, stamp_of = self._numbers, self._entropy, self._stamp_of_entropy
        for number, stamp in zip(numbers, stamps, strict=True):
            slot = number % RING
            if ours[slot] == number and entropies[slot]:
                stamp_of[entropies[slot]] = stamp

    def stamp_of(self, entropy: int) -> int | None:
        """Path that packets with this EV took when last heard of; None: not heard of yet."""
        return self._stamp_of_entropy[entropy] or None


class Outstanding:
    """Datagrams to one peer that it has not reported, so that blocked paths are noticed before they deliver.

    Receipts alone speak only of paths that delivered: towards a new peer, all of the first ones come over free paths.
    Numbers must be given in the order in which they leave; the last RING numbers are remembered.
    """

    __slots__ = ("_end", "_first", "_left")

    def __init__(self) -> None:
        self._left = np.full(RING, _REPORTED)
        """When each left, by the number's last bits."""
        self._first = 0
        """Nothing before this one is waited for, and nothing from `_end` on."""
        self._end = 0

    def sent(self, number: int, now: float) -> None:
        """Datagram *number*, which the peer will report, leaves now."""
        if number != self._end or (number - self._first) % NUMBER_MODULUS >= RING:
            self.sent_many(number, 1, now)
            return
        self._left[number % RING] = now
        self._end = (number + 1) % NUMBER_MODULUS

    def sent_many(self, number: int, count: int, now: float) -> None:
        """Datagrams from *number* on leave now, RING at most."""
        if self._first == self._end:
            self._first = number
        for part in _slots(self._end, (number - self._end) % NUMBER_MODULUS):
            self._left[part] = _REPORTED
        self._end = (number + count) % NUMBER_MODULUS
        for part in _slots(number, count):
            self._left[part] = now
        if (self._end - self._first) % NUMBER_MODULUS > RING:
            self._first = (self._end - RING) % NUMBER_MODULUS

    def arrived_many(self, numbers: list[int]) -> tuple[int, float | None]:
        """The peer reports *numbers*.

        Returns how many of them were waited for (neither reported nor overdue before), and when the last of those
        left.
        """
        count = len(numbers)
        if not count:
            return 0, None
        first, slot = numbers[0], numbers[0] % RING
        behind = (first - self._first) % NUMBER_MODULUS
        if (
            slot + count <= RING
            and behind + count <= (self._end - self._first) % NUMBER_MODULUS
            and numbers == list(range(first, first + count))
        ):
            # all that was told of, mostly: they came in the order in which they left
            part = self._left[slot : slot + count]
            newest = float(part[-1])
            if newest < _REPORTED and int(np.count_nonzero(part < _REPORTED)) == count:
                part.fill(_REPORTED)
                return count, newest
        told = np.array(numbers, np.int64)
        told = told[(told - self._first) % NUMBER_MODULUS < (self._end - self._first) % NUMBER_MODULUS]
        slots = told % RING
        left = self._left[slots]
        waited = left < _REPORTED
        if not waited.any():
            return 0, None
        slots, newest = slots[waited], float(left[waited].max())
        self._left[slots] = _REPORTED
        return (len(slots) if (slots[1:] > slots[:-1]).all() else len(set(slots.tolist()))), newest

    def overdue(self, sent_before: float) -> int:
        """How many left before that time and were not reported; each is counted once."""
        count = 0
        for part in _slots(self._first, (self._end - self._first) % NUMBER_MODULUS):
            left = self._left[part]
            late = left < sent_before
            count += int(np.count_nonzero(late))
            left[late] = _REPORTED
            waiting = left < _REPORTED
            if waiting.any():
                self._first = (self._first + int(waiting.argmax())) % NUMBER_MODULUS
                return count
            self._first = (self._first + len(left)) % NUMBER_MODULUS
        return count


def _slots(number: int, count: int) -> list[slice]:
    """Where *count* numbers from *number* on are in a ring (of more, all of the ring)."""
    count, slot = min(count, RING), number % RING
    if slot + count <= RING:
        return [slice(slot, slot + count)] if count else []
    return [slice(slot, RING), slice(0, slot + count - RING)]
