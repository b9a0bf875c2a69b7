"""Loss, reordering, duplication and corruption on purpose, at the receiving side of an agent: for tests."""

from __future__ import annotations

import heapq
from itertools import count
from typing import Generic, TypeVar

from host_agent.randomness import RandomSource
from protocol.control import Impair

T = TypeVar("T")


class Impairment(Generic[T]):
    """Datagrams in, datagrams out: some never, some twice, some later, some damaged."""

    def __init__(self, setting: Impair, rng: RandomSource) -> None:
        self._setting = setting
        self._rng = rng
        self._waiting: list[tuple[float, int, T]] = []
        self._order = count()

    @property
    def harmful(self) -> bool:
        """Return whether anything is to happen to what arrives."""
        setting = self._setting
        return any((setting.loss, setting.reorder, setting.duplicate, setting.corrupt))

    def set(self, setting: Impair) -> None:
        """Do this from now on."""
        self._setting = setting

    def arrive(self, item: T, now: float) -> list[T]:
        """Return what of an arriving *item* gets through at once."""
        lost, doubled, late = self._rng.random(), self._rng.random(), self._rng.random()
        if lost < self._setting.loss:
            return []
        copies = 2 if doubled < self._setting.duplicate else 1
        if late < self._setting.reorder:
            for _ in range(copies):
                delay = self._setting.reorder_delay_s * self._rng.random()
                heapq.heappush(self._waiting, (now + delay, next(self._order), item))
            return []
        return [item] * copies

    def damage(self, data: bytes) -> bytes:
        """Return *data*, with one bit flipped in the stated share of cases."""
        if not data or self._rng.random() >= self._setting.corrupt:
            return data
        broken = bytearray(data)
        bit = int(self._rng.integers(len(data) * 8))
        broken[bit // 8] ^= 1 << bit % 8
        return bytes(broken)

    def due(self, now: float) -> list[T]:
        """Return delayed items whose time has come."""
        items = []
        while self._waiting and self._waiting[0][0] <= now:
            items.append(heapq.heappop(self._waiting)[2])
        return items

    def deadline(self) -> float | None:
        """Return when `due` has something to give, seconds; None: nothing is delayed."""
        return self._waiting[0][0] if self._waiting else None
