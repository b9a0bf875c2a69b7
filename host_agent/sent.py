"""What the sender remembers of its datagrams, so that feedback by number tells about entropy values and paths."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from protocol.datagram import NUMBER_MODULUS

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
    """

    __slots__ = ("_sent",)

    def __init__(self) -> None:
        self._sent: dict[int, float] = {}

    def sent(self, number: int, now: float) -> None:
        """Datagram *number*, which the peer will report, leaves now."""
        if len(self._sent) >= RING:
            del self._sent[next(iter(self._sent))]
        self._sent[number] = now

    def sent_many(self, number: int, count: int, now: float) -> None:
        """Datagrams from *number* on leave now."""
        for _ in range(len(self._sent) + count - RING):
            del self._sent[next(iter(self._sent))]
        numbers = (
            range(number, number + count)
            if number + count <= NUMBER_MODULUS
            else [(number + offset) % NUMBER_MODULUS for offset in range(count)]
        )
        self._sent.update(dict.fromkeys(numbers, now))

    def arrived(self, number: int) -> float | None:
        """The peer reports *number*; returns when it left, None if it was reported or was overdue before."""
        return self._sent.pop(number, None)

    def overdue(self, sent_before: float) -> int:
        """How many left before that time and were not reported; each is counted once."""
        count = 0
        while self._sent:
            number = next(iter(self._sent))
            if self._sent[number] >= sent_before:
                break
            del self._sent[number]
            count += 1
        return count
