"""Which hosts say that flows of theirs went unscheduled, because nobody answered their requests. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COUNTER: Final = "flows_unscheduled_by_fail_safe"
"""Of agents (`host_agent.admission.requests`)."""


@dataclass(frozen=True, slots=True)
class CaptonFailSafe:
    """So many flows of a host were not waited for any longer since this was told last."""

    at: float
    host: str
    flows: int


class FailSafes:
    """What was told of each host; an agent that began anew counts from 0."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, int]] = {}

    def news(self, said: Mapping[str, tuple[int, Mapping[str, float]]], now: float) -> list[CaptonFailSafe]:
        """said: session and counters of each host."""
        events = []
        for host, (session, counters) in said.items():
            total = int(counters.get(COUNTER, 0))
            before = self._told.get(host, (session, 0))
            new = total - (before[1] if before[0] == session else 0)
            if new > 0:
                events.append(CaptonFailSafe(now, host, new))
            self._told[host] = session, total
        return events
