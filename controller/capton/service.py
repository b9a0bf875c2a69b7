"""CAPTON beside the agents' channel: the scheduler of the scheme in force, asked by agents, informed of the fabric.

All of it lives in the channel's loop, so a request is answered in the same step in which it is read; other threads come
in by `AgentServer.post` and `call`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from controller.agents.server import AgentServer
from controller.capton.admission import AdmissionControl, Answers, DecisionNumbers, StandingFlow
from controller.capton.fabric import VirtualLink
from controller.capton.resent import ResentLog, ResentView
from controller.capton.rules import Paths, scheduler_of
from controller.capton.scheduler import LinkUse
from controller.capton.topology_view import TopologyView
from controller.schemes.scheme import Admission as AdmissionRule
from protocol.admission import Finished, Request
from protocol.sent_again import SentAgain

LOG: Final = logging.getLogger("capstan.capton")
AGAIN_S: Final = 1.0
"""After an error of ours."""


@dataclass(frozen=True, slots=True)
class CaptonCapacity:
    """A virtual link has another capacity: links failed or came back."""

    at: float
    link: str
    capacity_bps: int


@dataclass(frozen=True, slots=True)
class AdmissionState:
    """All that is granted at one moment (monotonic seconds)."""

    at: float
    paths: str
    flows: list[StandingFlow]
    links: dict[VirtualLink, LinkUse]
    kinds: dict[str, str]
    """host, leaf or pod, by name; what is missing is a single path's link."""
    counters: dict[str, int]


class AdmissionService:
    """Answers the agents of *agents* by the rule of the scheme in force; silent where that has none."""

    def __init__(self, agents: AgentServer, on_event: Callable[[Any], None]) -> None:
        self._agents: Final = agents
        self._on_event: Final = on_event
        self._rule: AdmissionRule | None = None
        self._seen = TopologyView()
        self._paths: Paths = {}
        self._admission: AdmissionControl | None = None
        self._numbers: Final = DecisionNumbers()
        self._timer: asyncio.TimerHandle | None = None
        self._resent: Final = ResentLog()
        agents.admission.subscribe(self._receive)
        agents.sent_again.subscribe(self._sent_again)
        agents.gone.subscribe(self._gone)

    # from any thread

    @property
    def rule(self) -> AdmissionRule | None:
        """Return the admission rule of the scheme in force."""
        return self._rule

    def set_rule(self, rule: AdmissionRule | None) -> None:
        """Follow another scheme: nothing is granted any more, and agents ask by the new rule."""
        self._rule = rule
        self._agents.post(lambda: self._begin(rule))

    def set_topology(self, seen: TopologyView, paths: Paths) -> None:
        """Take the fabric as it is now. *paths*: by pair of leaves, for rules with single paths."""
        self._agents.post(lambda: self._set_topology(seen, paths))

    def standing(self) -> AdmissionState | None:
        """Return what is granted now; None under schemes without admission. Raises ChannelError."""
        return self._agents.call(self._standing)

    def resent(self) -> ResentView:
        """Return what hosts have retransmitted since the start, under whatever scheme. Raises ChannelError."""
        return self._agents.call(lambda: self._resent.view(time.monotonic()))

    # in the loop

    def _begin(self, rule: AdmissionRule | None) -> None:
        self._admission = None
        if rule is not None:
            try:
                scheduler = scheduler_of(rule, self._seen, self._paths)
                self._admission = AdmissionControl(scheduler, self._seen.addresses, self._numbers)
            except ValueError as error:  # `_set_topology` tries again, with the next one
                LOG.error("the fabric cannot be scheduled: %s", error)
        self._plan()

    def _set_topology(self, seen: TopologyView, paths: Paths) -> None:
        before, paths_before = self._seen, self._paths
        if (seen, paths) == (before, paths_before):
            return
        self._seen, self._paths = seen, paths
        if self._rule is None:
            return
        if self._admission is None:
            self._begin(self._rule)
            return
        now = time.monotonic()
        try:
            if (
                self._rule.paths == "one"
                or seen.shape != before.shape
                or seen.groups.keys() != before.groups.keys()
            ):
                scheduler = scheduler_of(self._rule, seen, paths)
                self._answer(self._admission.replace(scheduler, seen.addresses, now))
            else:
                self._admission.hosts = seen.addresses
                for link, rate in changes(before, seen).items():
                    self._answer(self._admission.capacity(link, rate, now))
            for link, rate in changes(before, seen).items():
                self._on_event(CaptonCapacity(now, f"{link.of} {link.direction}", rate))
        except ValueError as error:
            LOG.error("the fabric cannot be scheduled: %s", error)
        self._plan()

    def _receive(self, host: str, message: Request | Finished) -> None:
        if self._admission is not None:
            self._answer(self._admission.receive(host, message, time.monotonic()))
            self._plan()

    def _sent_again(self, host: str, report: SentAgain) -> None:
        event = self._resent.add(host, report, time.monotonic())
        if event is not None:
            self._on_event(event)

    def _gone(self, host: str) -> None:
        if self._admission is not None:
            self._answer(self._admission.gone(host, time.monotonic()))
            self._plan()

    def _expire(self) -> None:
        self._timer = None
        if self._admission is not None:
            try:
                self._answer(self._admission.handle_timer(time.monotonic()))
            except Exception:
                LOG.exception("grants were not looked at; they are again in %g s", AGAIN_S)
                self._timer = asyncio.get_running_loop().call_later(AGAIN_S, self._expire)
                return
        self._plan()

    def _answer(self, answers: Answers) -> None:
        for host, decision in answers:
            self._agents.decide(host, decision)

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = None if self._admission is None else self._admission.get_timer()
        if due is not None:
            wait = max(0.0, due - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._expire)

    def _standing(self) -> AdmissionState | None:
        if self._admission is None or self._rule is None:
            return None
        now = time.monotonic()
        kinds = dict.fromkeys((host.name for host in self._seen.hosts), "host")
        for host in self._seen.hosts:
            kinds.update(zip(host.groups, ("leaf", "pod"), strict=False))
        return AdmissionState(
            now,
            self._rule.paths,
            self._admission.standing(now),
            self._admission.links(),
            kinds,
            dict(self._admission.counts),
        )


def changes(before: TopologyView, after: TopologyView) -> dict[VirtualLink, int]:
    """Return the links that both have, and whose capacity is another: what it is now, bit/s."""

    def rates(seen: TopologyView) -> dict[VirtualLink, int]:
        several = [(host.name, host.access) for host in seen.hosts] + list(seen.groups.items())
        return {
            link: rate
            for name, (up, down) in several
            for link, rate in ((VirtualLink(name, "up"), up), (VirtualLink(name, "down"), down))
        }

    old = rates(before)
    return {link: rate for link, rate in rates(after).items() if link in old and old[link] != rate}
