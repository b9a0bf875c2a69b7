"""What every erasure code offers. All are systematic and linear: a repair is a sum of multiples of the sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from host_agent.coding.gf256 import Words
from protocol.datagram import CodeId
from protocol.policy import CodeName


class ContradictionError(ValueError):
    """Received symbols of one unit cannot all be right: no packet of it may be rebuilt."""


class Code(ABC):
    name: ClassVar[CodeName]
    id: ClassVar[CodeId]

    @abstractmethod
    def most_repairs(self, k: int) -> int:
        """Repairs beyond this number would be of no use for *k* sources."""

    @abstractmethod
    def encode(self, sources: Words, r: int, seed: int) -> Words:
        """The r repairs (r, words) of sources (k, words); *seed* is an unsigned 32-bit number."""

    @abstractmethod
    def worth_trying(self, missing: int, repairs: int) -> bool:
        """Whether `decode` is likely to find anything with so many sources missing and repairs at hand."""

    @abstractmethod
    def decode(
        self, sources: Words, missing: Sequence[int], repairs: Mapping[int, Words], r: int, seed: int
    ) -> dict[int, Words]:
        """Rebuild what the received symbols determine.

        Args:
            sources: (k, words); rows of missing sources are zeros.
            missing: indices of the sources that have not come, ascending.
            repairs: received repairs by index 0..r-1, each (words,).
            r: repairs that the unit was sent with.
            seed: from the repairs' head.

        Returns:
            Rebuilt symbols by source index; those that are not determined yet are absent.

        Raises:
            ContradictionError: there are more equations than unknowns, and they do not agree.
        """
