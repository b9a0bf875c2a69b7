"""The receiver's side of one flow's coding: sources and repairs go in as they come, rebuilt packets come out.

A peer may send anything: what cannot be is counted and dropped, never raised, and a unit whose symbols contradict
one another yields nothing. Memory is bounded in packets, bytes and units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from capstan_native import KeptPackets

from host_agent.coding.codes import MAX_SYMBOL_BYTES, Code, code_numbered
from host_agent.coding.native import ContradictionError
from protocol.datagram import (
    NUMBER_MODULUS,
    REPAIR_HEAD_BYTES,
    SYMBOL_LENGTH_BYTES,
    CodeId,
    RepairHead,
    serial_difference,
)

MAX_K: Final = 128
MAX_R: Final = 64
_CODE_IDS: Final = frozenset(map(int, CodeId))
WINDOW: Final = 4 * MAX_K
"""Sources are remembered over this many positions."""


@dataclass(slots=True)
class DecoderCounters:
    """What happened to what came; all count events since the flow began."""

    sources: int = 0
    repairs: int = 0
    recovered: int = 0
    """Source packets rebuilt."""
    duplicate_sources: int = 0
    """Sources whose packet was there already, as received or as rebuilt."""
    late_sources: int = 0
    """Sources older than what is remembered."""
    surplus_repairs: int = 0
    """Repairs of units that were complete already: what redundancy cost."""
    duplicate_repairs: int = 0
    late_repairs: int = 0
    """Repairs of units that are forgotten or given up."""
    malformed_repairs: int = 0
    """Heads or symbols that cannot be."""
    inconsistent_repairs: int = 0
    """Repairs that say otherwise than their unit's first repair did."""
    failed_units: int = 0
    """Units given up because their symbols contradict one another."""
    expired_units: int = 0
    """Units forgotten incomplete: by age, by newer units, or because their sources were forgotten."""


@dataclass(slots=True)
class _Unit:
    head: RepairHead
    code: Code
    length: int
    """Bytes of a symbol."""
    since: float
    repairs: dict[int, bytes] = field(default_factory=dict)
    given_up: bool = False


