"""A controller's process: the real control plane, members and scheme in their real files, channels without sockets.

What the shells do for the control plane is done here likewise: a refused update ends the connection, what is known of a
host or of paths goes on to agents (`shell/shell.py`, `agents/server.py`, `running.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from controller.agents.directory_distribution import SETTLE_S
from controller.agents.members_file import read_members, write_members
from controller.agents.membership import Member, Membership, MembershipError
from controller.agents.places import Places
from controller.control_plane import ControlPlane
from controller.fabric.events import (
    HostLinkChanged,
    HostSeen,
    LinkDown,
    LinkUp,
)
from controller.fabric.graph import PortRef
from controller.fabric.switch_data import Held, MeterReading, Port
from controller.openflow.errors import SwitchError
from controller.openflow.refusals import Refusals
from controller.plane.effects import (
    Effects,
    Event,
    PathsChanged,
    SwitchDown,
    SwitchUp,
)
from controller.schemes.current import CurrentScheme, SchemeFile
from controller.schemes.policy import policy_for
from controller.schemes.scheme import Scheme
from protocol.admission import Finished, Grant, Request, Stop
from protocol.control import Directory, FlowTypes, Paths, SetPolicy
from protocol.frames import encode
from tests.world.admission import Admission
from tests.world.agents import Host, Session
from tests.world.clock import Clock
from tests.world.switches import Daemon, Link

GRACE_S: Final = 3.0
"""Of members without a channel: less than a controller's 15 s, so that runs stay short."""
PACKET_TIME_S: Final = 0.0012


