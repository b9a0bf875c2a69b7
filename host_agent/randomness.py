"""What an agent draws at random, without the library that draws whole arrays: loading that takes half of a start."""

from __future__ import annotations

from random import Random
from typing import Protocol, SupportsInt


class RandomSource(Protocol):
    """What decisions draw from: numpy's Generator, or `StandardRandom`."""

    def integers(self, high: int, /) -> SupportsInt:
        """Return a whole number of [0, *high*)."""

    def random(self) -> float:
        """Return a number of [0, 1)."""


class StandardRandom(Random):
    """The standard library's generator as a source; without a seed, the system's randomness is its seed."""

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, *high*)."""
        return self.randrange(high)
