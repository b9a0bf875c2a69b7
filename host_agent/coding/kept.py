"""The packets of one receiving flow that are remembered, by position: a ring, so that runs go in and out as slices."""

from __future__ import annotations

from typing import Final

from protocol.datagram import NUMBER_MODULUS

RING: Final = 1024
"""Positions from `floor` on that can be kept. A power of two."""


class KeptPackets:
    """Positions are modulo 2**32; those kept are `floor` .. `floor` + RING - 1."""

    __slots__ = ("_packets", "_there", "bytes", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.bytes = 0
        """Of all packets that are kept."""
        self._packets: list[bytes | None] = [None] * RING
        self._there = bytearray(RING)

    def __contains__(self, position: int) -> bool:
        return (position - self.floor) % NUMBER_MODULUS < RING and self._there[position % RING] == 1

    def put(self, position: int, packet: bytes) -> None:
        """Keep a packet that is not there. Raises ValueError if its position cannot be kept."""
        self.put_run(position, [packet])

    def put_run(self, position: int, packets: list[bytes]) -> None:
        """Keep packets at consecutive positions, none of which is there. Raises ValueError as `put` does."""
        count = len(packets)
        if (position - self.floor) % NUMBER_MODULUS > RING - count:
            raise ValueError(
                f"{count} packets from position {position} on cannot be kept from {self.floor} on"
            )
        start = position % RING
        first = min(count, RING - start)
        self._packets[start : start + first] = packets[:first]
        self._there[start : start + first] = b"\x01" * first
        if first < count:
            self._packets[: count - first] = packets[first:]
            self._there[: count - first] = b"\x01" * (count - first)
        self.bytes += sum(map(len, packets))

    def count(self, position: int, count: int) -> int:
        """How many of *count* positions from *position* on are there."""
        if (position - self.floor) % NUMBER_MODULUS > RING - count:
            return sum((position + offset) % NUMBER_MODULUS in self for offset in range(count))
        start = position % RING
        there = self._there.count(1, start, start + count)
        return there if start + count <= RING else there + self._there.count(1, 0, start + count - RING)

    def packets(self, position: int, count: int) -> list[bytes | None]:
        """The packets of *count* positions from *position* on, None where there is none."""
        if (position - self.floor) % NUMBER_MODULUS > RING - count:
            places = ((position + offset) % NUMBER_MODULUS for offset in range(count))
            return [self._packets[place % RING] if place in self else None for place in places]
        start = position % RING
        some = self._packets[start : start + count]
        return some if len(some) == count else some + self._packets[: count - len(some)]

    def raise_floor(self, steps: int) -> None:
        """Forget so many positions from the floor on."""
        count = min(steps, RING)
        gone = self.packets(self.floor, count)
        self.bytes -= sum(map(len, filter(None, gone)))
        start = self.floor % RING
        first = min(count, RING - start)
        self._packets[start : start + first] = [None] * first
        self._there[start : start + first] = bytes(first)
        self._packets[: count - first] = [None] * (count - first)
        self._there[: count - first] = bytes(count - first)
        self.floor = (self.floor + steps) % NUMBER_MODULUS
