"""All of it together, in one thread and one made-up time: a controller, switches, agents, and what goes between them.

Nothing here is random but by the generator that is passed in: a seed is a run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from controller.fabric.arp import BROADCAST_MAC, NO_MAC, REPLY, REQUEST, Arp, decode_arp
from controller.fabric.graph import Link as Cable
from controller.fabric.graph import PortRef
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.session import SILENCE_LIMIT_S as SWITCH_SILENCE_S
from controller.schemes.scheme import Scheme
from host_agent.channel import SILENCE_S as CHANNEL_SILENCE_S
from protocol.underlay import BASE_PORT
from tests.unit.fabric_shapes import Shape, SimHost
from tests.unit.fake_tables import Packet
from tests.world.agents import CHANNEL_S, Host, Sent, Session
from tests.world.clock import Channel, Clock
from tests.world.controller import Controller
from tests.world.fabric import Hardware, LoopError, Way
from tests.world.invariants import Watch
from tests.world.switches import Calls, Daemon, Link

WIRE_S: Final = 0.0002
"""Of a frame between two switches, or of a datagram through the fabric, at least."""
MOST_STEPS: Final = 400_000
"""Of a run; more means that something never rests."""
_NEVER: Final = float("inf")
_TIMER: Final = attrgetter("timer")


@dataclass
class Weather:
    """What happens to datagrams on their way. Shares, and seconds at most."""

    loss: float = 0.0
    duplicate: float = 0.0
    jitter_s: float = 0.0


class World:
    """A fabric of this shape whose controller keeps its files in *directory*, which is empty at first."""

    def __init__(self, shape: Shape, initial: Scheme, directory: Path, rng: random.Random) -> None:
        self.shape = shape
        self.rng = rng
        self.dark = {PortRef(leaf, shape.ports[leaf]) for leaf in shape.leaves}
        """Ports without a cable: one of each leaf's at first."""
        self.clock = Clock()
        self.weather = Weather()
        self.hardware = Hardware(shape.ports, shape.links)
        for port in self.dark:
            self.hardware.switches[port.dpid].down.add(port.port)
        self.sent: dict[int, Sent] = {}
        calls = Calls(
            self._frame_leaves,
            lambda link, place, cookie, frame: self._for_controller(
                lambda one: one.packet_in(link, place, cookie, frame)
            ),
            lambda link, dpid, refused: self._for_controller(lambda one: one.confirmed(link, dpid, refused)),
            lambda link, dpid, readings: self._for_controller(lambda one: one.metered(link, dpid, readings)),
            self.end_link,
            lambda dpid: self.watch.looked_at(dpid),
        )
        self.daemons = {
            dpid: Daemon(dpid, ports, self.hardware.switches[dpid], self.clock, rng, calls)
            for dpid, ports in shape.ports.items()
        }
        self.hosts = {one.name: Host(one, overlay_of(one), self.clock, rng, self.sent) for one in shape.hosts}
        self.at = {one.place: self.hosts[one.name] for one in shape.hosts}
        self.by_address = {one.ipv4: self.hosts[one.name] for one in shape.hosts}
        self._initial = initial
        self._directory = directory
        self.controller: Controller | None = None
        self.watch = Watch(self)
        self._steps = 0

    # Time

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.clock.now + seconds
        while self.step(end):
            pass
        self.clock.now = end

    def step(self, end: float) -> bool:
        """Do what is due next, by *end*; False: nothing is. Raises AssertionError for whatever must not be."""
        controller = self.controller
        tick = _NEVER if controller is None else controller.deadline()
        action, host = self.clock.next_at(), min(self.hosts.values(), key=_TIMER)
        when = min(action, tick, host.timer)
        if when > end:
            return False
        self._steps += 1
        assert self._steps < MOST_STEPS, "something never rests"
        if action <= when:
            self.clock.do_next()
        elif controller is not None and tick <= when:
            self.clock.now = max(self.clock.now, when)
            controller.tick()
        else:
            self.clock.now = max(self.clock.now, when)
            host.on_timer()
        for host in self.hosts.values():
            if host.touched:
                host.touched = False
                self._carry_questions(host)
                self._carry_datagrams(host)
                host.collect()
        return True

    # The controller

    def start_controller(self) -> None:
        """Start a controller with what the files of the one before say; switches and agents find it."""
        assert self.controller is None
        self.controller = Controller(
            self.clock, self.rng, self._directory, self._initial, self.daemons, self.hosts, self.end_link
        )
        for dpid in self.daemons:
            self._redial_switch(dpid)
        for name in self.hosts:
            self._redial_agent(name)

    def end_controller(self) -> None:
        """Kill the controller."""
        if self.controller is not None:
            self.controller.end()
            self.controller = None
            for daemon in self.daemons.values():
                daemon.link = None
            for host in self.hosts.values():
                if host.session is not None:
                    host.session = None

    def _for_controller(self, work: Callable[[Controller], None]) -> None:
        controller = self.controller
        if controller is not None:
            controller.enter(lambda: work(controller))

    # Switches

    def end_link(self, dpid: int) -> None:
        """Break the connection of a switch; both sides see it, and the switch dials again."""
        daemon = self.daemons[dpid]
        link, daemon.link = daemon.link, None
        if link is not None:
            link.close()
            self._for_controller(lambda one: one.switch_lost(dpid, link))
        self._redial_switch(dpid)

    def reach_switch(self, dpid: int, reachable: bool) -> None:
        """Let messages between a switch and the controller pass, or wait; too long, and the connection ends."""
        daemon = self.daemons[dpid]
        daemon.cut(reachable)
        link = daemon.link
        if reachable:
            self._redial_switch(dpid)
        elif link is not None:
            self.clock.after(SWITCH_SILENCE_S, lambda: self._silent_switch(dpid, link))

    def _silent_switch(self, dpid: int, link: Link) -> None:
        daemon = self.daemons[dpid]
        if daemon.link is link and not daemon.reachable:
            self.end_link(dpid)

    def kill_switch(self, dpid: int) -> None:
        """Kill a switch's daemon: what it held is gone."""
        daemon = self.daemons[dpid]
        link = daemon.link
        daemon.end()
        if link is not None:
            self._for_controller(lambda one: one.switch_lost(dpid, link))

    def revive_switch(self, dpid: int) -> None:
        self.daemons[dpid].alive = True
        self._redial_switch(dpid)

    def _redial_switch(self, dpid: int) -> None:
        self.clock.after(self.rng.choice((0.001, 0.05, 1.0)) * self.rng.random(), lambda: self._dial(dpid))

    def _dial(self, dpid: int) -> None:
        daemon, controller = self.daemons[dpid], self.controller
        if daemon.alive and daemon.reachable and daemon.link is None and controller is not None:
            controller.switch_came(dpid, daemon.connect())

    def set_port(self, ref: PortRef, up: bool) -> None:
        """Give a port its light, or take it away; its switch says so."""
        daemon = self.daemons[ref.dpid]
        down = self.hardware.switches[ref.dpid].down
        down.discard(ref.port) if up else down.add(ref.port)
        link = daemon.link
        if link is not None and daemon.alive:
            port = daemon.port(ref.port)
            link.to_controller.send(
                lambda: self._for_controller(lambda one: one.port_status(link, ref.dpid, port))
            )
        self.watch.looked_at(ref.dpid)

    def set_cable(self, cable: Cable, up: bool) -> None:
        for end in cable:
            self.set_port(end, up)

    # Hosts

    def move_host(self, name: str, to: PortRef, old_port_up: bool) -> None:
        """Move a host's cable to another port; its kernel says so by ARP, now and then for as long as the run lasts.

        old_port_up: the port that it leaves keeps its light, as where another switch is in between.
        """
        host = self.hosts[name]
        before = host.place.place
        del self.at[before]
        host.place = replace(host.place, place=to)
        host.moved = True
        self.at[to] = host
        self.dark.discard(to)
        if not old_port_up:
            self.dark.add(before)
            self.set_port(before, False)
        self.set_port(to, True)
        self._announce(host, to)

    def free_ports(self) -> list[PortRef]:
        """Return ports that a host's cable may go into."""
        return sorted(self.dark)

    def _announce(self, host: Host, place: PortRef) -> None:
        if host.place.place != place:
            return
        here = host.place
        frame = Arp(BROADCAST_MAC, here.mac, REQUEST, here.mac, here.ipv4, NO_MAC, here.ipv4).encode()
        self.clock.after(WIRE_S, lambda: self.daemons[place.dpid].frame_in(place.port, frame))
        self.clock.after(1.0 + 5.0 * self.rng.random(), lambda: self._announce(host, place))

    def _frame_leaves(self, sender: PortRef, frame: bytes) -> None:
        if not self.hardware.passes(sender):
            return
        peer, host = self.hardware.peers.get(sender), self.at.get(sender)
        if peer is not None:
            self.clock.after(WIRE_S, lambda: self.daemons[peer.dpid].frame_in(peer.port, frame))
        elif host is not None:
            self._asked(host, frame)

    def _asked(self, host: Host, frame: bytes) -> None:
        """Handle a frame that reaches a host: its kernel answers ARP."""
        arp, place = decode_arp(frame), host.place
        if arp is not None and arp.operation == REQUEST and arp.target_ip == place.ipv4:
            reply = Arp(
                arp.sender_mac, place.mac, REPLY, place.mac, place.ipv4, arp.sender_mac, arp.sender_ip
            )
            self.clock.after(
                WIRE_S, lambda: self.daemons[place.place.dpid].frame_in(place.place.port, reply.encode())
            )

    # Agents

    def start_agent(self, name: str) -> None:
        self.hosts[name].start()
        self._redial_agent(name)

    def end_agent(self, name: str) -> None:
        """Kill an agent's process, which its controller sees."""
        host = self.hosts[name]
        session = host.session
        host.end()
        if session is not None:
            self._for_controller(lambda one: one.agent_lost(session))

    def reach_agent(self, name: str, reachable: bool) -> None:
        """Let messages between an agent and the controller pass, or wait; too long, and the channel ends."""
        host = self.hosts[name]
        host.reachable = reachable
        session = host.session
        if session is not None:
            session.cut(host, reachable)
        if reachable:
            self._redial_agent(name)
        elif session is not None:
            self.clock.after(CHANNEL_SILENCE_S, lambda: self._silent_agent(host, session))

    def _silent_agent(self, host: Host, session: Session) -> None:
        if host.session is session and not host.reachable:
            session.close()
            host.session = None
            self._for_controller(lambda one: one.agent_lost(session))

    def _redial_agent(self, name: str) -> None:
        self.clock.after(
            self.rng.choice((0.001, 0.1, 1.0)) * self.rng.random(), lambda: self._dial_agent(name)
        )

    def _dial_agent(self, name: str) -> None:
        host, controller = self.hosts[name], self.controller
        if host.core is None or not host.reachable or host.session is not None or controller is None:
            return
        down, up = (Channel(self.clock, self.rng, CHANNEL_S) for _ in range(2))
        session = host.session = Session(name, down, up)
        host.new_channel()
        session.to_controller.send(lambda: controller.enter(lambda: controller.agent_came(host, session)))

    def _carry_questions(self, host: Host) -> None:
        for message in host.questions():
            session = host.session
            if session is not None and session.open:
                session.to_controller.send(
                    partial(
                        self._for_controller,
                        lambda controller, session=session, message=message: controller.asked(
                            session, message
                        ),
                    )
                )

    # Datagrams

    def _carry_datagrams(self, host: Host) -> None:
        for out in host.outgoing():
            target = self.by_address[out.underlay_ip]
            packet = Packet(
                eth_dst=target.place.mac,
                ip_dscp=out.tos >> 2,
                ipv4_src=host.place.ipv4,
                ipv4_dst=out.underlay_ip,
                udp_src=out.source_port,
                udp_dst=out.destination_port,
            )
            try:
                way, copies = self.hardware.carry(packet, host.place.place)
            except LoopError as error:
                self.watch.loop(f"{host.name}'s datagram to {target.name}: {error}")
                continue
            for place, cookie in copies:
                if rule_of(cookie) is Rule.FIRST_SHORT:
                    self.daemons[place.dpid].copy_up(place, cookie, bytes(64))
            self.watch.datagram(host, target, way)
            if way.place == target.place.place and way.packet.udp_dst == BASE_PORT:
                self._arrive(host, target, way, out.data, out.tos)

    def _arrive(self, host: Host, target: Host, way: Way, data: bytes, tos: int) -> None:
        weather, rng = self.weather, self.rng
        if rng.random() < weather.loss:
            return
        for _ in range(2 if rng.random() < weather.duplicate else 1):
            delay = WIRE_S * len(way.hops) + weather.jitter_s * rng.random()
            self.clock.after(delay, lambda: target.datagram(data, host.place.ipv4, way.packet.udp_src, tos))


def overlay_of(host: SimHost) -> str:
    """Return the address of a host's applications."""
    return f"10.128.{host.ipv4.split('.', 2)[2]}"
