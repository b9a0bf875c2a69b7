"""When a part of a lab that has ended is started again, and when the lab gives up: pure, with time passed in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

MOST_DEATHS: Final = 5
WITHIN_S: Final = 60.0
FIRST_WAIT_S: Final = 0.25
"""Before the second start within WITHIN_S; twice as long before each further one. The first start waits for nothing."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start the part at this time (seconds)."""

    at: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The part has ended this often within so many seconds: what ends it is not chance."""

    deaths: int
    within_s: float


class Supervision:
    """Decides for each part by its own deaths. Times are in seconds of one monotonic clock."""

    def __init__(self, most_deaths: int = MOST_DEATHS, within_s: float = WITHIN_S) -> None:
        self._most_deaths = most_deaths
        self._within_s = within_s
        self._deaths: dict[str, deque[float]] = {}

    def ended(self, part: str, now: float) -> StartAgain | GiveUp:
        """Count a death of *part* that nothing on purpose explains; return what to do about it."""
        deaths = self._deaths.setdefault(part, deque())
        deaths.append(now)
        while deaths[0] <= now - self._within_s:
            deaths.popleft()
        if len(deaths) >= self._most_deaths:
            return GiveUp(len(deaths), now - deaths[0])
        return StartAgain(now if len(deaths) == 1 else now + FIRST_WAIT_S * 2 ** (len(deaths) - 2))


@dataclass(frozen=True, slots=True)
class Restart:
    """A part ended and was started again.

    how: "signal 9" or "exit code 1". ended_at: monotonic seconds. after_s: from its end until it was back.
    """

    part: str
    how: str
    ended_at: float
    after_s: float

    @property
    def words(self) -> str:
        """Return a line such as `agent h3 ended (signal 9) and was started again after 0.4 s`."""
        return f"{self.part} ended ({self.how}) and was started again after {self.after_s:.1f} s"


def how_ended(code: int | None) -> str:
    """Return words for a process's return code as `subprocess` has it; None: it did not become ready."""
    if code is None:
        return "it did not become ready"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
