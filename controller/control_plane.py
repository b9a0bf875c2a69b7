"""The control plane: events of the fabric go in, effects (what to do about them) come out.

Pure and single-threaded by contract; time is a parameter. Discovery, hosts, routing, pipeline and modes each
decide their own part (`controller.fabric`, `controller.openflow.pipeline`, `controller.modes`), and
`controller.plane.plan` what every switch should hold; here is when they are called, and when switches get updates.

**When.** Changes wait a few milliseconds for others of the same cause, then all of them are computed at once, and
each switch gets the difference. A mode change waits for nothing.

**In which order.** See `controller.plane.rollout`. Answers to ARP wait until all updates are in force.

**Take-over.** See `controller.plane.takeover`.

**Lost switches.** A leaf or spine whose connection is lost keeps its place in the graph, for it may still forward; but
other leaves' packets avoid it where they can (`controller.fabric.paths`). One that comes back empty gets its state
first and its share of packets when it has confirmed that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from controller.fabric.arp import decode_arp, is_host_address, is_host_mac
from controller.fabric.discovery import LinkDiscovery
from controller.fabric.events import HostLinkChanged, LinkDown, LinkUp
from controller.fabric.graph import PortRef
from controller.fabric.host_learning import HostLearning
from controller.fabric.hosts import Hosts
from controller.fabric.lldp import decode_lldp, encode_lldp
from controller.fabric.switch_data import LOCAL_PORT_FIRST, Held, MeterReading, PacketOut, Port
from controller.modes.leaf_modes import LeafModes
from controller.modes.monitor import ModeChange
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.punts import punt_flows, punt_meters
from controller.openflow.tables import SHORT_METER
from controller.openflow.wanted import Difference, SwitchState
from controller.openflow.wanted_switch import WantedSwitch
from controller.plane.effects import (
    Effects,
    Event,
    ModeChanged,
    SchemeChanged,
    StateSent,
    SwitchDown,
    SwitchForgotten,
    SwitchUp,
)
from controller.plane.forgetting import MOST_SWITCHES, Forgetting
from controller.plane.in_flight import CONFIRM_LIMIT_S, DATAPATH_LAG_S
from controller.plane.isolated import IsolatedSwitches
from controller.plane.outcome import Outcome
from controller.plane.path_announcements import PathAnnouncements
from controller.plane.plan import Plan
from controller.plane.rollout import Rollout
from controller.plane.settling import Settling
from controller.plane.snapshot import FabricSnapshot, PathInfo, host_infos, link_infos, switch_infos
from controller.plane.takeover import KnownSwitch
from controller.schemes.scheme import Scheme

FAILURE_DELAY_S: Final = 0.003
"""How long a failure waits for others of the same cause; groups' watch ports bridge the time."""
GROWTH_DELAY_S: Final = 0.02
"""How long a new link or host waits for others."""
MANY_SWITCHES: Final = 32
"""Beyond, a new switch waits for others, too: to compute all wanted states takes a millisecond and more."""


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
        self._hosts = Hosts()
        self._switches: dict[int, KnownSwitch] = {}
        self._rollout = Rollout(self._switches)
        self._isolated = IsolatedSwitches(self._switches, self._discovery, self._hosts)
        self._learning = HostLearning(self._discovery, self._hosts, self._isolated.may_have_host)
        self._forgetting = Forgetting(self._switches, self._discovery, self._isolated)
        self._announcements = PathAnnouncements()
        self._modes = LeafModes()
        self._plan = Plan(
            self._switches,
            self._discovery,
            self._hosts,
            self._rollout,
            modes=self._modes,
            announcements=self._announcements,
            isolated=self._isolated,
        )
        self._settling = Settling(self._switches, self._discovery, self._rollout)

    # What happens

    def refusal(self, dpid: int, now: float) -> str | None:
        """Return why a switch that says it is *dpid* may not join now, or None; of its ports nothing is known yet."""
        return None if dpid in self._switches else self._isolated.admit(dpid, 0, now).refusal

    def switch_connected(self, dpid: int, ports: Sequence[Port], held: Held | None, now: float) -> Effects:
        """Return the effects of a switch's connecting, for the first time or again; *ports*: all that it has.

        held: None if the switch has no state at all.
        """
        out = Outcome()
        admission = self._isolated.admit(dpid, len(ports), now)
        for leaving in admission.leaving:
            if self._switches[leaving].connected:
                out.turned_away[leaving] = "it has neither links nor agents, and makes room for another"
            self._forget(leaving, out, now)
        if admission.refusal is not None:
            return self._turn_away(dpid, admission.refusal, out, now)
        if dpid not in self._switches and len(self._switches) >= MOST_SWITCHES:
            oldest = self._forgetting.make_room()
            if oldest is None:
                reason = f"{MOST_SWITCHES} switches are known already, and none of them can be forgotten"
                return self._turn_away(dpid, reason, out, now)
            self._forget(oldest, out, now)
        self._forgetting.connected(dpid)
        switch = self._switches.setdefault(dpid, KnownSwitch(dpid, WantedSwitch(dpid)))
        switch.name = next((port.name for port in ports if port.number >= LOCAL_PORT_FIRST), switch.name)
        switch.lost()
        switch.connected, switch.connected_at = True, now
        self._rollout.gone(dpid, now)
        switch.held = held if held is not None and (held.hosts or held.remote) else None
        first = not any(known.synced for known in self._switches.values())
        out.events.append(SwitchUp(now, dpid, switch.held is not None))
        out.events += self._discovery.switch_connected(dpid, ports, now)
        if switch.held is not None:
            numbers, most = (port.number for port in ports), self._isolated.most_held(dpid)
            out.events += self._learning.held(dpid, numbers, switch.held.hosts, most=most, now=now)
            switch.usable_at = now
            out.punts.add(dpid)
            self._plan.mark(now + GROWTH_DELAY_S)
        else:
            switch.usable_at = now if first else now + CONFIRM_LIMIT_S
            self._plan.mark(now if len(self._switches) <= MANY_SWITCHES else now + GROWTH_DELAY_S)
        self._send_probes(out, now)
        return self._finish(out, now)

    def switch_disconnected(self, dpid: int, now: float) -> Effects:
        """Return the effects of a lost connection; the switch keeps its place, for it may still forward."""
        out = Outcome()
        switch = self._switches.get(dpid)
        if switch is not None and switch.connected:
            self._lost(switch, out, now)
        return self._finish(out, now)

    def applied(self, dpid: int, now: float) -> Effects:
        """Return the effects of a switch's having applied all updates that it was sent so far."""
        self._rollout.confirmed(dpid, now)
        switch = self._switches.get(dpid)
        if switch is not None and switch.synced and switch.in_place_at is None:
            switch.in_place_at = now + DATAPATH_LAG_S
            self._discovery.listening(dpid, switch.in_place_at)
            self._settling.changed()
            if switch.usable_at is not None:
                switch.usable_at = min(switch.usable_at, switch.in_place_at)
            self._plan.mark(switch.in_place_at)
        return self._finish(Outcome(), now)

    def progressed(self, dpid: int, now: float) -> None:
        """Note that a switch has worked off some of the updates that it was sent."""
        self._rollout.progressed(dpid, now)

    def port_changed(self, dpid: int, port: Port, now: float) -> Effects:
        """Return the effects of a port that is new, changed or gone (then with ``up`` False)."""
        out = Outcome()
        place = PortRef(dpid, port.number)
        before = self._discovery.port(place)
        out.events += self._discovery.port_changed(dpid, port, now)
        if before is None:
            if self._discovery.port(place) is not None:
                self._plan.mark(now + GROWTH_DELAY_S)
                if (refusal := self._isolated.refusal_of_port(dpid)) is not None:
                    return self._turn_away(dpid, refusal, out, now)
        elif before.up != port.up:
            out.events += [HostLinkChanged(now, host.ipv4, place, port.up) for host in self._hosts.at(place)]
        self._settling.changed()
        self._send_probes(out, now)
        return self._finish(out, now)

    def packet_in(self, dpid: int, in_port: int, cookie: int, data: bytes, *, now: float) -> Effects:
        """Return the effects of a packet-in of an entry of ours; none for any other, or one that is malformed."""
        out = Outcome()
        place = PortRef(dpid, in_port)
        if rule_of(cookie) is Rule.FIRST_SHORT:
            self._mode_changed(self._modes.first_packet(dpid, now), out)
        elif dpid in self._switches and in_port < LOCAL_PORT_FIRST:
            sender = decode_lldp(data, now, self._key)
            if sender is not None:
                out.events += self._discovery.receive(place, sender, now)
                self._send_probes(out, now)
            elif (arp := decode_arp(data)) is not None:
                frames, events = self._learning.arp(
                    arp, place, now, answered=rule_of(cookie) is Rule.ARP_ANSWERED
                )
                out.packet_outs += frames
                out.events += events
        return self._finish(out, now)

    def meter_sample(self, dpid: int, readings: Mapping[int, MeterReading], now: float) -> Effects:
        """Return the effects of what the meters of a leaf have counted since they were made."""
        out = Outcome()
        if (short := readings.get(SHORT_METER)) is not None:
            self._mode_changed(self._modes.sample(dpid, short.packets, now), out)
        if self._announcements.sample(dpid, readings, now):
            out.events += self._plan.announce_paths(now)
        return self._finish(out, now)

    def agent_joined(self, host: str, underlay_ip: str, underlay_mac: str, now: float) -> Effects:
        """Return the effects of an authenticated agent's joining. Raises ValueError for addresses of no host."""
        if not is_host_address(underlay_ip):
            raise ValueError(f"host {host!r}: {underlay_ip} is not an address that a host can have")
        if not is_host_mac(underlay_mac):
            raise ValueError(f"host {host!r}: {underlay_mac} is not an Ethernet address of one host")
        out = Outcome()
        self._hosts.registered(host, underlay_ip, underlay_mac)
        out.packet_outs += self._learning.locate(now)
        return self._finish(out, now)

    def agent_left(self, host: str, now: float) -> Effects:
        """Return the effects of an agent's leaving; a host seen at a port stays (`controller.fabric.hosts`)."""
        self._hosts.left(host)
        return self._finish(Outcome(), now)

    def set_scheme(self, scheme: Scheme, packet_time_s: float, now: float) -> Effects:
        """Put a scheme in force, and return the effects. Every leaf starts OFF under a new mode rule; under the same
        rule it keeps its mode. Raises ValueError for a packet time that is not above 0 s.
        """
        if packet_time_s <= 0:
            raise ValueError(f"packet time must be above 0 s, not {packet_time_s} s")
        out = Outcome()
        self._modes.set_scheme(scheme, packet_time_s)
        self._announcements.set_scheme(scheme, packet_time_s)
        before = self._plan.scheme
        if before is None or before.name != scheme.name:
            out.events.append(SchemeChanged(now, scheme.name))
        out.events += self._plan.set_scheme(scheme, now)
        return self._finish(out, now)

    def tick(self, now: float) -> Effects:
        """Return the effects of what is due; call at `deadline`."""
        out = Outcome()
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
        """Return when `tick` wants to be called next, seconds; None: not before something else happens."""
        times = (
            self._plan.due_at,
            self._settling.deadline(),
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
        """Return whether all that is connected is discovered and forwards, and every agent's host has its place."""
        return self._settled() and not self._hosts.unlocated()

    def in_fabric(self, dpid: int) -> bool:
        """Return whether a switch has a link, up or not."""
        return self._discovery.is_wired_switch(dpid)

    def addresses(self) -> frozenset[str]:
        """Return the addresses of all known hosts."""
        return frozenset(host.ipv4 for host in self._hosts)

    def snapshot(self) -> FabricSnapshot:
        """Return the fabric as it is known now."""
        return FabricSnapshot(
            switches=switch_infos(self._switches, self._plan.routing, self._plan.numbers),
            links=link_infos(self._discovery),
            hosts=host_infos(self._hosts, self._discovery),
            modes=self._modes.infos(),
            scheme="" if self._plan.scheme is None else self._plan.scheme.name,
            settled=self._settled(),
            refused_hosts=self._hosts.refused,
            forgotten=self._forgetting.names(),
        )

    def paths(self, host_a: str, host_b: str) -> tuple[PathInfo, ...]:
        """Return all equal-cost paths between two hosts, by name or IPv4 address; none if there is no way.

        Raises:
            KeyError: a host that is not known, or whose place is not.
        """
        return self._plan.paths(host_a, host_b)

    def wanted_state(self, dpid: int) -> SwitchState:
        """Return what a switch should hold now (KeyError if it was never connected)."""
        return self._switches[dpid].wanted.state()

    # Links and hosts

    def _mode_changed(self, change: ModeChange | None, out: Outcome) -> None:
        if change is not None:
            out.events.append(ModeChanged(change.at, change.leaf, change.mode, change.cause))
            self._plan.mode_changed(change.leaf)

    def _send_probes(self, out: Outcome, now: float) -> None:
        if self._discovery.is_joining:
            self._plan.mark(now + GROWTH_DELAY_S)
        senders, events = self._discovery.due(now)
        out.packet_outs += [PacketOut(*ref, encode_lldp(ref, now, self._key)) for ref in senders]
        out.events += events

    def _turn_away(self, dpid: int, reason: str, out: Outcome, now: float) -> Effects:
        out.turn_away(dpid, reason, now)
        return self._finish(out, now)

    def _lost(self, switch: KnownSwitch, out: Outcome, now: float) -> None:
        switch.lost()
        self._rollout.gone(switch.dpid, now)
        self._discovery.switch_disconnected(switch.dpid)
        self._forgetting.lost(switch.dpid, now)
        self._modes.watch(switch.dpid, False, now)
        self._announcements.forget(switch.dpid, now)
        out.events.append(SwitchDown(now, switch.dpid))
        self._plan.mark_failure(now + FAILURE_DELAY_S)

    def _forget(self, dpid: int, out: Outcome, now: float) -> None:
        if self._switches[dpid].connected:
            self._lost(self._switches[dpid], out, now)
        self._forgetting.forgotten(dpid)
        out.events += self._discovery.forget_switch(dpid, now)
        out.events.append(SwitchForgotten(now, dpid))
        self._hosts.forget_switch(dpid)
        self._rollout.forgotten(dpid, now)
        self._announcements.drop(dpid)
        self._plan.numbers.release(dpid)
        del self._switches[dpid]
        self._plan.mark(now + GROWTH_DELAY_S)

    # Updates of switches

    def _finish(self, out: Outcome, now: float) -> Effects:
        self._now = now
        for event in out.events:
            self._digest(event, now)
        if not self._plan.knows_hosts:
            self._plan.mark(now + GROWTH_DELAY_S)
        resync: frozenset[int] = frozenset()
        if self._plan.is_due(now):
            recomputed = self._plan.recompute(now)
            resync = recomputed.resync
            out.events += recomputed.events
        punts: dict[int, Difference] = {}
        if waiting := out.punts - resync:
            first = Difference(add_meters=tuple(punt_meters().values()), add_flows=punt_flows())
            punts = dict.fromkeys(waiting, first)
        updates = self._rollout.send(punts, resync, self._plan.routing.tiers, now)
        out.events += [StateSent(now, dpid) for dpid in updates if dpid in resync]
        if self._plan.knows_hosts and (sent := self._rollout.round()) is not None:
            self._learning.close(sent)
        out.packet_outs += self._learning.answers(self._rollout.in_force(now), now)
        self._settling.look(now)
        return out.effects(updates, resync)

    def _digest(self, event: Event, now: float) -> None:
        match event:
            case LinkUp(_, a, b):
                self._hosts.clear_port(a)
                self._hosts.clear_port(b)
                self._settling.changed()
                self._plan.mark(now + GROWTH_DELAY_S)
            case LinkDown():
                self._settling.changed()
                self._plan.mark_failure(now + FAILURE_DELAY_S)
            case SwitchUp() | SwitchDown():
                self._settling.changed()

    def _settled(self) -> bool:
        return self._plan.due_at is None and self._settling.settled(self._now)
