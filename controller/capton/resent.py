"""What hosts under CAPTON have sent again, as their agents tell it: the newest of it, and all of it by cause. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from protocol.sent_again import FlowState, Resent, SentAgain, Trigger, Verdict, by_cause

MOST_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class HostResent:
    """``number``: of all that were told, from 1. ``at``: when it began, monotonic seconds of the controller."""

    number: int
    at: float
    host: str
    resent: Resent


@dataclass(frozen=True, slots=True)
class ResentView:
    """``newest``: up to `MOST_KEPT`, the oldest first."""

    at: float
    told: int
    bytes: int
    by_cause: dict[tuple[FlowState, Trigger, Verdict], int]
    newest: list[HostResent]


@dataclass(frozen=True, slots=True)
class CaptonSentAgain:
    """A host has sent so many bytes of payload again; why: see `GET /capton`."""

    at: float
    host: str
    bytes: int


class ResentLog:
    """Of all hosts, since the controller's start."""

    def __init__(self) -> None:
        self._newest: Final[deque[HostResent]] = deque(maxlen=MOST_KEPT)
        self._totals: Final[dict[tuple[FlowState, Trigger, Verdict], int]] = {}
        self._told = 0

    def heard(self, host: str, said: SentAgain, now: float) -> CaptonSentAgain:
        """An agent tells of what is over."""
        for episode in said.resent:
            self._told += 1
            self._newest.append(HostResent(self._told, now - (said.now_s - episode.at_s), host, episode))
        for cause, count in by_cause(said.resent).items():
            self._totals[cause] = self._totals.get(cause, 0) + count
        return CaptonSentAgain(now, host, sum(episode.bytes for episode in said.resent))

    def view(self, now: float) -> ResentView:
        """All of it as it stands."""
        totals = dict(sorted(self._totals.items(), key=lambda item: -item[1]))
        return ResentView(now, self._told, sum(totals.values()), totals, list(self._newest))
