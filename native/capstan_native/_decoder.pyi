"""What is rebuilt of a flow's units."""

import builtins
from typing import Final

from protocol.datagram import RepairHead

class DecoderCounters:
    """What happened to what came; all count events since the flow began."""

    @property
    def sources(self) -> int: ...
    @property
    def repairs(self) -> int: ...
    @property
    def recovered(self) -> int:
        """Source packets rebuilt."""
    @property
    def duplicate_sources(self) -> int:
        """Sources whose packet was there already, as received or as rebuilt."""
    @property
    def late_sources(self) -> int:
        """Sources older than what is remembered."""
    @property
    def surplus_repairs(self) -> int:
        """Repairs of units that were complete already: what redundancy cost."""
    @property
    def duplicate_repairs(self) -> int: ...
    @property
    def late_repairs(self) -> int:
        """Repairs of units that are forgotten or given up."""
    @property
    def malformed_repairs(self) -> int:
        """Heads or symbols that cannot be."""
    @property
    def inconsistent_repairs(self) -> int:
        """Repairs that say otherwise than their unit's first repair did."""
    @property
    def failed_units(self) -> int:
        """Units given up because their symbols contradict one another."""
    @property
    def expired_units(self) -> int:
        """Units forgotten incomplete: by age, by newer units, or because their sources were forgotten."""

class UnitDecoder:
    """The receiver's side of one flow's coding: sources and repairs go in as they come, rebuilt packets come out.

    A peer may send anything: what cannot be is counted and dropped, never raised. Times are in seconds and must not run
    backwards; positions count modulo 2**32.

    max_bytes: of packets and repairs kept. max_units: units kept that are incomplete. max_age_s: a unit that is
    incomplete after this time is forgotten.
    """

    MAX_K: Final[int]
    WINDOW: Final[int]
    """Sources are remembered over this many positions."""
    def __init__(self, max_bytes: int = ..., max_units: int = 16, max_age_s: float = 2.0) -> None: ...
    @property
    def counters(self) -> DecoderCounters:
        """As they are now."""
    @property
    def kept_bytes(self) -> int:
        """Bytes of packets and repairs that are kept now."""
    @property
    def kept_units(self) -> int:
        """Incomplete units that are kept now."""
    def source(self, position: int, packet: builtins.bytes, now: float) -> list[tuple[int, builtins.bytes]]:
        """Take in a source. Return what it lets rebuild: (position, packet), ascending; never *position* itself."""
    def repair(
        self, position: int, head: RepairHead, symbol: builtins.bytes, now: float
    ) -> list[tuple[int, builtins.bytes]]:
        """Take in a repair of the unit from *position* on. Return what it lets rebuild, as `source` does."""
    def known(self, position: int) -> bool:
        """Return True if the packet of *position* came or was rebuilt (False for what is forgotten)."""
    def pending(self, position: int) -> bool:
        """Return True if the packet of *position* may still be rebuilt: holding packets behind it can pay.

        False if it is known or forgotten, or if all units that cover it were given up. True promises nothing.
        """
    def shortfall(self, position: int) -> int | None:
        """Return how many symbols the unit of *position* still needs; None if no repair of it came."""
    def deadline(self) -> float | None:
        """Return when `expire` has something to do."""
    def expire(self, now: float) -> None:
        """Forget units that are too old. Called by `source` and `repair` as well."""