class UnitDecoder:
    """One receiving flow. Times are in seconds and must not run backwards.

    Args:
        max_bytes: of packets and repairs kept.
        max_units: units kept that are incomplete.
        max_age_s: a unit that is incomplete after this time is forgotten.
    """

    def __init__(self, max_bytes: int = 1 << 20, max_units: int = 16, max_age_s: float = 2.0) -> None:
        self._max_bytes = max_bytes
        self._max_units = max_units
        self._max_age_s = max_age_s
        self._kept: KeptPackets | None = None
        self._units: dict[int, _Unit] = {}
        self._newest = 0
        self._repair_bytes = 0
        self.counters = DecoderCounters()

    def source(self, position: int, packet: bytes | memoryview, now: float) -> list[tuple[int, bytes]]:
        """A source came. Returns what it lets rebuild: (position, packet), ascending; never *position* itself."""
        position %= NUMBER_MODULUS
        self.counters.sources += 1
        self._forget_old_units(now)
        if self._forgotten(position):
            self.counters.late_sources += 1
            return []
        if self.known(position):
            self.counters.duplicate_sources += 1
            return []
        self._keep(position, bytes(packet))
        self._trim()
        return self._rebuild([position], now)

    def takes_run(self, position: int, count: int, now: float) -> bool:
        """Whether `source_run` may be used: all of them are new and not forgotten, and no unit waits for them."""
        self._forget_old_units(now)
        if self._kept is None or self._forgotten(position):
            return False
        if serial_difference(position, self._newest) <= 0 and self._kept.count(position, count):
            return False
        return not self._units or not any(
            _covers(first, unit, position) or (first - position) % NUMBER_MODULUS < count
            for first, unit in self._units.items()
        )

    def source_run(self, position: int, packets: list[bytes]) -> None:
        """Sources came, with consecutive positions from *position* on (`takes_run`); they let nothing be rebuilt."""
        assert self._kept is not None  # `takes_run`
        self.counters.sources += len(packets)
        for at in range(0, len(packets), MAX_K):
            some = packets[at : at + MAX_K]
            first = (position + at) % NUMBER_MODULUS
            self._advance((first + len(some) - 1) % NUMBER_MODULUS)
            if not self._forgotten(first):
                self._kept.put_run(first, some)
            self._trim()

    def repair(
        self, position: int, head: RepairHead, symbol: bytes | memoryview, now: float
    ) -> list[tuple[int, bytes]]:
        """A repair of the unit from *position* on came. Returns what it lets rebuild, as `source` does."""
        position %= NUMBER_MODULUS
        counters = self.counters
        counters.repairs += 1
        self._forget_old_units(now)
        if not (
            0 < head.k <= MAX_K
            and 0 <= head.index < head.r <= MAX_R
            and SYMBOL_LENGTH_BYTES < len(symbol) <= MAX_SYMBOL_BYTES
        ):
            counters.malformed_repairs += 1
            return []
        if self._forgotten(position):
            counters.late_repairs += 1
            return []
        unit = self._units.get(position)
        if unit is None:
            if self._kept is not None and self._kept.count(position, head.k) == head.k:
                counters.surplus_repairs += 1
                return []
            unit = _Unit(head, code_numbered(head.code), len(symbol), now)
            self._make_room()
            self._units[position] = unit
        elif unit.given_up:
            counters.late_repairs += 1
            return []
        elif len(symbol) != unit.length or not _same_unit(head, unit.head):
            counters.inconsistent_repairs += 1
            return []
        elif head.index in unit.repairs:
            counters.duplicate_repairs += 1
            return []
        unit.repairs[head.index] = bytes(symbol)
        self._repair_bytes += unit.length
        self._trim()
        if position not in self._units:
            return []
        rebuilt = self._decode(position, unit)
        return self._rebuild([place for place, _ in rebuilt], now, rebuilt)

    def surplus_run(self, position: int, bodies: list[bytes], now: float) -> bool:
        """Repairs of the unit from *position* on came, as on the wire, which `repair` would only count as surplus.

        False: they are to be given to `repair`, each by itself, and nothing was done.
        """
        self._forget_old_units(now)
        kept, first = self._kept, bodies[0]
        if (
            kept is None
            or position in self._units
            or len(first) < REPAIR_HEAD_BYTES
            or self._forgotten(position)
        ):
            return False
        k, r, size = first[1], first[2], len(first)
        if not (
            _sound(first)
            and kept.count(position, k) == k
            and all(len(body) == size and body[:3] == first[:3] and body[3] < r for body in bodies)
        ):
            return False
        self.surplus(len(bodies))
        return True

    def needs_none_of(self, position: int, repairs: list[tuple[int, int, list[bytes]]]) -> bool:
        """Whether `repair` would only count repairs as surplus that come among sources from *position* on.

        The sources may be taken as a run (`takes_run`). *repairs*: as in `host_agent.wire.CodedRun`.
        """
        kept = self._kept
        if kept is None:
            return False
        for behind, unit, bodies in repairs:
            first = bodies[0]
            k, ahead = first[1], serial_difference(unit, position)
            if (
                unit in self._units
                or ahead + k > behind
                or self._forgotten(unit)
                or not _sound(first)
                or (ahead < 0 and kept.count(unit, min(k, -ahead)) < min(k, -ahead))
            ):
                return False
        return True

    def surplus(self, count: int) -> None:
        """Repairs came of which `needs_none_of` has told."""
        self.counters.repairs += count
        self.counters.surplus_repairs += count

    def known(self, position: int) -> bool:
        """Whether the packet of *position* came or was rebuilt (False for what is forgotten)."""
        return self._kept is not None and position % NUMBER_MODULUS in self._kept

    def pending(self, position: int) -> bool:
        """Whether the packet of *position* may still be rebuilt: holding packets behind it can pay.

        False if it is known or forgotten, or if a unit that covers it was given up. True does not promise
        anything: its unit's repairs may never come (`shortfall` tells more).
        """
        position %= NUMBER_MODULUS
        if self.known(position) or self._forgotten(position):
            return False
        units = [unit for first, unit in self._units.items() if _covers(first, unit, position)]
        return not units or any(not unit.given_up for unit in units)

    def shortfall(self, position: int) -> int | None:
        """Symbols (sources or repairs) that the unit of *position* still needs; None if no repair of it came."""
        position %= NUMBER_MODULUS
        if self.known(position):
            return 0
        needs = [
            max(1, self._missing(first, unit.head.k) - len(unit.repairs))
            for first, unit in self._units.items()
            if not unit.given_up and _covers(first, unit, position)
        ]
        return min(needs, default=None)

    def deadline(self) -> float | None:
        """When `expire` has something to do."""
        return next(iter(self._units.values())).since + self._max_age_s if self._units else None

    def expire(self, now: float) -> None:
        """Forget units that are too old. Called by `source` and `repair` as well."""
        self._forget_old_units(now)

    @property
    def kept_bytes(self) -> int:
        """Bytes of packets and repairs that are kept now."""
        return self._repair_bytes + (0 if self._kept is None else self._kept.bytes)

    @property
    def kept_units(self) -> int:
        """Incomplete units that are kept now."""
        return len(self._units)

    def _rebuild(
        self, changed: list[int], now: float, rebuilt: list[tuple[int, bytes]] | None = None
    ) -> list[tuple[int, bytes]]:
        """Try every unit that covers a changed position, until nothing more comes of it (units may overlap)."""
        rebuilt = [] if rebuilt is None else rebuilt
        while changed:
            position = changed.pop()
            for first, unit in list(self._units.items()):
                if first in self._units and _covers(first, unit, position):
                    more = self._decode(first, unit)
                    rebuilt += more
                    changed += [place for place, _ in more]
        if rebuilt:
            self._trim()
            base = rebuilt[0][0]
            rebuilt.sort(key=lambda item: serial_difference(item[0], base))
        return rebuilt

    def _decode(self, first: int, unit: _Unit) -> list[tuple[int, bytes]]:
        if unit.given_up:
            return []
        k = unit.head.k
        missing = self._missing(first, k)
        if not missing:
            self._drop_unit(first)
            return []
        if not unit.code.worth_trying(missing, len(unit.repairs)):
            return []
        packets = [None] * k if self._kept is None else self._kept.packets(first, k)
        try:
            found = unit.code.decode(packets, unit.repairs, unit.head.r, unit.head.seed)
        except ContradictionError:
            self._give_up(unit)
            return []
        rebuilt = [((first + index) % NUMBER_MODULUS, packet) for index, packet in found]
        for position, packet in rebuilt:
            self._keep(position, packet)
        self.counters.recovered += len(rebuilt)
        if len(rebuilt) == missing:
            self._drop_unit(first)
        return rebuilt

    def _missing(self, first: int, k: int) -> int:
        return k if self._kept is None else k - self._kept.count(first, k)

    def _forgotten(self, position: int) -> bool:
        return self._kept is not None and serial_difference(position, self._kept.floor) < 0

    def _keep(self, position: int, packet: bytes) -> None:
        if self._kept is None:
            # packets before the first that came may still come
            self._kept = KeptPackets((position - WINDOW) % NUMBER_MODULUS)
            self._newest = position
        self._advance(position)
        if not self._forgotten(position):
            self._kept.put(position, packet)

    def _advance(self, position: int) -> None:
        """The newest position is this one, if it is newer; forget those that fall out of the window."""
        if serial_difference(position, self._newest) > 0 and self._kept is not None:
            self._newest = position
            steps = serial_difference((position - WINDOW) % NUMBER_MODULUS, self._kept.floor)
            if steps > 0:
                self._raise_floor(steps)

    def _trim(self) -> None:
        """Forget the oldest units, then packets, above `max_bytes`."""
        while self.kept_bytes > self._max_bytes and self._units:
            self._expire_unit(next(iter(self._units)))
        while self._kept is not None and self._kept.bytes > self._max_bytes:
            self._raise_floor(1)

    def _raise_floor(self, steps: int) -> None:
        """Forget the oldest packets, and the units that would need them."""
        assert self._kept is not None
        self._kept.raise_floor(steps)
        if self._units:
            for first in [first for first in self._units if self._forgotten(first)]:
                self._expire_unit(first)

    def _make_room(self) -> None:
        while len(self._units) >= self._max_units:
            self._expire_unit(next(iter(self._units)))

    def _forget_old_units(self, now: float) -> None:
        while self._units:
            first, unit = next(iter(self._units.items()))
            if now - unit.since < self._max_age_s:
                break
            self._expire_unit(first)

    def _expire_unit(self, first: int) -> None:
        if not self._units[first].given_up:
            self.counters.expired_units += 1
        self._drop_unit(first)

    def _drop_unit(self, first: int) -> None:
        unit = self._units.pop(first)
        self._repair_bytes -= unit.length * len(unit.repairs)

    def _give_up(self, unit: _Unit) -> None:
        """Keep the unit's name, so that its other repairs are known for what they are, but not its symbols."""
        self.counters.failed_units += 1
        self._repair_bytes -= unit.length * len(unit.repairs)
        unit.repairs = {}
        unit.given_up = True


def _same_unit(head: RepairHead, other: RepairHead) -> bool:
    return (head.code, head.k, head.r, head.seed) == (other.code, other.k, other.r, other.seed)


def _covers(first: int, unit: _Unit, position: int) -> bool:
    return (position - first) % NUMBER_MODULUS < unit.head.k


def _sound(body: bytes) -> bool:
    """Whether a repair as on the wire, of one head at least, is of a unit that can be; its index is not looked at."""
    symbol_bytes = len(body) - REPAIR_HEAD_BYTES
    return (
        body[0] in _CODE_IDS
        and 0 < body[1] <= MAX_K
        and body[2] <= MAX_R
        and SYMBOL_LENGTH_BYTES < symbol_bytes <= MAX_SYMBOL_BYTES
    )
