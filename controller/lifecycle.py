"""The controller's parts joined: what the API asks, and what happens when the scheme changes."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from controller.agents.asking import Unconfirmed
from controller.agents.listeners import ChannelError
from controller.agents.membership import Member
from controller.agents.server import AgentServer
from controller.agents.settings import ChannelSettings
from controller.capton.service import AdmissionService
from controller.capton.watching import FabricWatch
from controller.control_plane import ControlPlane
from controller.fabric.events import (
    HostLinkChanged,
    HostSeen,
    LinkDown,
    LinkUp,
)
from controller.fabric.graph import PortRef
from controller.live.agent_joins import AgentJoins
from controller.live.event_log import EventLog
from controller.live.link_sampling import EVERY_S
from controller.live.watching import LiveView
from controller.openflow.allowed import AllowedSwitches
from controller.openflow.errors import OpenFlowError
from controller.openflow.tls import SwitchTlsContexts
from controller.plane.effects import (
    ModeChanged,
    PathsChanged,
    SwitchDown,
    SwitchUp,
)
from controller.plane.faults import Faults, PortsLeftOut
from controller.plane.naming import FabricNames
from controller.plane.snapshot import FabricSnapshot, PathInfo
from controller.process.control_thread import check_control_threads
from controller.process.shared_call import SharedCall
from controller.queues.service import QueueService
from controller.schemes import loader
from controller.schemes.current import CurrentScheme, SchemeFile
from controller.schemes.overrides import with_overrides
from controller.schemes.policy import policy_for
from controller.schemes.scheme import Scheme
from controller.shell.shell_events import PortCounters
from controller.shell.switchless import Shell, SwitchlessShell
from controller.store.finished_flows import FinishedFlowStore
from controller.tpfs.learner import TypeLearner
from ovsdb.port_queues import ONE_QUEUE, PortLimit, PortQueues
from protocol.control import FlowTypes, Paths
from protocol.packet_time import PACKET_BYTES

CRASH_S: Final = 2.0
SWEEP_EVERY: Final = 1024
"""Hosts that are seen until the leaves of those that are known no more are forgotten."""


@dataclasses.dataclass(frozen=True, slots=True)
class AgentEvent:
    """An agent came or went."""

    host: str
    joined: bool


class RunningController:
    """Control plane, switches' shell and agents' channel, from `start` to `stop`.

    openflow: where switches connect; None: there are none, and what only they need is not imported.
    """

    def __init__(
        self,
        key: bytes,
        openflow: tuple[str, int] | None,
        channel: ChannelSettings,
        *,
        token: str,
        state_file: Path,
        initial: tuple[str, float],
        lab: bool = False,
        links_every_s: float = EVERY_S,
        finished_flows: FinishedFlowStore | None = None,
        allowed: AllowedSwitches | None = None,
        tls: SwitchTlsContexts | None = None,
    ) -> None:
        self.events = EventLog()
        self._plane = ControlPlane(key)
        self.shell = self._make_shell(openflow, allowed, tls)
        self._snapshot = SharedCall(self.shell.post, self._plane.snapshot)
        self.queues = QueueService()
        self.learner = TypeLearner(self._publish_types, self.events.add, finished_flows)
        self.agents = AgentServer(channel, token)
        self._joins = AgentJoins()
        self.agents.joined.subscribe(self._joined)
        self.agents.left.subscribe(self._left)
        self.agents.finished_flows.subscribe(self.learner.receive)
        self.admission = AdmissionService(self.agents, self.events.add)
        self._fabric_watch = FabricWatch(
            self.admission, self.agents, self.events.add, self.snapshot, rates=self.queues.rates_bps
        )
        self.live = LiveView(
            self.events,
            self.shell,
            self.agents,
            self.snapshot,
            rates=self.rates,
            queues=self.queues.latest,
            links_every_s=links_every_s,
        )
        self._hosts_seen = 0
        self._lab = lab
        self.faults = Faults(state_file.with_name("faults.json"), self, self.events.add)
        self._scheme_file = SchemeFile(state_file)
        self._changing = threading.Lock()
        self.current = self._scheme_file.begin() or self._compose(initial[0], {}, initial[1], version=1)

    def start(self) -> None:
        """Listen for switches and agents. Raises OSError, ChannelError."""
        now, current = self.shell.now(), self.current
        effects = self._plane.set_scheme(current.scheme, current.packet_time_s, now)
        self.queues.start()
        self.queues.set_limits(self.faults.limits())
        self.queues.set_queues(port_queues(current.scheme))
        self.shell.start()
        self.shell.post(lambda: effects)
        self.agents.start()
        self.admission.set_rule(current.scheme.admission)
        self.agents.set_policy(policy_for(current.scheme, current.packet_time_s, current.version))
        self._fabric_watch.start()
        self.live.start()
        self.learner.set_scheme(current.scheme, current.version)
        self.learner.start()

    def stop(self) -> None:
        """Disconnect from agents and switches; both continue with what they have. What ends then still makes events."""
        self.live.stop_sampling()
        self._fabric_watch.stop()
        self.learner.stop()
        self.agents.stop()
        self.shell.stop()
        self.queues.stop()
        self.live.stop()

    def snapshot(self) -> FabricSnapshot:
        """Return the fabric as discovered. Raises ControlThreadDiedError, TimeoutError."""
        check_control_threads()
        return self._snapshot()

    def ready(self) -> bool:
        """Return whether everything that is known is set up."""
        return self.shell.call(self._plane.ready)

    def set_scheme(
        self,
        scheme: str | Mapping[str, Any],
        *,
        overrides: Mapping[str, Any],
        packet_time_s: float | None,
        timeout_s: float,
        forget_flows: bool = False,
    ) -> tuple[float, list[Unconfirmed]]:
        """Switch the fabric. Returns the milliseconds it took, and who has not confirmed.

        forget_flows: what was learnt of flows until now does not count any more.

        Raises:
            SchemeError, PolicyError, PlainError: the scheme cannot be; the old one stays.
            OSError: it cannot be written to the state file; the old one stays.
        """
        with self._changing:
            began = time.monotonic()
            deadline = began + timeout_s
            current = self._compose(
                scheme, dict(overrides), packet_time_s or self.current.packet_time_s, self.current.version + 1
            )
            policy = policy_for(current.scheme, current.packet_time_s, current.version)
            self._scheme_file.write(current)  # before all else: what is in force is what a restart would find
            self.current = current
            self.queues.set_queues(port_queues(current.scheme))
            self.admission.set_rule(current.scheme.admission)
            self._fabric_watch.wake()
            # agents first: their classes mean the same to the switches before and after
            self.agents.set_policy(policy)
            self.learner.set_scheme(current.scheme, current.version, forget_flows)
            late: list[Unconfirmed] = []
            try:
                self.shell.call(
                    lambda: self._plane.set_scheme(current.scheme, current.packet_time_s, self.shell.now()),
                    max(0.1, deadline - time.monotonic()),
                )
                self.shell.wait_applied(max(0.1, deadline - time.monotonic()))
            except (TimeoutError, OpenFlowError) as error:
                late.append(Unconfirmed("switches", str(error)))
            late += [Unconfirmed("queues", text) for text in self.queues.wait(deadline - time.monotonic())]
            late += self.agents.wait_applied(current.version, max(0.1, deadline - time.monotonic()))
            return (time.monotonic() - began) * 1000, late

    def mode_events(self, began_at: float, ended_at: float) -> list[dict[str, Any]]:
        """Return the mode changes between two moments (Unix seconds), with ``at_s`` from the first one."""
        names = self.names()
        return [
            {
                "at_s": round(logged.at - began_at, 6),
                "leaf": names.switch(logged.data.leaf),
                "mode": logged.data.mode,
                "cause": logged.data.cause,
            }
            for logged in self.events.since(0)
            if isinstance(logged.data, ModeChanged) and began_at <= logged.at <= ended_at
        ]

    def paths(self, host_a: str, host_b: str) -> tuple[PathInfo, ...]:
        """Return all equal-cost paths between two hosts, by name or address.

        Raises KeyError for one that is not known.
        """
        return self.shell.call(lambda: self._plane.paths(host_a, host_b))

    # What faults are made with (`controller.plane.faults.Reach`)

    def names(self) -> FabricNames:
        """Return the names of the fabric as it is now."""
        return self.live.names()

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        """Take ports down, or up again. Return those that are left out."""
        return self.shell.set_ports(ports, up)

    def set_limits(self, limits: Mapping[PortRef, PortLimit]) -> None:
        """Have these ports send at most so much; all others are not limited."""
        self.queues.set_limits(limits)

    def wait_ports(self, ports: Collection[PortRef], timeout_s: float) -> list[str]:
        """Wait until *ports* have what is wanted of them. Return, in words, what is not so then."""
        return self.queues.wait_ports(ports, timeout_s)

    def crash_agent(self, host: str) -> None:
        """Have a host's agent end as by a crash. Raise KeyError, ChannelError."""
        self.agents.crash(host, CRASH_S)

    def rates(self, names: FabricNames) -> Mapping[str, float]:
        """Return what links carry, kbit/s by name, where it is known better than from their ports.

        Switches' databases say it (`controller.queues`) where their ports are shaped. A lab's ports are veths,
        which say 10 Gbit/s themselves: without such a database the packet time counts, that of the slowest fabric link.
        """
        known = self.queues.rates_bps() if self._lab else {}
        slowest = PACKET_BYTES * 8 / self.current.packet_time_s if self._lab else 0.0
        rates: dict[str, float] = {}
        for link in names.links:
            end_rates = [known[end] for end in (link.a, link.b) if end is not None and end in known]
            rate = min(end_rates, default=0.0 if link.access else slowest)
            if rate > 0:
                rates[link.name] = rate / 1000
        return rates

    def _make_shell(
        self,
        openflow: tuple[str, int] | None,
        allowed: AllowedSwitches | None,
        tls: SwitchTlsContexts | None,
    ) -> Shell:
        if openflow is None:
            return SwitchlessShell(self._note)
        from controller.shell.shell import OpenFlowShell

        return OpenFlowShell(self._plane, *openflow, on_event=self._note, allowed=allowed, tls=tls)

    def _note(self, event: object) -> None:
        if isinstance(event, PortCounters):
            self.live.links.counted(event.dpid, event.body)
            return
        if isinstance(event, PathsChanged):
            paths = {_leaf_key(leaf): stamps for leaf, stamps in event.paths.items()}
            self.agents.set_paths(_leaf_key(event.leaf), Paths(paths, dict(event.by_class)))
            return  # no event of its own: what changed it is
        self.events.add(event)
        if isinstance(event, LinkUp | LinkDown | SwitchUp | SwitchDown | HostSeen | HostLinkChanged):
            self._fabric_watch.wake()
        if isinstance(event, SwitchUp):
            for ports, up in (
                (self.faults.held_down(event.dpid), False),
                (self.faults.let_go(event.dpid), True),
            ):
                if ports:
                    self.shell.set_ports_soon(ports, up)
            address = self.shell.address_of(event.dpid)
            if address is not None:
                self.queues.switch_up(event.dpid, address)
        elif isinstance(event, SwitchDown):
            self.queues.switch_down(event.dpid)
        if isinstance(event, HostSeen):
            self.agents.set_leaf(event.ipv4, _leaf_key(event.place.dpid))
            self._hosts_seen += 1
            if self._hosts_seen % SWEEP_EVERY == 0:
                self.agents.keep_leaves(self._plane.addresses())

    def _publish_types(self, types: FlowTypes) -> None:
        with contextlib.suppress(ChannelError):  # we are ending
            self.agents.set_flow_types(types)

    def _joined(self, member: Member) -> None:
        if self._joins.joined(member.host, time.monotonic()):
            self.events.add(AgentEvent(member.host, joined=True))
        if self.faults.holds_agent(member.host):
            self.agents.crash_soon(member.host)
        self._fabric_watch.wake()
        self.shell.post(
            lambda: self._plane.agent_joined(
                member.host, member.underlay_ip, member.underlay_mac, self.shell.now()
            )
        )

    def _left(self, member: Member) -> None:
        self._joins.left(member.host)
        self.events.add(AgentEvent(member.host, joined=False))
        self.shell.post(lambda: self._plane.agent_left(member.host, self.shell.now()))

    def _compose(
        self, base: str | Mapping[str, Any], overrides: dict[str, Any], packet_time_s: float, version: int
    ) -> CurrentScheme:
        scheme = loader.load(base) if isinstance(base, str) else loader.scheme_from_dict(dict(base), "scheme")
        if overrides:
            scheme = with_overrides(scheme, overrides)
        if scheme.lab_problem is not None:
            raise loader.SchemeError(scheme.lab_problem)
        return CurrentScheme(
            scheme, base if isinstance(base, str) else scheme.name, overrides, packet_time_s, version
        )


def port_queues(scheme: Scheme) -> PortQueues:
    """Return the queues that every port has under *scheme*."""
    queues = scheme.queues
    return ONE_QUEUE if queues is None else PortQueues(queues.number, queues.buffer_packets)


def _leaf_key(dpid: int) -> str:
    """Return a leaf in messages to agents."""
    return f"{dpid:016x}"
