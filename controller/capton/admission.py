"""The controller's side of CAPTON's messages: requests in, grants and stops out. Pure; the channel is elsewhere.

Every new request is answered with the state as it is, even if nothing has changed; other hosts that a decision concerns
get messages as well. So an agent that repeats its requests ends up with what the scheduler has decided, whatever was
lost.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from controller.capton.fabric import VirtualLink
from controller.capton.scheduler import ActiveFlow, Decision, LinkUse
from protocol.admission import MODULUS, Finished, Grant, Request, Stop, newer

MAX_ENDED: Final = 4096
"""Flows of a host that have ended and are remembered, so that a late request does not bring them back."""
MOST_FLOWS: Final = 4096
"""Flows of a host that ask or are granted; what exceeds it goes on unscheduled, as without an answer."""
Answers = list[tuple[str, Grant | Stop]]
"""Messages, and the host that each is for."""


class FlowScheduler(Protocol):
    """What `controller.capton.scheduler` and `controller.capton.single_path` have in common."""

    def request(self, flow: int, source: str, destination: str, size: int, *, now: float) -> list[Decision]:
        """Take a flow that has *size* bytes left to send, known or not. Return the decisions that follow."""

    def take_over(self, flow: ActiveFlow, asked_at: float, now: float) -> list[Decision]:
        """Take a flow that another scheduler had, first asked for at *asked_at* (seconds); return the decisions."""

    def finished(self, flow: int, now: float) -> list[Decision]:
        """Note that a flow has ended. Return the decisions that follow."""

    def capacity(self, link: VirtualLink, rate_bps: int, now: float) -> list[Decision]:
        """Set the rate of a virtual link, bit/s. Return the decisions that follow."""

    def expire(self, now: float) -> list[Decision]:
        """Give up flows whose grant has outlived their bytes. Return the decisions that follow, stops first."""

    def next_event(self) -> float | None:
        """Return when `expire` wants to be called next, seconds, or None."""

    def flows(self, now: float) -> list[ActiveFlow]:
        """Return the flows that are known, with what they have left."""

    def links(self) -> dict[VirtualLink, LinkUse]:
        """Return what each virtual link has, and what of it is granted."""

    def __contains__(self, flow: int) -> bool: ...


@dataclass(slots=True)
class _Flow:
    host: str
    number: int
    last_sequence: int
    asked_at: float
    asked_bytes: int
    rate_bps: int = 0
    stamp: int = 0


class StandingFlow(NamedTuple):
    """A flow as it stands: who it is to the scheduler, when it asked first, and for how much."""

    active: ActiveFlow
    asked_at: float
    asked_bytes: int


class DecisionNumbers:
    """Numbers the decisions of all rules in turn: an agent whose policy stays takes only what is newer."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Return the sequence number of the next decision."""
        self._last = (self._last + 1) % MODULUS
        return self._last