class Controller:
    """Begins with what its files say. ``links``: connections of switches, by dpid; ``sessions``: of agents, by host."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        directory: Path,
        initial: Scheme,
        daemons: Mapping[int, Daemon],
        hosts: Mapping[str, Host],
        hang_up: Callable[[int], None],
    ) -> None:
        self._hang_up = hang_up
        self._clock = clock
        self._daemons = daemons
        self._hosts = hosts
        self.plane = ControlPlane(rng.randbytes(32))
        self._refusals = Refusals()
        self.links: dict[int, Link] = {}
        self.sessions: dict[str, Session] = {}
        self.events: list[Event] = []
        self.alive = True
        self.stalled_until = 0.0
        self._held_up: list[Callable[[], None]] = []
        self._deadline: float | None = None
        """The control plane's; None: it has been called since."""
        self._policy: tuple[int, bytes] = (0, b"")
        self.scheme_file = SchemeFile(directory / "scheme.json")
        self.members_file = directory / "members.json"
        self.current = self.scheme_file.read() or CurrentScheme(initial, initial.name, {}, PACKET_TIME_S, 1)
        self.membership = Membership(read_members(self.members_file), clock.now, GRACE_S)
        self.places = Places()
        self.flow_types: FlowTypes | None = None
        """The last ones under the policy in force."""
        self.admission = Admission(clock, self._later, self.plane.snapshot, self._decide)
        self._spreading = False
        self._set_scheme()
        for member in self.membership.members():
            self._joined(member)
        self._plan_expiry()

    def end(self) -> None:
        """Kill the process: all its connections end."""
        self.alive = False
        for link in self.links.values():
            link.close()
        for session in self.sessions.values():
            session.close()

    def stall(self, seconds: float) -> None:
        """Give the process no processor for so many seconds."""
        self.stalled_until = self._clock.now + seconds
        self._clock.at(self.stalled_until, self._go_on)

    def enter(self, work: Callable[[], None]) -> None:
        """Have *work* done by the process, when it has a processor."""
        if not self.alive:
            return
        if self._clock.now < self.stalled_until:
            self._held_up.append(work)
        else:
            work()

    def deadline(self) -> float:
        """Return when `tick` wants to be called; infinity for never."""
        if self._deadline is None:
            wanted = self.plane.deadline()
            self._deadline = float("inf") if wanted is None else wanted
        return max(self._deadline, self.stalled_until) if self.alive else float("inf")

    def tick(self) -> None:
        self.do(self.plane.tick(self._clock.now))

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        self._clock.after(seconds, lambda: self.enter(work))

    def _go_on(self) -> None:
        held_up, self._held_up = self._held_up, []
        for work in held_up:
            self.enter(work)

    # Switches

    def switch_came(self, dpid: int, link: Link) -> None:
        """Handle a switch that has connected, and said what it has and holds."""
        hello = self._daemons[dpid].hello()
        link.to_controller.send(lambda: self.enter(lambda: self._admit(dpid, link, hello.ports, hello.held)))

    def _admit(self, dpid: int, link: Link, ports: list[Port], held: Held | None) -> None:
        if dpid in self.links:
            self.switch_lost(dpid, self.links[dpid])
        if link.closed:
            return
        self.links[dpid] = link
        self._refusals.began_anew(dpid)
        self.do(self.plane.switch_connected(dpid, ports, held, self._clock.now))

    def switch_lost(self, dpid: int, link: Link) -> None:
        """Handle the end of a switch's connection."""
        if self.links.get(dpid) is link:
            link.close()
            del self.links[dpid]
            self.do(self.plane.switch_disconnected(dpid, self._clock.now))

    def packet_in(self, link: Link, place: PortRef, cookie: int, frame: bytes) -> None:
        if self.links.get(place.dpid) is link:
            self.do(self.plane.packet_in(*place, cookie, frame, now=self._clock.now))

    def port_status(self, link: Link, dpid: int, port: Port) -> None:
        if self.links.get(dpid) is link:
            self.do(self.plane.port_changed(dpid, port, self._clock.now))

    def metered(self, link: Link, dpid: int, readings: Mapping[int, MeterReading]) -> None:
        if self.links.get(dpid) is link:
            self.do(self.plane.meter_sample(dpid, readings, self._clock.now))

    def confirmed(self, link: Link, dpid: int, refused: int) -> None:
        """Handle a barrier reply, after *refused* errors."""
        if self.links.get(dpid) is not link:
            return
        link.unconfirmed -= 1
        now = self._clock.now
        if refused:
            errors = (SwitchError(dpid, "add flow", "FLOW_MOD_FAILED", "TABLE_FULL", at=now),) * refused
            if self._refusals.update_refused(dpid, errors, now):
                self._hang_up(dpid)
                return
            self._plan_heal()
        if link.unconfirmed:
            self.plane.progressed(dpid, now)
            self._deadline = None
        else:
            self.do(self.plane.applied(dpid, now))

    def _heal(self) -> None:
        for dpid in self._refusals.due(self._clock.now):
            if dpid in self.links:
                self._hang_up(dpid)
        self._plan_heal()

    def owes_a_beginning(self) -> bool:
        """Return whether a switch that refused something has yet to begin anew."""
        return self._refusals.deadline() is not None

    def _plan_heal(self) -> None:
        heal_at = self._refusals.deadline()
        if heal_at is not None:
            self._clock.at(heal_at, lambda: self.enter(self._heal))

    def do(self, effects: Effects) -> None:
        """Carry out what the control plane wants."""
        self._deadline = None
        for dpid, change in effects.updates.items():
            link = self.links.get(dpid)
            if link is not None:
                link.unconfirmed += 1
                whole = dpid in effects.resync
                daemon = self._daemons[dpid]
                link.to_switch.send(partial(daemon.update, link, change, whole))
        for out in effects.packet_outs:
            link = self.links.get(out.dpid)
            if link is not None:
                daemon = self._daemons[out.dpid]
                link.to_switch.send(partial(daemon.packet_out, link, out.port, out.data))
        for dpid in effects.read_meters:
            link = self.links.get(dpid)
            if link is not None:
                daemon = self._daemons[dpid]
                link.to_switch.send(partial(daemon.read_meters, link))
        self.events += effects.events
        for event in effects.events:
            if isinstance(event, PathsChanged):
                leaves = {_key(leaf): stamps for leaf, stamps in event.paths.items()}
                self._set_paths(_key(event.leaf), Paths(leaves, dict(event.by_class)))
            elif isinstance(event, HostSeen):
                self._set_leaf(event.ipv4, _key(event.place.dpid))
            if isinstance(event, LinkUp | LinkDown | SwitchUp | SwitchDown | HostSeen | HostLinkChanged):
                self._later(0.0, self.admission.wake)

    # Agents

    def agent_came(self, host: Host, session: Session) -> None:
        """Let in an agent that has connected, and proved who it is."""
        if session.to_controller.closed:
            return
        member = host.member()
        try:
            displaced = self.membership.join(member, self._clock.now)
        except MembershipError as error:
            raise AssertionError(f"an honest agent is refused: {error}") from error
        assert not displaced, "no two hosts share an address"
        old = self.sessions.get(host.name)
        self.sessions[host.name] = session
        if old is not None:
            old.close()
            self.admission.gone(host.name)
        session.open = True
        session.to_agent.send(partial(host.welcomed, session))
        session.put_newest("directory", self._directory_frame(), host)
        session.put_newest("policy", self._policy_frame(), host)
        if self.flow_types is not None:
            session.put_newest("flow-types", encode(self.flow_types), host)
        frame = self.places.paths_frame(host.place.ipv4)
        if frame is not None:
            session.put_newest("paths", frame, host)
        self._joined(member)
        self.admission.wake()
        self._spread()
        self._plan_expiry()

    def asked(self, session: Session, message: Request | Finished) -> None:
        """Handle an agent's message that it has a flow to send, or has sent it."""
        if self.sessions.get(session.host) is session:
            self.admission.receive(session.host, message)

    def _decide(self, host: str, decision: Grant | Stop) -> None:
        session = self.sessions.get(host)
        if session is not None:
            session.to_agent.send(partial(self._hosts[host].obey, session, encode(decision)))

    def agent_lost(self, session: Session) -> None:
        """Handle the end of an agent's channel."""
        if self.sessions.get(session.host) is session:
            session.close()
            del self.sessions[session.host]
            self.membership.disconnect(session.host, self._clock.now)
            self.admission.gone(session.host)
            self._plan_expiry()

    def _joined(self, member: Member) -> None:
        now = self._clock.now
        self.do(self.plane.agent_joined(member.host, member.underlay_ip, member.underlay_mac, now))

    def _plan_expiry(self) -> None:
        deadline = self.membership.deadline()
        if deadline is not None:
            self._clock.at(deadline + 0.01, lambda: self.enter(self._expire))

    def _expire(self) -> None:
        gone = self.membership.expire(self._clock.now)
        for member in gone:
            self.do(self.plane.agent_left(member.host, self._clock.now))
        if gone:
            self._spread()
            self._plan_expiry()

    def _set_leaf(self, underlay_ip: str, leaf: str) -> None:
        if self.places.set_leaf(underlay_ip, leaf):
            for host, session in self._located():
                if host.place.ipv4 == underlay_ip:
                    self._put_paths(host, session)
            self._spread()

    def _set_paths(self, leaf: str, paths: Paths) -> None:
        if self.places.set_paths(leaf, paths):
            for host, session in self._located():
                if self.places.leaf_of(host.place.ipv4) == leaf:
                    self._put_paths(host, session)

    def _put_paths(self, host: Host, session: Session) -> None:
        frame = self.places.paths_frame(host.place.ipv4)
        if frame is not None:
            session.put_newest("paths", frame, host)

    def _located(self) -> list[tuple[Host, Session]]:
        return [(self._hosts[name], session) for name, session in self.sessions.items()]

    def _spread(self) -> None:
        if not self._spreading:
            self._spreading = True
            self._clock.after(SETTLE_S, lambda: self.enter(self._spread_now))

    def _spread_now(self) -> None:
        self._spreading = False
        frame = self._directory_frame()
        for host, session in self._located():
            session.put_newest("directory", frame, host)
        write_members(self.members_file, self.membership.members())

    def _directory_frame(self) -> bytes:
        peers = (member.peer() for member in self.membership.members())
        return encode(Directory([replace(one, leaf=self.places.leaf_of(one.underlay_ip)) for one in peers]))

    # The scheme

    def change_scheme(self, scheme: Scheme) -> None:
        """Switch the fabric over, in the steps of `RunningController.set_scheme`. Raises OSError; the old one stays."""
        self.current = self.write_scheme(scheme)
        self.flow_types = None
        frame = self._policy_frame()
        for host, session in self._located():
            session.put_newest("policy", frame, host)
        self._set_scheme()

    def write_scheme(self, scheme: Scheme) -> CurrentScheme:
        """Write the scheme, as the first step: what a restart finds is in force. Raises OSError."""
        current = CurrentScheme(scheme, scheme.name, {}, PACKET_TIME_S, self.current.version + 1)
        self.scheme_file.write(current)
        return current

    def set_flow_types(self, types: FlowTypes) -> None:
        """Have agents act on types that were learnt under a policy, if it is in force."""
        if types.version == self.current.version:
            self.flow_types = types
            for host, session in self._located():
                session.put_newest("flow-types", encode(types), host)

    def _set_scheme(self) -> None:
        self.admission.set_rule(self.current.scheme.admission)
        self.do(self.plane.set_scheme(self.current.scheme, self.current.packet_time_s, self._clock.now))

    def _policy_frame(self) -> bytes:
        current = self.current
        if self._policy[0] != current.version:
            policy = policy_for(current.scheme, current.packet_time_s, current.version)
            self._policy = (current.version, encode(SetPolicy(policy.to_dict())))
        return self._policy[1]


def _key(dpid: int) -> str:
    return f"{dpid:016x}"
