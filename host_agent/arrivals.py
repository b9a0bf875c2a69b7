"""Numbers of one peer's datagrams as they arrive: which are new, which are replays, which are lost for good."""

from __future__ import annotations

from collections import deque
from typing import Final

from protocol.datagram import NUMBER_MODULUS, serial_difference

WINDOW: Final = 65536
"""Numbers this far behind the newest are replays, whatever they are."""
_MASK: Final = WINDOW - 1
BEFORE_FIRST: Final = 1024
"""A first number below this was not the first that was sent: those before it count as missing."""
_NEW, _SEEN = 0, 1


class Arrivals:
    """One peer and session. Times are in seconds. A jump of the numbers costs no more than any datagram."""

    __slots__ = ("_gaps", "_given_up", "_newest", "_seen", "late", "lost", "received", "replayed")

    def __init__(self) -> None:
        self._newest: int | None = None
        self._seen = bytearray(WINDOW)
        """Of the last WINDOW numbers, by the number's last bits: whether it came."""
        self._gaps: deque[tuple[float, int, int]] = deque()
        """When a gap was noticed, its first number and its length."""
        self._given_up: int | None = None
        """Numbers up to this one were given up if they are missing."""
        self.received = 0
        self.replayed = 0
        self.lost = 0
        self.late = 0

    @property
    def newest(self) -> int | None:
        """The newest number that came; None: none did."""
        return self._newest

    def accept(self, number: int, now: float) -> bool:
        """Whether this number is seen for the first time; False: a replay, to be dropped."""
        newest = self._newest
        if newest is None:
            missing = min(number, BEFORE_FIRST)
            if number < BEFORE_FIRST:
                self._notice(0, missing, now)
            newest = (number - 1) % NUMBER_MODULUS
        ahead = 1 if number == newest + 1 else serial_difference(number, newest)
        if ahead > 0:
            if ahead > 1:
                self._clear((newest + 1) % NUMBER_MODULUS, ahead)
                missing = min(ahead - 1, WINDOW - 1)
                self._notice((number - missing) % NUMBER_MODULUS, missing, now)
            self._newest = number
        elif ahead <= -WINDOW or self._seen[number & _MASK] == _SEEN:
            self.replayed += 1
            return False
        elif self._given_up is not None and serial_difference(number, self._given_up) <= 0:
            self.late += 1
        self._seen[number & _MASK] = _SEEN
        self.received += 1
        return True

    def accept_run(self, first: int, count: int, now: float) -> bool:
        """Take in *count* consecutive numbers, all of them new; False: `accept` has to see each."""
        start, newest = first & _MASK, self._newest
        if newest is None or first + count > NUMBER_MODULUS or start + count > WINDOW:
            return False
        ahead = serial_difference(first, newest)
        if ahead > 0:
            if ahead > 1:
                self._clear((newest + 1) % NUMBER_MODULUS, ahead)
                missing = min(ahead - 1, WINDOW - 1)
                self._notice((first - missing) % NUMBER_MODULUS, missing, now)
            self._newest = first + count - 1
        elif (
            ahead + count > 0
            or ahead <= -WINDOW
            or any(self._seen[start : start + count])
            or (self._given_up is not None and serial_difference(first, self._given_up) <= 0)
        ):
            return False
        self._seen[start : start + count] = b"\x01" * count
        self.received += count
        return True

    def give_up(self, noticed_before: float) -> list[tuple[int, int]]:
        """Ranges (first, count) of numbers that were noticed missing before that time: lost, unless they come late."""
        ranges: list[tuple[int, int]] = []
        while self._gaps and self._gaps[0][0] <= noticed_before:
            _, first, count = self._gaps.popleft()
            ranges += self._missing(first, count)
            self._given_up = (first + count - 1) % NUMBER_MODULUS
        self.lost += sum(count for _, count in ranges)
        return ranges

    def oldest_missing(self) -> float | None:
        """When the gap that is open for longest was noticed; None if there is none."""
        while self._gaps and not self._missing(*self._gaps[0][1:]):
            self._gaps.popleft()
        return self._gaps[0][0] if self._gaps else None

    def _notice(self, first: int, count: int, now: float) -> None:
        if count > 0:
            self._gaps.append((now, first, count))

    def _missing(self, first: int, count: int) -> list[tuple[int, int]]:
        """The parts of a range that have not come and are within the window."""
        assert self._newest is not None
        behind = serial_difference(self._newest, first)
        outside = max(0, behind - WINDOW + 1)
        first, count = (first + outside) % NUMBER_MODULUS, count - outside
        if count <= 0:
            return []
        start = first & _MASK
        state = self._seen[start : start + count]
        if len(state) < count:
            state += self._seen[: count - len(state)]
        ranges, at = [], state.find(_NEW)
        while at >= 0:
            end = state.find(_SEEN, at)
            end = count if end < 0 else end
            ranges.append(((first + at) % NUMBER_MODULUS, end - at))
            at = state.find(_NEW, end)
        return ranges

    def _clear(self, first: int, count: int) -> None:
        """What lies a window before these numbers is forgotten."""
        if count >= WINDOW:
            self._seen = bytearray(WINDOW)
            return
        start = first & _MASK
        end = start + count
        if end <= WINDOW:
            self._seen[start:end] = bytes(count)
        else:
            self._seen[start:] = bytes(WINDOW - start)
            self._seen[: end - WINDOW] = bytes(end - WINDOW)
