"""Which flows of a host have asked, and what they were told. Pure: messages in and out, time passed in.

A flow that has asked waits until it is granted a rate. Requests are sent again until they are answered, and now and
then afterwards, which makes good whatever was lost. A controller that leaves requests unanswered is not waited for:
after the fail-safe time their flows go on unscheduled, until it answers again.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

from protocol.admission import MODULUS, AdmissionPolicy, Finished, Grant, Request, Stop, newer
from protocol.latency import Latencies
from protocol.sent_again import FlowState


@dataclass(slots=True)
class _Asked:
    destination: str
    bytes_left: int
    asked: int = 0
    """Sequence number of the last request."""
    unanswered: float | None = None
    """Since when no request has been answered; None: the last one was."""
    again: float = 0.0
    """When to ask again."""
    heard: int | None = None
    """Sequence number of the newest decision."""
    rate_bps: float = 0.0
    stamp: int = 0
    """Of the granted path; 0: all of them."""
    unscheduled: bool = False


class Requests:
    """The flows of a host that have asked, by number."""

    def __init__(self, policy: AdmissionPolicy, sequence: int = 0) -> None:
        self._policy: Final = policy
        self._flows: Final[dict[int, _Asked]] = {}
        self.sequence = sequence
        """Of the newest message."""
        self._outgoing: list[Request | Finished] = []
        self.counts: Final[Counter[str]] = Counter()
        self.latencies: Final = Latencies()
        """From a request, the first of those that one decision answers, to that decision."""

    def __len__(self) -> int:
        return len(self._flows)

    def __contains__(self, flow: int) -> bool:
        return flow in self._flows

    def rate_bps(self, flow: int) -> float:
        """Rate on the link that a flow may send at: 0 while it waits, inf where it does not have to ask."""
        asked = self._flows.get(flow)
        return math.inf if asked is None or asked.unscheduled else asked.rate_bps

    def state(self, flow: int) -> FlowState:
        """Of a flow that has asked."""
        asked = self._flows[flow]
        if asked.unscheduled:
            return "unscheduled"
        return "granted" if asked.rate_bps else "waiting"

    def stamp(self, flow: int) -> int:
        """The path that a flow was granted; 0: none of its own."""
        asked = self._flows.get(flow)
        return 0 if asked is None or asked.unscheduled else asked.stamp

    def standing(self) -> tuple[int, int, int]:
        """How many flows send as granted, how many wait, and how many send although nobody decided."""
        unscheduled = sum(asked.unscheduled for asked in self._flows.values())
        granted = sum(asked.rate_bps > 0 and not asked.unscheduled for asked in self._flows.values())
        return granted, len(self._flows) - granted - unscheduled, unscheduled

    def ask(self, flow: int, destination: str, bytes_left: int, now: float) -> None:
        """A large flow begins: it waits from now on. *destination*: the underlay address of its peer."""
        asked = self._flows[flow] = _Asked(destination, bytes_left)
        self._ask(flow, asked, now)

    def left(self, flow: int, bytes_left: int) -> None:
        """How much a flow that has asked has left by now: told with its next request."""
        asked = self._flows.get(flow)
        if asked is not None:
            asked.bytes_left = max(1, bytes_left)

    def end(self, flow: int) -> None:
        """A flow has nothing left, or is gone; one that has not asked needs to say nothing."""
        if self._flows.pop(flow, None) is not None:
            self._finish(flow)

    def connected(self, now: float) -> None:
        """The controller listens, perhaps another one, which knows nothing of our flows: ask again for all."""
        self._outgoing.clear()
        for flow, asked in self._flows.items():
            asked.heard = None
            self._ask(flow, asked, now)

    def decided(self, message: Grant | Stop, now: float) -> bool:
        """The controller has decided. Returns whether that is news: `rate_bps` or `stamp` of the flow is another."""
        asked = self._flows.get(message.flow)
        if asked is None:
            self._finish(message.flow)  # it has not heard that the flow is over
            return False
        if not newer(message.sequence, asked.heard):
            self.counts["decisions_late"] += 1
            return False
        asked.heard = message.sequence
        before = self.rate_bps(message.flow), asked.stamp
        asked.rate_bps = float(message.rate_bps) if isinstance(message, Grant) else 0.0
        asked.stamp = message.stamp if isinstance(message, Grant) else 0
        asked.unscheduled = False
        if not newer(asked.asked, message.answers):
            if asked.unanswered is not None:
                self.latencies.add(now - asked.unanswered)
            asked.unanswered = None
            asked.again = now + self._policy.refresh_s
        self.counts["grants" if asked.rate_bps else "stops"] += 1
        return before != (asked.rate_bps, asked.stamp)

    def get_timer(self) -> float | None:
        """When `handle_timer` has something to do."""
        times = [self._due(asked) for asked in self._flows.values()]
        return min(times, default=None)

    def handle_timer(self, now: float) -> list[int]:
        """Ask again what is due. Returns the flows that wait no longer for a controller that does not answer."""
        freed = []
        for flow, asked in self._flows.items():
            late = asked.unanswered is not None and now >= asked.unanswered + self._policy.fail_safe_s
            if late and not asked.unscheduled:
                asked.unscheduled = True
                self.counts["flows_unscheduled_by_fail_safe"] += 1
                freed.append(flow)
            if now >= asked.again:
                self._ask(flow, asked, now)
        return freed

    def messages_to_send(self) -> list[Request | Finished]:
        """Messages for the controller, in order; each is given once."""
        messages, self._outgoing = self._outgoing, []
        return messages

    def _due(self, asked: _Asked) -> float:
        if asked.unanswered is None or asked.unscheduled:
            return asked.again
        return min(asked.again, asked.unanswered + self._policy.fail_safe_s)

    def _ask(self, flow: int, asked: _Asked, now: float) -> None:
        asked.asked = self._next()
        if asked.unanswered is None:
            asked.unanswered = now
        wait = self._policy.refresh_s if asked.unscheduled else self._policy.retry_s
        asked.again = now + wait
        self._outgoing.append(Request(asked.asked, flow, asked.destination, asked.bytes_left))

    def _finish(self, flow: int) -> None:
        self._outgoing.append(Finished(self._next(), flow))

    def _next(self) -> int:
        self.sequence = (self.sequence + 1) % MODULUS
        return self.sequence
