"""The brain of the controller: what happens in the fabric goes in, what to do about it comes out.

Pure and single-threaded by contract; time is a parameter. Discovery, hosts, routing, pipeline and modes each
decide their own part (`controller.fabric`, `controller.openflow.pipeline`, `controller.modes`); here is when they
are asked, and when a switch gets it.

**When.** Changes wait a few milliseconds for others of the same cause, then all of them are computed at once, and
each switch gets the difference. A mode change waits for nothing.

**In which order.** See `controller.plane.rollout`. Answers to ARP wait until all updates are in force.

**Take-over.** See `controller.plane.takeover`.

**Lost switches.** A leaf or spine whose connection is lost keeps its place in the graph, for it may still forward; but
other leaves' packets avoid it where they can (`controller.fabric.paths`). One that comes back empty gets its state
first and its share of packets when it has confirmed that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.arp import decode_arp, is_host_address, is_host_mac
from controller.fabric.discovery import LinkDiscovery
from controller.fabric.graph import PortRef, Wiring
from controller.fabric.host_learning import HostLearning
from controller.fabric.lldp import decode_lldp, encode_lldp
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import Routing, compute_routing
from controller.modes.leaf_modes import LeafModes
from controller.modes.monitor import ModeChange
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.punts import punt_flows, punt_meters
from controller.openflow.tables import SHORT_METER
from controller.openflow.wanted import Difference, SwitchState
from controller.openflow.wanted_switch import WantedSwitch
from controller.plane.effects import (
    LOCAL_PORT_FIRST,
    Effects,
    Event,
    Held,
    HostLinkChanged,
    LinkDown,
    LinkUp,
    MeterReading,
    ModeChanged,
    PacketOut,
    Port,
    SchemeChanged,
    StateSent,
    SwitchDown,
    SwitchForgotten,
    SwitchTurnedAway,
    SwitchUp,
)
from controller.plane.fabric_views import FabricViews
from controller.plane.forgetting import MOST_SWITCHES, Forgetting
from controller.plane.in_flight import CONFIRM_LIMIT_S, DATAPATH_LAG_S
from controller.plane.path_announcements import PathAnnouncements
from controller.plane.rollout import Rollout
from controller.plane.snapshot import (
    FabricSnapshot,
    ModeInfo,
    PathInfo,
    SwitchInfo,
    host_infos,
    link_infos,
    path_infos,
)
from controller.plane.takeover import (
    TAKEOVER_LIMIT_S,
    TAKEOVER_POLL_S,
    KnownSwitch,
    leaves_are_in_place,
    reaches,
)
from controller.schemes.scheme import Mode, Scheme

FAILURE_DELAY_S: Final = 0.003
"""How long a failure waits for others of the same cause; groups' watch ports bridge the time."""
GROWTH_DELAY_S: Final = 0.02
"""How long a new link or host waits for others."""


@dataclass(slots=True)
class _Outcome:
    """Effects while they are being put together."""

    punts: set[int] = field(default_factory=set)
    packet_outs: list[PacketOut] = field(default_factory=list)
    read_meters: tuple[int, ...] = ()
    events: list[Event] = field(default_factory=list)


