"""Admission of large flows at the controller: what `AdmissionService` does, without its thread and its loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controller.capton.admission import AdmissionControl, Answers, DecisionNumbers
from controller.capton.rules import Paths, scheduler_of
from controller.capton.service import changes
from controller.capton.topology_view import SnapshotReader, TopologyView
from controller.plane.snapshot import FabricSnapshot
from controller.schemes.scheme import Admission as AdmissionRule
from protocol.admission import Finished, Grant, Request, Stop
from tests.world.clock import Clock

LOOK_S: Final = 1.0
RATE_BPS: Final = 10_000_000
"""Of every port: flows have to share."""


class Admission:
    """Args:
    later: has something done by the controller's process after so many seconds.
    snapshot: returns the fabric as it is known now.
    decide: sends a decision to a host's agent.
    """

    def __init__(
        self,
        clock: Clock,
        later: Callable[[float, Callable[[], None]], None],
        snapshot: Callable[[], FabricSnapshot],
        decide: Callable[[str, Grant | Stop], None],
    ) -> None:
        self._clock = clock
        self._later = later
        self._snapshot = snapshot
        self._decide = decide
        self.rule: AdmissionRule | None = None
        self._seen = TopologyView()
        self._paths: Paths = {}
        self._control: AdmissionControl | None = None
        self._numbers: Final = DecisionNumbers()
        self._looks = 0
        self._due: float | None = None

    def set_rule(self, rule: AdmissionRule | None) -> None:
        """Put the rule of another scheme in force: nothing is granted any more."""
        self.rule, self._control = rule, None
        self._looks += 1
        if rule is not None:
            self._control = AdmissionControl(
                scheduler_of(rule, self._seen, self._paths), self._seen.addresses, self._numbers
            )
            self._look(self._looks)

    def receive(self, host: str, message: Request | Finished) -> None:
        """Handle an agent's message that it has a flow to send, or has sent it."""
        if self._control is not None:
            self._answer(self._control.receive(host, message, self._clock.now))

    def gone(self, host: str) -> None:
        """Handle the end of an agent's channel."""
        if self._control is not None:
            self._answer(self._control.gone(host, self._clock.now))

    def wake(self) -> None:
        """Look at the fabric, which may have changed."""
        if self.rule is not None:
            self._looks += 1
            self._look(self._looks)

    def standing(self) -> list[str]:
        """Return the flows that ask or are granted, as text."""
        if self._control is None:
            return []
        return [str(flow) for flow in self._control.standing(self._clock.now)]

    def _look(self, number: int) -> None:
        if self._control is None or number != self._looks:
            return
        snapshot = self._snapshot()
        ports = {end for link in snapshot.links for end in (link.a, link.b)}
        ports |= {host.place for host in snapshot.hosts if host.place is not None}
        reader = SnapshotReader(snapshot, {(port.dpid, port.port): RATE_BPS for port in ports})
        assert self.rule is not None
        self._set_topology(reader.topology(), reader.single_paths() if self.rule.paths == "one" else {})
        self._later(LOOK_S, lambda: self._look(number))

    def _set_topology(self, seen: TopologyView, paths: Paths) -> None:
        before, paths_before = self._seen, self._paths
        self._seen, self._paths = seen, paths
        if (seen, paths) == (before, paths_before) or self._control is None or self.rule is None:
            return
        same = seen.shape == before.shape and seen.groups.keys() == before.groups.keys()
        if self.rule.paths == "one" or not same:
            scheduler = scheduler_of(self.rule, seen, paths)
            self._answer(self._control.replace(scheduler, seen.addresses, self._clock.now))
            return
        self._control.hosts = seen.addresses
        for link, rate in changes(before, seen).items():
            self._answer(self._control.capacity(link, rate, self._clock.now))

    def _answer(self, answers: Answers) -> None:
        assert self._control is not None
        for link, use in self._control.links().items():
            assert use.granted_bps <= use.capacity_bps, f"more is granted of {link} than there is: {use}"
        for host, decision in answers:
            self._decide(host, decision)
        due = self._control.get_timer()
        if due is not None and (self._due is None or due < self._due):
            self._due = due
            self._later(max(0.0, due - self._clock.now), lambda: self._expire(due))

    def _expire(self, due: float) -> None:
        if self._due == due:
            self._due = None
        if self._control is not None:
            wanted = self._control.get_timer()
            if wanted is not None and wanted <= self._clock.now:
                self._answer(self._control.handle_timer(self._clock.now))
            else:
                self._answer([])
