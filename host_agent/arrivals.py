"""Numbers of one peer's datagrams as they arrive: which are new, which are replays, which are lost for good."""

from __future__ import annotations

from typing import Final

from protocol.datagram import NUMBER_MODULUS, serial_difference

WINDOW: Final = 65536
"""Numbers further behind the newest than this are replays, whatever they are."""
BEFORE_FIRST: Final = 1024
"""Numbers before the first one seen that may still come (the first may have overtaken them)."""


class Arrivals:
    """One peer and session. Times are in seconds."""

    __slots__ = ("_late", "_missing", "_newest", "late", "lost", "received", "replayed")

    def __init__(self) -> None:
        self._newest: int | None = None
        self._missing: dict[int, float] = {}
        self._late: dict[int, None] = {}
        self.received = 0
        self.replayed = 0
        self.lost = 0
        self.late = 0

    def accept(self, number: int, now: float) -> bool:
        """Whether this number is seen for the first time; False: a replay, to be dropped."""
        newest = self._newest
        if newest is None:
            self._begin(number, now)
            return True
        ahead = serial_difference(number, newest)
        if ahead == 1:
            self._newest = number
        elif ahead > 1:
            self._newest = number
            for missing in range(max(1, ahead - WINDOW), ahead):
                self._missing[(newest + missing) % NUMBER_MODULUS] = now
        elif self._missing.pop(number, None) is not None:
            pass
        elif number in self._late:
            del self._late[number]
            self.late += 1
        else:
            self.replayed += 1
            return False
        self.received += 1
        return True

    def give_up(self, noticed_before: float) -> list[tuple[int, int]]:
        """Ranges (first, count) of numbers that were noticed missing before that time: lost, unless they come late."""
        ranges: list[tuple[int, int]] = []
        while self._missing:
            number = next(iter(self._missing))
            if self._missing[number] > noticed_before:
                break
            del self._missing[number]
            self._late[number] = None
            self.lost += 1
            if ranges and (ranges[-1][0] + ranges[-1][1]) % NUMBER_MODULUS == number:
                ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
            else:
                ranges.append((number, 1))
        while len(self._late) > WINDOW:
            del self._late[next(iter(self._late))]
        return ranges

    def oldest_missing(self) -> float | None:
        """When the number that is missing for longest was noticed; None if none is missing."""
        return next(iter(self._missing.values()), None)

    def _begin(self, number: int, now: float) -> None:
        self._newest = number
        self.received += 1
        if number < BEFORE_FIRST:
            self._missing = dict.fromkeys(range(number), now)
        else:
            self._late = dict.fromkeys(range(number - BEFORE_FIRST, number))