class ControlPlane:
    """Args:
    key: signs our LLDP frames; 16 to 64 random bytes, fresh for every start of the controller.
    """

    def __init__(self, key: bytes) -> None:
        if not 16 <= len(key) <= 64:
            raise ValueError(f"the LLDP key must be 16 to 64 bytes, not {len(key)}")
        self._key = key
        self._now = float("-inf")
        self._discovery = LinkDiscovery()
        self._learning = HostLearning(self._discovery)
        self._hosts = self._learning.hosts
        self._numbers = SwitchNumbers()
        self._switches: dict[int, KnownSwitch] = {}
        self._rollout = Rollout(self._switches)
        self._forgetting = Forgetting(self._switches, self._discovery)
        self._wiring = Wiring(frozenset(), frozenset(), frozenset(), frozenset())
        self._routing = Routing()
        self._hosts_version = self._hosts.version
        self._ports: dict[int, tuple[int, ...]] = {}
        self._announcements = PathAnnouncements()
        self._scheme: Scheme | None = None
        self._modes = LeafModes()
        self._dirty_at: float | None = None
        self._failed = False
        """Whether something that carried packets is gone since the last computation."""
        self._clear_at: float | None = None
        self._clear_stale = False

    # What happens

    def switch_connected(self, dpid: int, ports: Sequence[Port], held: Held | None, now: float) -> Effects:
        """A switch is connected, for the first time or again; *ports* are all of its ports.

        held: None if the switch has no state at all.
        """
        out = _Outcome()
        if dpid not in self._switches and len(self._switches) >= MOST_SWITCHES:
            oldest = self._forgetting.make_room()
            if oldest is None:
                reason = f"{MOST_SWITCHES} switches are known already, and none of them can be forgotten"
                out.events.append(SwitchTurnedAway(now, dpid, reason))
                return dataclasses.replace(self._finish(out, now), turned_away={dpid: reason})
            self._forget(oldest, out, now)
        self._forgetting.connected(dpid)
        switch = self._switches.setdefault(dpid, KnownSwitch(dpid, WantedSwitch(dpid)))
        switch.name = next((port.name for port in ports if port.number >= LOCAL_PORT_FIRST), switch.name)
        switch.lost()
        switch.connected, switch.connected_at = True, now
        self._rollout.gone(dpid, now)
        switch.held = held if held is not None and (held.hosts or held.remote) else None
        first = not any(one.synced for one in self._switches.values())
        out.events.append(SwitchUp(now, dpid, switch.held is not None))
        out.events += self._discovery.switch_connected(dpid, ports, now)
        if switch.held is not None:
            self._hosts.held(dpid, switch.held.hosts, now)
            switch.usable_at = now
            out.punts.add(dpid)
            self._mark(now + GROWTH_DELAY_S)
        else:
            switch.usable_at = now if first else now + CONFIRM_LIMIT_S
            self._mark(now)
        self._send_probes(out, now)
        return self._finish(out, now)

    def switch_disconnected(self, dpid: int, now: float) -> Effects:
        out = _Outcome()
        switch = self._switches.get(dpid)
        if switch is not None and switch.connected:
            switch.lost()
            self._rollout.gone(dpid, now)
            self._failed = True
            self._discovery.switch_disconnected(dpid)
            self._forgetting.lost(dpid, now)
            self._modes.watch(dpid, False, now)
            self._announcements.forget(dpid, now)
            out.events.append(SwitchDown(now, dpid))
            self._mark(now + FAILURE_DELAY_S)
        return self._finish(out, now)

    def applied(self, dpid: int, now: float) -> Effects:
        """A switch has worked off all updates that it was sent so far."""
        self._rollout.confirmed(dpid, now)
        switch = self._switches.get(dpid)
        if switch is not None and switch.synced and switch.in_place_at is None:
            switch.in_place_at = now + DATAPATH_LAG_S
            self._discovery.listening(dpid, switch.in_place_at)
            self._clear_stale = True
            if switch.usable_at is not None:
                switch.usable_at = min(switch.usable_at, switch.in_place_at)
            self._mark(switch.in_place_at)
        return self._finish(_Outcome(), now)

    def progressed(self, dpid: int, now: float) -> None:
        """A switch has worked off some of the updates that it was sent."""
        self._rollout.progressed(dpid, now)

    def port_changed(self, dpid: int, port: Port, now: float) -> Effects:
        """A port is new, changed or gone (then with ``up`` False)."""
        out = _Outcome()
        place = PortRef(dpid, port.number)
        before = self._discovery.port(place)
        out.events += self._discovery.port_changed(dpid, port, now)
        if before is None:
            if self._discovery.port(place) is not None:
                self._mark(now + GROWTH_DELAY_S)
        elif before.up != port.up:
            out.events += [HostLinkChanged(now, host.ipv4, place, port.up) for host in self._hosts.at(place)]
        self._clear_stale = True
        self._send_probes(out, now)
        return self._finish(out, now)

    def packet_in(self, dpid: int, in_port: int, cookie: int, data: bytes, now: float) -> Effects:
        """A packet that one of our entries sent up; what is not one of ours, or is malformed, changes nothing."""
        out = _Outcome()
        place = PortRef(dpid, in_port)
        if rule_of(cookie) is Rule.FIRST_SHORT:
            self._mode_changed(self._modes.first_packet(dpid, now), out)
        elif dpid in self._switches and in_port < LOCAL_PORT_FIRST:
            sender = decode_lldp(data, now, self._key)
            if sender is not None:
                out.events += self._discovery.receive(place, sender, now)
                self._send_probes(out, now)
            elif (arp := decode_arp(data)) is not None:
                frames, events = self._learning.arp(arp, place, now)
                out.packet_outs += frames
                out.events += events
        return self._finish(out, now)

    def meter_sample(self, dpid: int, readings: Mapping[int, MeterReading], now: float) -> Effects:
        """What the meters of a leaf have counted since they were made."""
        out = _Outcome()
        if (short := readings.get(SHORT_METER)) is not None:
            self._mode_changed(self._modes.sample(dpid, short.packets, now), out)
        if self._announcements.sample(dpid, readings, now):
            self._tell_paths(out, now)
        return self._finish(out, now)

    def agent_joined(self, host: str, underlay_ip: str, underlay_mac: str, now: float) -> Effects:
        """An agent has proved who it is. Raises ValueError for addresses that no host can have."""
        if not is_host_address(underlay_ip):
            raise ValueError(f"host {host!r}: {underlay_ip} is not an address that a host can have")
        if not is_host_mac(underlay_mac):
            raise ValueError(f"host {host!r}: {underlay_mac} is not an Ethernet address of one host")
        out = _Outcome()
        self._hosts.registered(host, underlay_ip, underlay_mac)
        out.packet_outs += self._learning.locate(now)
        return self._finish(out, now)

    def agent_left(self, host: str, now: float) -> Effects:
        """An agent is gone for good. If its host was ever heard, it stays (`controller.fabric.hosts`)."""
        self._hosts.left(host)
        return self._finish(_Outcome(), now)

    def set_scheme(self, scheme: Scheme, packet_time_s: float, now: float) -> Effects:
        """Every leaf starts OFF under a new mode rule; under the same one it keeps its mode."""
        if packet_time_s <= 0:
            raise ValueError(f"packet time must be above 0 s, not {packet_time_s} s")
        out = _Outcome()
        self._modes.set_scheme(scheme, packet_time_s)
        self._announcements.set_scheme(scheme, packet_time_s)
        if self._scheme is None or self._scheme.name != scheme.name:
            out.events.append(SchemeChanged(now, scheme.name))
        self._scheme = scheme
        for switch in self._switches.values():
            self._watch_leaf(switch, now)
            switch.wanted.want(switch.wanted.view, scheme, self._mode_of(switch.dpid))
            self._rollout.at_once(switch.dpid)
        self._tell_paths(out, now)
        return self._finish(out, now)

    def tick(self, now: float) -> Effects:
        """Does what is due; call at `deadline`."""
        out = _Outcome()
        for dpid in self._forgetting.due(now):
            self._forget(dpid, out, now)
        self._send_probes(out, now)
        out.packet_outs += self._learning.locate(now)
        frames, moves = self._learning.settle(now)
        out.packet_outs += frames
        out.events += moves
        out.read_meters = (*self._modes.due(now), *self._announcements.due(now))
        return self._finish(out, now)

    def deadline(self) -> float | None:
        """When `tick` wants to be called next; None: not before something else happens."""
        times = (
            self._dirty_at,
            self._clear_at,
            self._discovery.deadline(),
            self._learning.locate_at(),
            self._learning.settle_at(),
            self._rollout.deadline(),
            self._modes.deadline(),
            self._announcements.deadline(),
            self._forgetting.deadline(),
        )
        return min((time for time in times if time is not None), default=None)

    # What is known

    def ready(self) -> bool:
        """Whether all that is connected is discovered and forwards, and every agent's host has its place."""
        return self._settled() and not self._hosts.unlocated()

    def snapshot(self) -> FabricSnapshot:
        return FabricSnapshot(
            switches=tuple(
                SwitchInfo(
                    dpid,
                    switch.name,
                    switch.connected,
                    self._routing.tiers.get(dpid),
                    self._numbers.get(dpid),
                )
                for dpid, switch in sorted(self._switches.items())
            ),
            links=link_infos(self._discovery),
            hosts=host_infos(self._hosts, self._discovery),
            modes=self._modes.infos(),
            scheme="" if self._scheme is None else self._scheme.name,
            settled=self._settled(),
        )

    def modes(self) -> tuple[ModeInfo, ...]:
        """Modes of the leaves; empty under a scheme without modes."""
        return self._modes.infos()

    def paths(self, host_a: str, host_b: str) -> tuple[PathInfo, ...]:
        """All equal-cost paths between two hosts, by name or IPv4 address; none if there is no way.

        Raises:
            KeyError: a host that is not known, or whose place is not.
        """
        source, target = self._place_of(host_a), self._place_of(host_b)
        return path_infos(self._routing, self._numbers, source, target)

    def wanted_state(self, dpid: int) -> SwitchState:
        """What a switch should hold now (KeyError if it was never connected)."""
        return self._switches[dpid].wanted.state()

    # Modes

    def _mode_of(self, dpid: int) -> Mode:
        return self._modes.of(dpid, self._routing.below)

    def _mode_changed(self, change: ModeChange | None, out: _Outcome) -> None:
        if change is None:
            return
        out.events.append(ModeChanged(change.at, change.leaf, change.mode, change.cause))
        for dpid, switch in self._switches.items():
            affected = dpid == change.leaf or change.leaf in self._routing.below.get(dpid, ())
            if affected and (switch.wanted.view.leaf or switch.wanted.view.chooses):
                switch.wanted.want_mode(self._mode_of(dpid))
                self._rollout.at_once(dpid)

    def _watch_leaf(self, switch: KnownSwitch, now: float) -> None:
        """Measure it if it is a leaf that has our meters."""
        measured = switch.synced and switch.wanted.view.leaf
        self._modes.watch(switch.dpid, measured, now)
        self._announcements.watch(switch.wanted, measured, now)

    # Links and hosts

    def _send_probes(self, out: _Outcome, now: float) -> None:
        senders, events = self._discovery.due(now)
        out.packet_outs += [PacketOut(*ref, encode_lldp(ref, now, self._key)) for ref in senders]
        out.events += events

    def _forget(self, dpid: int, out: _Outcome, now: float) -> None:
        out.events += self._discovery.forget_switch(dpid, now)
        out.events.append(SwitchForgotten(now, dpid))
        self._hosts.forget_switch(dpid)
        self._rollout.forgotten(dpid, now)
        self._announcements.drop(dpid)
        self._numbers.release(dpid)
        del self._switches[dpid]
        self._mark(now + GROWTH_DELAY_S)

    # Telling the switches

    def _mark(self, when: float) -> None:
        self._dirty_at = when if self._dirty_at is None else min(self._dirty_at, when)

    def _finish(self, out: _Outcome, now: float) -> Effects:
        self._now = now
        for event in out.events:
            self._digest(event, now)
        if self._hosts.version != self._hosts_version:
            self._mark(now + GROWTH_DELAY_S)
        resync: set[int] = set()
        if self._dirty_at is not None and now >= self._dirty_at:
            resync = self._recompute(out, now)
        first = Difference(add_meters=tuple(punt_meters().values()), add_flows=punt_flows())
        punts = dict.fromkeys(out.punts - resync, first)
        updates = self._rollout.send(punts, resync, self._routing.tiers, now)
        out.events += [StateSent(now, dpid) for dpid in updates if dpid in resync]
        if self._hosts.version == self._hosts_version and (sent := self._rollout.round()) is not None:
            self._learning.close(sent)
        out.packet_outs += self._learning.answers(self._rollout.in_force(now), now)
        if self._clear_stale or (self._clear_at is not None and now >= self._clear_at):
            self._clear_at, self._clear_stale = self._next_clear(now), False
        return Effects(updates, frozenset(resync), tuple(out.packet_outs), out.read_meters, tuple(out.events))

    def _digest(self, event: Event, now: float) -> None:
        match event:
            case LinkUp(_, a, b):
                self._hosts.clear_port(a)
                self._hosts.clear_port(b)
                self._clear_stale = True
                self._mark(now + GROWTH_DELAY_S)
            case LinkDown():
                self._clear_stale = self._failed = True
                self._mark(now + FAILURE_DELAY_S)
            case SwitchUp() | SwitchDown():
                self._clear_stale = True
            case _:
                pass

    def _recompute(self, out: _Outcome, now: float) -> set[int]:
        """Bring all wanted states up to date; the switches that get a whole state now."""
        self._dirty_at = None
        known = self._discovery.links_known()
        wiring = Wiring(
            known,
            self._discovery.links_up(),
            self._hosts.leaves(),
            frozenset(dpid for dpid, switch in self._switches.items() if switch.usable(now)),
            # A switch's old state does not know that it should carry others' packets.
            leaf_transit=not any(switch.held for switch in self._switches.values()),
        )
        ports = self._discovery.ports_of_all()
        if wiring != self._wiring or self._hosts.version != self._hosts_version or ports != self._ports:
            self._ports = ports
            self._numbers.assign({*self._switches, *wiring.leaves})
            if wiring != self._wiring:
                self._wiring, self._routing = wiring, compute_routing(wiring)
            self._hosts_version = self._hosts.version
            views = FabricViews(self._hosts, self._routing, known, self._numbers, ports)
            for dpid, switch in self._switches.items():
                switch.wanted.want(views.view(dpid), self._scheme, self._mode_of(dpid))
            self._rollout.in_turn(self._switches)
            self._announcements.set_paths({leaf: views.stamps(leaf) for leaf in sorted(wiring.leaves)})
        if self._failed:
            self._rollout.now()
            self._failed = False
        resync = set()
        for dpid, switch in self._switches.items():
            if switch.connected and not switch.synced and self._may_sync(switch, now):
                if switch.held is not None:
                    self._mark(now)  # `leaf_transit` may have changed.
                switch.synced, switch.in_place_at, switch.held = True, None, None
                resync.add(dpid)
            if switch.connected and switch.usable_at is not None and switch.usable_at > now:
                self._mark(switch.usable_at)
            self._watch_leaf(switch, now)
        self._tell_paths(out, now)
        return resync

    def _tell_paths(self, out: _Outcome, now: float) -> None:
        out.events += self._announcements.changes(
            {dpid for dpid, one in self._switches.items() if one.synced}, now
        )

    def _may_sync(self, switch: KnownSwitch, now: float) -> bool:
        """Whether our state would forward to all hosts that the switch's own does, or it has waited enough."""
        held = switch.held
        if held is None or now >= switch.connected_at + TAKEOVER_LIMIT_S:
            return True
        if self._discovery.is_clear(switch.dpid, now) and (
            reaches(switch.dpid, held, self._routing.next_hops.get(switch.dpid, {}), self._hosts)
            or (not held.hosts and leaves_are_in_place(self._switches.values(), now))
        ):
            return True
        self._mark(now + TAKEOVER_POLL_S)
        return False

    def _next_clear(self, now: float) -> float | None:
        times = (self._discovery.clear_at(dpid) for dpid, one in self._switches.items() if one.connected)
        return min((time for time in times if time > now), default=None)

    def _settled(self) -> bool:
        connected = [switch for switch in self._switches.values() if switch.connected]
        return (
            bool(connected)
            and self._dirty_at is None
            and self._rollout.settled(self._now)
            and all(
                switch.synced and self._discovery.is_clear(switch.dpid, self._now) for switch in connected
            )
        )

    def _place_of(self, name: str) -> PortRef:
        host = self._hosts.find(name)
        if host is None:
            known = ", ".join(sorted(one.name or one.ipv4 for one in self._hosts)[:20])
            raise KeyError(f"host {name!r} is not known; known: {known}")
        if host.place is None:
            raise KeyError(f"host {name!r} has not been heard on any port yet")
        return host.place
