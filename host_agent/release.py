"""In-order release of one receiving flow: packets behind a gap wait until it is filled or a timer fires.

Positions are the flow's packet numbers modulo 2**32. Each position is released at most once, whether its packet
came itself, came twice, or was rebuilt from repairs.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from protocol.datagram import NUMBER_MODULUS, serial_difference

REMEMBERED_GAPS: Final = 4096
"""Positions given up that may still be released when their packet comes late."""
MAX_HELD: Final = 8192
"""Packets held at most; beyond it the oldest gap is given up."""


class Release:
    """One flow. A timeout of 0 s holds nothing back: packets go out as they come, each once."""

    __slots__ = (
        "_followers",
        "_held",
        "_skipped",
        "_waiting",
        "abandoned",
        "duplicates",
        "held_total",
        "next",
        "timeouts",
    )

    def __init__(self, first: int) -> None:
        self.next = first
        """The position that is due."""
        self._held: dict[int, bytes] = {}
        self._followers: dict[int, list[bytes]] = {}
        """What has no position of its own, but must not overtake what comes before this one."""
        self._waiting: deque[tuple[float, int]] = deque()
        """Until when a position waits, in the order in which they came; those that have gone since are passed over."""
        self._skipped: dict[int, None] = {}
        self.held_total = 0
        self.timeouts = 0
        self.duplicates = 0
        self.abandoned = 0
        """Positions given up, less those whose packet came late."""

    @property
    def deadline(self) -> float | None:
        """When `expire` will give up the gap; None while nothing is held."""
        waiting = self._waiting
        while waiting:
            position = waiting[0][1]
            if position in self._held or position in self._followers:
                return waiting[0][0]
            waiting.popleft()
        return None

    def arrive(self, position: int, packet: bytes, timeout_s: float, now: float) -> list[bytes]:
        """A packet came or was rebuilt. Returns what goes out now, in order."""
        ahead = serial_difference(position, self.next)
        if ahead == 0:
            self.next = (position + 1) % NUMBER_MODULUS
            return self._run([packet]) if self._waiting else [packet]
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
        if timeout_s <= 0.0 and not self._waiting:
            self._skip_to(position)
            self.next = (position + 1) % NUMBER_MODULUS
            return [packet]
        self._held[position] = packet
        self._wait(position, timeout_s, now)
        if len(self._held) <= MAX_HELD:
            return []
        self.timeouts += 1
        return self._give_up(min(self._held, key=lambda one: serial_difference(one, self.next)))

    def arrive_run(self, position: int, packets: list[bytes], timeout_s: float, now: float) -> list[bytes]:
        """As `arrive`, of packets with consecutive positions from *position* on."""
        if position == self.next and not self._waiting:
            self.next = (position + len(packets)) % NUMBER_MODULUS
            return packets
        out: list[bytes] = []
        for offset, packet in enumerate(packets):
            out += self.arrive((position + offset) % NUMBER_MODULUS, packet, timeout_s, now)
        return out

    def follow(self, position: int, packet: bytes, timeout_s: float, now: float) -> list[bytes]:
        """A packet without position came that must not overtake those before *position*: a bare FIN.

        TCP would take it for a sign that those are lost. Returns what goes out now.
        """
        if timeout_s <= 0.0 or not 0 < serial_difference(position, self.next) <= MAX_HELD:
            return [packet]
        self._followers.setdefault(position, []).append(packet)
        self._wait(position, timeout_s, now)
        return []

    def expire(self, now: float) -> list[bytes]:
        """Give up the gaps before all that has waited for long enough. Returns what goes out now, in order."""
        out: list[bytes] = []
        while (deadline := self.deadline) is not None and now >= deadline:
            self.timeouts += 1
            out += self._give_up(self._waiting[0][1])
        return out

    def drain(self) -> list[bytes]:
        """All that is held, in order: the flow ends."""
        out: list[bytes] = []
        while self._held or self._followers:
            farthest = max((*self._held, *self._followers), key=lambda one: serial_difference(one, self.next))
            out += self._give_up(farthest)
        return out

    def _wait(self, position: int, timeout_s: float, now: float) -> None:
        until = now + timeout_s
        if self._waiting and until < self._waiting[-1][0]:
            until = self._waiting[-1][
                0
            ]  # the policy has become stricter meanwhile: keep the order of deadlines
        self._waiting.append((until, position))
        self.held_total += 1

    def _give_up(self, position: int) -> list[bytes]:
        """Wait no longer for what is missing before *position*, which is held."""
        out: list[bytes] = []
        held = [one for one in (*self._held, *self._followers) if serial_difference(one, position) < 0]
        for one in sorted(set(held), key=lambda one: serial_difference(one, self.next)):
            self._skip_to(one)
            self._run(out)
        self._skip_to(position)
        return self._run(out)

    def _run(self, out: list[bytes]) -> list[bytes]:
        """Release what follows without a gap."""
        while True:
            if self._followers:
                out += self._followers.pop(self.next, ())
            packet = self._held.pop(self.next, None)
            if packet is None:
                return out
            out.append(packet)
            self.next = (self.next + 1) % NUMBER_MODULUS

    def _skip_to(self, position: int) -> None:
        count = serial_difference(position, self.next)
        if count <= 0:
            return
        self.abandoned += count
        for offset in range(max(0, count - REMEMBERED_GAPS), count):
            self._skipped[(self.next + offset) % NUMBER_MODULUS] = None
        while len(self._skipped) > REMEMBERED_GAPS:
            del self._skipped[next(iter(self._skipped))]
        self.next = position
