"""Retransmission episodes of TCP under CAPTON, as agents report them: what was retransmitted, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from protocol.limits import COLUMN_MOST, Count, Port, Seconds, Text

EPISODES_PER_PART: Final = 1024
"""Of at most 500 bytes each."""

FlowState = Literal["small", "waiting", "granted", "unscheduled", "done", "unknown", "no-admission"]
Trigger = Literal["gap", "time-out", "probe", "crossed"]
Verdict = Literal["queue", "needless", "lost"]
STATES: Final[dict[FlowState, str]] = {
    "small": "below the threshold, or not asked yet",
    "waiting": "held, until it is granted",
    "granted": "sends at its granted rate",
    "unscheduled": "went on because the controller did not answer",
    "done": "had sent all that it asked for",
    "unknown": "open before the agent or the scheme",
    "no-admission": "the scheme has none, or has none any more",
}
TRIGGERS: Final[dict[Trigger, str]] = {
    "gap": "the receiver said that it had later bytes",
    "time-out": "nothing was acknowledged for a retransmission time-out",
    "probe": "a tail loss probe: the newest bytes, before a time-out",
    "crossed": "they were acknowledged already: that was on its way to the host",
}
VERDICTS: Final[dict[Verdict, str]] = {
    "queue": "dropped in the host's own queue, before its agent",
    "needless": "the receiver had it twice (D-SACK)",
    "lost": "reported once only: it was lost behind the agent",
}


@dataclass(frozen=True, slots=True)
class Resent:
    """Payload that a connection retransmitted, from its first such byte until all was acknowledged that had left by
    then.

    ``at_s``: seconds of the host's monotonic clock. ``quiet_s``: how long nothing new had been acknowledged then.
    ``late_s``: how late the agent's loop was at most in the last second or two; where that is near ``quiet_s`` the
    machine has too few processors. ``in_flight_bytes``: what was not acknowledged. ``bytes``: payload; of it
    ``needless_bytes`` were there already, as the receiver says by D-SACK (RFC 2883), and ``queue_bytes`` had never
    reached the agent.
    """

    source: Text
    source_port: Port
    destination: Text
    destination_port: Port
    state: FlowState
    trigger: Trigger
    at_s: Seconds
    lasted_s: Seconds
    quiet_s: Seconds
    late_s: Seconds
    in_flight_bytes: Count
    bytes: Count
    needless_bytes: Count = 0
    queue_bytes: Count = 0

    def verdicts(self) -> dict[Verdict, int]:
        """Return its bytes by what became of what was sent first; those that are 0 are missing."""
        rest = max(0, self.bytes - self.needless_bytes - self.queue_bytes)
        several: dict[Verdict, int] = {
            "queue": self.queue_bytes,
            "needless": self.needless_bytes,
            "lost": rest,
        }
        return {name: count for name, count in several.items() if count}


@dataclass(frozen=True, slots=True)
class SentAgain:
    """A host's retransmission episodes that are over; each is reported once. ``now_s``: the clock of their times."""

    type: ClassVar[str] = "sent-again"
    now_s: Seconds
    resent: Annotated[list[Resent], Meta(max_length=COLUMN_MOST)]

    @classmethod
    def parts(cls, now_s: float, resent: list[Resent]) -> list[SentAgain]:
        """Return messages that say all of it, each of which a frame holds; none of nothing."""
        firsts = range(0, len(resent), EPISODES_PER_PART)
        return [cls(now_s, resent[first : first + EPISODES_PER_PART]) for first in firsts]


def by_cause(resent: Iterable[Resent]) -> dict[tuple[FlowState, Trigger, Verdict], int]:
    """Return bytes by state of the flow, trigger and verdict, the most first."""
    totals: dict[tuple[FlowState, Trigger, Verdict], int] = {}
    for episode in resent:
        for verdict, count in episode.verdicts().items():
            key = episode.state, episode.trigger, verdict
            totals[key] = totals.get(key, 0) + count
    return dict(sorted(totals.items(), key=lambda item: -item[1]))
