"""Retransmission episodes under CAPTON, as agents report them: the newest ones, and bytes by cause. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from controller.token_bucket import TokenBucket
from protocol.sent_again import FlowState, Resent, SentAgain, Trigger, Verdict, by_cause

MOST_KEPT: Final = 1000
MOST_EVENTS: Final = 256
"""About what agents report, at once, and one a second in the long run: one can invent episodes; the totals have all."""


@dataclass(frozen=True, slots=True)
class HostResent:
    """A retransmission episode of a host. ``number``: of all episodes, from 1. ``at``: its begin, monotonic seconds."""

    number: int
    at: float
    host: str
    resent: Resent


@dataclass(frozen=True, slots=True)
class ResentView:
    """``episodes``: how many so far. ``newest``: up to `MOST_KEPT` of them, the oldest first."""

    at: float
    episodes: int
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
        self._count = 0
        self._events: Final = TokenBucket(MOST_EVENTS, 0.0)

    def add(self, host: str, report: SentAgain, now: float) -> CaptonSentAgain | None:
        """Add the episodes that an agent reports, and return the event for them; None where there were many of late."""
        for episode in report.resent:
            self._count += 1
            self._newest.append(HostResent(self._count, now - (report.now_s - episode.at_s), host, episode))
        for cause, count in by_cause(report.resent).items():
            self._totals[cause] = self._totals.get(cause, 0) + count
        if not self._events.take(1.0, now):
            return None
        return CaptonSentAgain(now, host, sum(episode.bytes for episode in report.resent))

    def view(self, now: float) -> ResentView:
        """Return the log as it stands."""
        totals = dict(sorted(self._totals.items(), key=lambda item: -item[1]))
        return ResentView(now, self._count, sum(totals.values()), totals, list(self._newest))
