"""Short numbers of switches: the path stamp that a switch writes, and a leaf's number in metadata and group ids.

A number is 1..4095 (`protocol.underlay`: STAMP_FIRST, STAMP_LAST) and derived from the datapath id alone: bits 0-9 and
16-17 of it, which is the datapath id itself below 1024 and distinguishes tier and number of a lab's switches; where
these are 0 or taken, a hash of the datapath id, and on from there. So the same switches get the same numbers after a
restart, whichever connects first. (Only where two switches want one number may their order of arrival decide.) A
number never changes while its switch is known, also if that is not connected (`controller.plane.forgetting`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from capstan_client.errors import CapstanError
from protocol.underlay import STAMP_FIRST, STAMP_LAST

_COUNT = STAMP_LAST - STAMP_FIRST + 1


class NumbersExhaustedError(CapstanError, RuntimeError):
    """More switches than there are path stamps."""


class SwitchNumbers:
    """The numbers of switches by datapath id; each keeps its own until `release`."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._taken: set[int] = set()

    def __getitem__(self, dpid: int) -> int:
        """Return the number of a switch; KeyError before `assign`."""
        return self._of[dpid]

    def get(self, dpid: int) -> int:
        """Return the number of a switch, 0 before `assign`."""
        return self._of.get(dpid, 0)

    def assign(self, dpids: Iterable[int]) -> None:
        """Give numbers to those of *dpids* that have none. Raises NumbersExhaustedError beyond 4095 switches."""
        fresh = sorted(set(dpids) - self._of.keys())
        # First choices first, so that one switch's second choice does not take another's first.
        unassigned = [dpid for dpid in fresh if not self._take(dpid, dpid & 0x3FF | (dpid >> 16 & 0x3) << 10)]
        for dpid in unassigned:
            if len(self._taken) >= _COUNT:
                raise NumbersExhaustedError(
                    f"switch {dpid:#018x} is one too many: there are {_COUNT} path stamps, one per switch"
                )
            digest = hashlib.blake2b(dpid.to_bytes(8, "big"), digest_size=8).digest()
            first = int.from_bytes(digest, "big")
            for step in range(_COUNT):
                if self._take(dpid, STAMP_FIRST + (first + step) % _COUNT):
                    break

    def release(self, dpid: int) -> None:
        """Let others have the number of a switch that is forgotten."""
        number = self._of.pop(dpid, None)
        if number is not None:
            self._taken.discard(number)

    def _take(self, dpid: int, number: int) -> bool:
        if number < STAMP_FIRST or number in self._taken:
            return False
        self._of[dpid] = number
        self._taken.add(number)
        return True
