"""Which hosts report flows that went unscheduled because their requests had no answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COUNTER: Final = "flows_unscheduled_by_fail_safe"
"""Of agents (`native/agent/src/admission/requests.rs`)."""


@dataclass(frozen=True, slots=True)
class CaptonFailSafe:
    """So many flows of a host have begun without a grant since the last such event."""

    at: float
    host: str
    flows: int


class FailSafes:
    """The last count of each host; an agent that began anew counts from 0."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, int]] = {}

    def changes(
        self, reports: Mapping[str, tuple[int, Mapping[str, float]]], now: float
    ) -> list[CaptonFailSafe]:
        """Return an event for each host with new such flows. reports: session and counters of each host."""
        events = []
        for host, (session, counters) in reports.items():
            if COUNTER not in counters:
                continue  # no channel, or a new one by which it has not counted yet: what it counted before holds
            total = int(counters[COUNTER])
            before = self._counted.get(host, (session, 0))
            new = total - (before[1] if before[0] == session else 0)
            if new > 0:
                events.append(CaptonFailSafe(now, host, new))
            self._counted[host] = session, total
        return events
