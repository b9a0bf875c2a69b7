"""A simulation of a fabric under a control plane: fake tables, links, hosts, time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from controller.control_plane import ControlPlane
from controller.fabric.arp import REPLY, REQUEST, Arp, decode_arp
from controller.fabric.graph import Link, PortRef
from controller.fabric.switch_data import (
    Held,
    HeldHost,
    MeterReading,
    Port,
)
from controller.openflow.cookies import Rule
from controller.openflow.tables import Table
from controller.openflow.wanted import Difference, Match, Output, SetField, SwitchState
from controller.plane.effects import Effects, Event
from controller.schemes.scheme import Scheme
from protocol.underlay import BASE_PORT, TrafficClass
from tests.unit.fabric_shapes import KEY, LOCAL, Shape, SimHost, datagram
from tests.unit.fake_fabric import FakeFabric
from tests.unit.fake_tables import FakeSwitch, Packet, by_hash, frame_of, packet_of

DELAY_S = 0.0005


class Simulation:
    """A control plane, its fabric and time. Everything takes ``DELAY_S``: messages, frames."""

    def __init__(self, shape: Shape, *, agents: bool = True, start: float = 1000.0) -> None:
        self.shape = shape
        self.now = start
        self.fabric = FakeFabric({dpid: FakeSwitch() for dpid in shape.ports})
        self.fabric.wire(shape.links)
        self.peers = {end: other for a, b in shape.links for end, other in ((a, b), (b, a))}
        self.hosts = {host.place: host for host in shape.hosts}
        self.events: list[Event] = []
        self.updates: list[tuple[float, int, int]] = []
        """(time, dpid, changes) of every update."""
        self.frames: list[tuple[float, PortRef, bytes]] = []
        """Frames that reached hosts."""
        self.lost_frames: Callable[[PortRef], bool] = lambda sender: False
        self.connected: set[int] = set()
        self.silent: set[str] = set()
        """IP addresses of hosts that do not answer."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._ids = itertools.count()
        self.plane = ControlPlane(KEY)
        self.with_agents = agents
        self.after_update: Callable[[], None] = lambda: None
        self.apply_s: dict[int, float] = {}
        """How long switches take to make a change; those that are not named are at once."""
        self._unconfirmed: dict[int, list[Difference]] = {}
        """Updates of each switch's present connection that were sent and not confirmed."""

    def start(self) -> None:
        for dpid in self.shape.ports:
            self.connect(dpid)
        if self.with_agents:
            self.join_agents()

    def join_agents(self) -> None:
        for host in self.shape.hosts:
            self.join(host)

    def join(self, host: SimHost) -> None:
        self.do(self.plane.agent_joined(host.name, host.ipv4, host.mac, self.now))

    def ports(self, dpid: int) -> list[Port]:
        down = self.fabric.switches[dpid].down
        return [
            Port(LOCAL, f"sw{dpid:x}", "02:00:00:00:00:01", True),
            *(
                Port(number, f"sw{dpid:x}-{number}", "02:00:00:00:00:02", number not in down, 10_000_000)
                for number in range(1, self.shape.ports[dpid] + 1)
            ),
        ]

    def connect(self, dpid: int) -> None:
        self.connected.add(dpid)
        self._unconfirmed[dpid] = []
        held = held_of(self.fabric.switches[dpid].state)
        self.do(self.plane.switch_connected(dpid, self.ports(dpid), held, self.now))

    def connect_unasked(self, dpid: int) -> None:
        """Add an empty switch that is no part of the shape; the control plane learns of it by the caller."""
        self.connected.add(dpid)
        self._unconfirmed[dpid] = []
        self.fabric.switches[dpid] = type(next(iter(self.fabric.switches.values())))()

    def disconnect(self, dpid: int) -> None:
        self.connected.discard(dpid)
        self._unconfirmed.pop(dpid, None)
        self.do(self.plane.switch_disconnected(dpid, self.now))

    def kill(self, dpid: int) -> None:
        """Kill the switch's daemon: its state is gone, its cables keep their light."""
        self.fabric.switches[dpid].state = SwitchState()
        self.disconnect(dpid)

    def restart_controller(self) -> None:
        """Start a new control plane; switches keep what they hold and have to be connected again."""
        self.plane = ControlPlane(KEY[::-1])
        self.connected.clear()
        self._queue.clear()
        self._unconfirmed.clear()

    def port(self, ref: PortRef, *, up: bool) -> None:
        """Set a port's link up or down (as its switch reports it)."""
        down = self.fabric.switches[ref.dpid].down
        down.discard(ref.port) if up else down.add(ref.port)
        if ref.dpid in self.connected:
            port = next(one for one in self.ports(ref.dpid) if one.number == ref.port)
            self.do(self.plane.port_changed(ref.dpid, port, self.now))

    def cut(self, link: Link) -> None:
        for end in link:
            self.port(end, up=False)

    def mend(self, link: Link) -> None:
        for end in link:
            self.port(end, up=True)

    def set_scheme(self, scheme: Scheme, packet_time_s: float = 0.004) -> None:
        self.do(self.plane.set_scheme(scheme, packet_time_s, self.now))

    def delivers(self, source: SimHost, target: SimHost, kind: TrafficClass = TrafficClass.LONG) -> bool:
        """Return whether every way that groups may choose ends at *target*, as its agent or its kernel expects it."""
        packet = datagram(source, target, kind)
        return all(
            trace.place == target.place and trace.packet.udp_dst == (BASE_PORT if kind else packet.udp_dst)
            for trace in self.fabric.traces(packet, source.place)
        )

    def arp(self, host: SimHost, target: str, place: PortRef | None = None, mac: str = "") -> None:
        """Send an ARP request of *host* for *target*."""
        mac = mac or host.mac
        frame = Arp("ff:ff:ff:ff:ff:ff", mac, REQUEST, mac, host.ipv4, "00:00:00:00:00:00", target)
        self.arrive(place or host.place, frame.encode())

    def send(self, packet: Packet, host: SimHost) -> list[tuple[int, ...]]:
        """Send *packet* of *host* for good; return the switches on its way, by hash; the controller gets packet-ins."""
        self.fabric.punted.clear()
        traces = self.fabric.traces(packet, host.place, by_hash)
        for place, cookie in list(self.fabric.punted):
            self._in(DELAY_S, lambda p=place, c=cookie: self._packet_in(p, c, b"\0" * 64))
        return [trace.switches for trace in traces if trace.place is not None]

    def run(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds, must=False)

    def run_until(self, condition: Callable[[], bool], limit: float, *, must: bool = True) -> float:
        """Let time pass until *condition* or *limit* seconds; the seconds it took."""
        began, calls = self.now, 0
        while not condition():
            calls += 1
            assert calls < 200_000, "the control plane never rests"
            deadline = self.plane.deadline()
            event = self._queue[0][0] if self._queue else float("inf")
            when = min(event, float("inf") if deadline is None else deadline)
            if when > began + limit:
                self.now = began + limit
                assert not must or condition(), f"not within {limit} s"
                return limit
            self.now = max(self.now, when)
            if event <= self.now:
                heapq.heappop(self._queue)[2]()
            else:
                self.do(self.plane.tick(self.now))
        return self.now - began

    def do(self, effects: Effects) -> None:
        self.events += effects.events
        for dpid, change in effects.updates.items():
            assert dpid in self.connected, f"update for {dpid:#x}, which is not connected"
            count = sum(map(len, (change.add_flows, change.delete_flows, change.add_groups)))
            self.updates.append((self.now, dpid, count))
            self._update(dpid, change, dpid in effects.resync)
        for out in effects.packet_outs:
            if out.dpid in self.connected:
                self._send_frame(PortRef(out.dpid, out.port), out.data)
        for dpid in effects.read_meters:
            switch = self.fabric.switches[dpid]
            readings = {
                meter: MeterReading(
                    switch.meter_counts.get(meter, 0), 1500 * switch.meter_counts.get(meter, 0)
                )
                for meter in switch.state.meters
            }
            self._in(
                2 * DELAY_S,
                lambda d=dpid, r=readings: self.do(self.plane.meter_sample(d, r, self.now)),
            )

    def _update(self, dpid: int, change: Difference, whole: bool) -> None:
        unconfirmed = self._unconfirmed[dpid]

        def apply() -> None:
            if self._unconfirmed.get(dpid) is unconfirmed:
                self.fabric.switches[dpid].apply(change, whole=whole)
                self.after_update()

        def confirm() -> None:
            unconfirmed.pop()
            if self._unconfirmed.get(dpid) is not unconfirmed:
                return
            if unconfirmed:
                self.plane.progressed(dpid, self.now)
            else:
                self.do(self.plane.applied(dpid, self.now))

        unconfirmed.append(change)
        takes = self.apply_s.get(dpid, 0.0)
        if takes:
            self._in(takes, apply)
        else:
            apply()
        self._in(takes + DELAY_S, confirm)

    def arrive(self, place: PortRef, frame: bytes) -> None:
        """Feed *frame* (LLDP or ARP) to a switch, which does with it what its tables say."""
        switch = self.fabric.switches[place.dpid]
        if place.port in switch.down:
            return
        for outcome in switch.outcomes(packet_of(frame), place.port):
            for cookie in outcome.punted:
                self._in(DELAY_S, lambda c=cookie: self._packet_in(place, c, frame))
            for port, sent in outcome.sent:
                self._send_frame(PortRef(place.dpid, port), frame_of(sent))

    def _packet_in(self, place: PortRef, cookie: int, frame: bytes) -> None:
        if place.dpid in self.connected:
            self.do(self.plane.packet_in(*place, cookie, frame, now=self.now))

    def _send_frame(self, sender: PortRef, frame: bytes) -> None:
        if sender.port in self.fabric.switches[sender.dpid].down or self.lost_frames(sender):
            return
        peer, host = self.peers.get(sender), self.hosts.get(sender)
        if peer is not None:
            self._in(DELAY_S, lambda: self.arrive(peer, frame))
        elif host is not None:
            self.frames.append((self.now, sender, frame))
            arp = decode_arp(frame)
            asked = arp is not None and arp.operation == REQUEST and arp.target_ip == host.ipv4
            if arp is not None and asked and host.ipv4 not in self.silent:
                reply = Arp(
                    arp.sender_mac, host.mac, REPLY, host.mac, host.ipv4, arp.sender_mac, arp.sender_ip
                )
                self._in(DELAY_S, lambda: self.arrive(sender, reply.encode()))

    def _in(self, delay: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._ids), action))


def held_of(state: SwitchState) -> Held | None:
    """Return what the shell reads back from a switch, as `Held` says."""
    if not state.flows:
        return None
    hosts: dict[str, HeldHost] = {}
    remote = set()
    for flow in state.flows.values():
        if flow.table != Table.DELIVER:
            continue
        ipv4 = flow.match.ipv4_dst
        assert ipv4 is not None
        ports = [action.port for action in flow.actions if isinstance(action, Output)]
        fields = {action.field: action.value for action in flow.actions if isinstance(action, SetField)}
        if not ports:
            remote.add(ipv4)
        elif "udp_dst" in fields or ipv4 not in hosts:
            hosts[ipv4] = HeldHost(ipv4, str(fields["eth_dst"]), ports[0], "udp_dst" in fields)
    return Held(tuple(hosts.values()), frozenset(remote))


def short_rule(state: SwitchState) -> Rule:
    """Return the rule that serves the short class: FIRST_SHORT while the leaf is OFF."""
    flow = state.flows[(Table.CLASS, 10, Match(metadata=(1 << 16, 3 << 16)))]
    return Rule(flow.cookie)
