"""The sender's side of one flow's coding: the door to `native/agent/src/coding/unit.rs`, and repairs made of units."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from host_agent.coding import native
from host_agent.coding.codes import Code, code_named
from host_agent.coding.redundancy import rules_of
from protocol.datagram import RepairHead
from protocol.policy import CodingPolicy


class Repair(NamedTuple):
    """One repair to send: position of its unit's first source, its head, its coded symbol."""

    position: int
    head: RepairHead
    symbol: bytes


class ClosedUnit(NamedTuple):
    """A unit whose repairs are to be made."""

    code: Code
    position: int
    """Of its first source."""
    k: int
    r: int
    seed: int
    symbol_bytes: int
    packets: list[bytes]

    def repairs(self) -> list[Repair]:
        """Its repairs, each by itself."""
        symbols = self.code.encode(self.packets, self.r, self.seed)
        return [
            Repair(self.position, RepairHead(self.code.id, self.k, self.r, index, self.seed), symbol)
            for index, symbol in enumerate(symbols)
        ]


class UnitEncoder(native.UnitEncoder[ClosedUnit]):
    """One sending flow. Times are in seconds and must not run backwards."""

    def __new__(cls, coding: CodingPolicy, rng: np.random.Generator) -> Self:
        """Return an encoder without an open unit; *rng* gives the seed of its own draws."""
        closed = partial(ClosedUnit, code_named(coding.code))
        return super().__new__(cls, rules_of(coding), int(rng.integers(1 << 63)), closed)

    def add(self, position: int, packet: bytes, now: float, push: bool) -> list[Repair]:
        """`take`, with the repairs made."""
        return _repairs(self.take(position, packet, now, push))

    def flush(self, now: float) -> list[Repair]:
        """Close the open unit if its deadline has come."""
        deadline = self.deadline()
        return self.close() if deadline is not None and now >= deadline else []

    def close(self) -> list[Repair]:
        """`end`, with the repairs made."""
        return _repairs(self.end())


def _repairs(units: list[ClosedUnit]) -> list[Repair]:
    return [repair for unit in units for repair in unit.repairs()]
