"""In-order release of one receiving flow: packets behind a gap wait until it is filled or a timer fires.

Positions are the flow's packet numbers modulo 2**32. Each position is released at most once, whether its packet
came itself, came twice, or was rebuilt from repairs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.datagram import NUMBER_MODULUS, serial_difference

REMEMBERED_GAPS: Final = 4096
"""Positions given up that may still be released when their packet comes late."""
MAX_HELD: Final = 8192
"""Packets held at most; beyond it the oldest gap is given up."""


class _Held(NamedTuple):
    packet: bytes
    since: float


class Release:
    """One flow. A timeout of 0 s holds nothing back: packets go out as they come, each once."""

    __slots__ = (
        "_deadline",
        "_held",
        "_skipped",
        "_timeout",
        "abandoned",
        "duplicates",
        "held_total",
        "next",
        "timeouts",
    )

    def __init__(self, first: int) -> None:
        self.next = first
        """The position that is due."""
        self._held: dict[int, _Held] = {}
        self._skipped: dict[int, None] = {}
        self._timeout = 0.0
        self._deadline: float | None = None
        self.held_total = 0
        self.timeouts = 0
        self.duplicates = 0
        self.abandoned = 0
        """Positions given up, less those whose packet came late."""

    @property
    def deadline(self) -> float | None:
        """When `expire` will give up the gap; None while nothing is held."""
        return self._deadline

    def arrive(self, position: int, packet: bytes, timeout_s: float, now: float) -> list[bytes]:
        """A packet came or was rebuilt. Returns what goes out now, in order."""
        ahead = serial_difference(position, self.next)
        if ahead == 0:
            self.next = (position + 1) % NUMBER_MODULUS
            return self._run([packet], now) if self._held else [packet]
        if ahead < 0:
            if position in self._skipped:
                del self._skipped[position]
                self.abandoned -= 1
                return [packet]
            self.duplicates += 1
            return []
        if position in self._held:
            self.duplicates += 1
            return []
        self._timeout = timeout_s
        if timeout_s <= 0.0 and not self._held:
            self._skip_to(position)
            self.next = (position + 1) % NUMBER_MODULUS
            return [packet]
        self._held[position] = _Held(packet, now)
        self.held_total += 1
        if self._deadline is None:
            self._deadline = now + timeout_s
        if len(self._held) > MAX_HELD:
            return self._give_up(now)
        return []

    def expire(self, now: float) -> list[bytes]:
        """Give up the gaps whose time is over. Returns what goes out now, in order."""
        out: list[bytes] = []
        while self._deadline is not None and now >= self._deadline:
            out += self._give_up(now)
        return out

    def _give_up(self, now: float) -> list[bytes]:
        first = min(self._held, key=lambda position: serial_difference(position, self.next))
        self.timeouts += 1
        self._skip_to(first)
        self.next = first
        return self._run([], now)

    def _run(self, out: list[bytes], now: float) -> list[bytes]:
        """Release what follows without a gap, and set the next gap's deadline by its oldest waiting packet."""
        while (held := self._held.pop(self.next, None)) is not None:
            out.append(held.packet)
            self.next = (self.next + 1) % NUMBER_MODULUS
        oldest = min((held.since for held in self._held.values()), default=None)
        self._deadline = None if oldest is None else oldest + self._timeout
        return out

    def _skip_to(self, position: int) -> None:
        count = serial_difference(position, self.next)
        self.abandoned += count
        for offset in range(max(0, count - REMEMBERED_GAPS), count):
            self._skipped[(self.next + offset) % NUMBER_MODULUS] = None
        while len(self._skipped) > REMEMBERED_GAPS:
            del self._skipped[next(iter(self._skipped))]