class AdmissionControl:
    """Answers agents on behalf of a scheduler.

    Args:
        hosts: host name by underlay address, as in `Request.destination`; may be replaced.
        numbers: those of the rule before, where there was one.
    """

    def __init__(
        self, scheduler: FlowScheduler, hosts: Mapping[str, str], numbers: DecisionNumbers | None = None
    ) -> None:
        self._scheduler = scheduler
        self.hosts = hosts
        self._decisions: Final = numbers or DecisionNumbers()
        self._flows: Final[dict[int, _Flow]] = {}
        self._numbers: Final[dict[tuple[str, int], int]] = {}
        """The scheduler's number of a host's flow."""
        self._standing: Final[Counter[str]] = Counter()
        """How many flows each host has."""
        self._ended: Final[dict[str, OrderedDict[int, int]]] = {}
        """By host, flows that have ended, with the sequence number that ended them."""
        self._next = 0
        self.counts: Final[Counter[str]] = Counter()

    def receive(self, host: str, message: Request | Finished, now: float) -> Answers:
        """Handle a message of *host*, and return the messages that follow."""
        name = self._numbers.get((host, message.flow))
        if name is not None:
            newest: int | None = self._flows[name].last_sequence
        else:
            newest = self._ended.get(host, OrderedDict[int, int]()).get(message.flow)
        if not newer(message.sequence, newest):
            self.counts["messages_late"] += 1
            return []
        if isinstance(message, Finished):
            return self._finished(host, message, name, now)
        destination = self.hosts.get(message.destination)
        if destination is None:
            self.counts["requests_refused"] += 1
            return []
        if name is None and self._standing[host] >= MOST_FLOWS:
            self.counts["requests_refused"] += 1
            return []
        size = max(1, message.bytes_left)
        number = self._next if name is None else name
        try:
            decisions = self._scheduler.request(number, host, destination, size, now=now)
        except ValueError:  # a host that the scheduler does not know, or another destination than before
            self.counts["requests_refused"] += 1
            return []
        if name is None:
            self._next += 1
            self._numbers[host, message.flow] = number
            self._standing[host] += 1
            self._flows[number] = _Flow(host, message.flow, message.sequence, now, size)
        self._flows[number].last_sequence = message.sequence
        self.counts["requests"] += 1
        answers = self._answers(decisions)
        if all(decision.flow != number for decision in decisions):
            answers.append(self._decision(self._flows[number]))
        return answers

    def gone(self, host: str, now: float) -> Answers:
        """Give up the flows of a host whose channel has ended; when it is back it may number them anew."""
        answers: Answers = []
        for name in [name for name, flow in self._flows.items() if flow.host == host]:
            self._forget(name)
            answers += self._answers(self._scheduler.finished(name, now))
        self._ended.pop(host, None)
        return [(to, message) for to, message in answers if to != host]

    def capacity(self, link: VirtualLink, rate_bps: int, now: float) -> Answers:
        """Set the capacity of a virtual link (`Scheduler.capacity`), and return the messages that follow."""
        return self._answers(self._scheduler.capacity(link, rate_bps, now))

    def replace(self, scheduler: FlowScheduler, hosts: Mapping[str, str], now: float) -> Answers:
        """Go on with another scheduler (hosts or leaves have changed): flows are asked for as they stand.

        Hosts get what has changed for them; flows that the new scheduler does not know are given up.
        """
        standing = self._scheduler.flows(now)
        self._scheduler, self.hosts = scheduler, hosts
        decided: dict[int, Decision] = {}
        for flow in standing:
            try:
                decisions = scheduler.take_over(flow, self._flows[flow.flow].asked_at, now)
            except ValueError:
                gone = self._forget(flow.flow)
                self._end(gone.host, gone.number, gone.last_sequence)
                continue
            decided.update((decision.flow, decision) for decision in decisions)
        changed = [
            decided.get(name, Decision(name, 0))
            for name, flow in self._flows.items()
            if decided.get(name, Decision(name, 0))[1:] != (flow.rate_bps, flow.stamp)
        ]
        return self._answers(sorted(changed, key=lambda flow: flow.rate_bps > 0))

    def standing(self, now: float) -> list[StandingFlow]:
        """Return all flows in the order in which they are granted."""
        return [
            StandingFlow(flow, self._flows[flow.flow].asked_at, self._flows[flow.flow].asked_bytes)
            for flow in self._scheduler.flows(now)
        ]

    def links(self) -> dict[VirtualLink, LinkUse]:
        """Return what is granted of each link."""
        return self._scheduler.links()

    def get_timer(self) -> float | None:
        """Return when `handle_timer` has something to do, seconds; None: not before something else happens."""
        return self._scheduler.next_event()

    def handle_timer(self, now: float) -> Answers:
        """Give up flows that should have finished and sent no message, and return the stops for them."""
        decisions = self._scheduler.expire(now)
        answers = self._answers(decisions)
        for decision in decisions:
            if decision.rate_bps == 0 and decision.flow not in self._scheduler:
                self.counts["flows_expired"] += 1
                flow = self._forget(decision.flow)
                self._end(flow.host, flow.number, flow.last_sequence)
        return answers

    def _finished(self, host: str, message: Finished, name: int | None, now: float) -> Answers:
        self._end(host, message.flow, message.sequence)
        if name is None:
            return []
        self._forget(name)
        self.counts["flows_finished"] += 1
        return self._answers(self._scheduler.finished(name, now))

    def _end(self, host: str, flow: int, sequence: int) -> None:
        ended = self._ended.setdefault(host, OrderedDict())
        ended[flow] = sequence
        ended.move_to_end(flow)
        if len(ended) > MAX_ENDED:
            ended.popitem(last=False)

    def _forget(self, name: int) -> _Flow:
        flow = self._flows.pop(name)
        del self._numbers[flow.host, flow.number]
        self._standing[flow.host] -= 1
        if not self._standing[flow.host]:
            del self._standing[flow.host]
        return flow

    def _answers(self, decisions: list[Decision]) -> Answers:
        answers: Answers = []
        for name, rate, stamp in decisions:
            flow = self._flows[name]
            flow.rate_bps, flow.stamp = rate, stamp
            answers.append(self._decision(flow))
        return answers

    def _decision(self, flow: _Flow) -> tuple[str, Grant | Stop]:
        sequence = self._decisions.next()
        if flow.rate_bps:
            return flow.host, Grant(sequence, flow.number, flow.last_sequence, flow.rate_bps, flow.stamp)
        return flow.host, Stop(sequence, flow.number, flow.last_sequence)
