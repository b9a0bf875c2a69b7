"""The brain of the controller: what happens in the fabric goes in, what to do about it comes out.

Pure and single-threaded by contract; time is a parameter. Discovery, hosts, routing, pipeline and modes each
decide their own part (`controller.fabric`, `controller.openflow.pipeline`, `controller.modes`); here is when they
are asked, and when a switch is told.

**When.** Changes wait a few milliseconds for others of the same cause, then all of them are computed at once, and
each switch gets the difference. A mode change waits for nothing.

**Take-over.** A switch that holds a state of a controller before (or of this one, before its connection was lost) goes
on forwarding by it. It gets nothing but the entries that send LLDP and ARP up, until the new state forwards to
every host that the old one did, and every port of it is either proved to be a link's or has been quiet; or until
`TAKEOVER_LIMIT_S` has passed. Its hosts are learnt back from what it holds. A switch above the leaves that can not do
what it did (a link is gone) is let go when the leaves have their new states, which do not use it for that.

**Lost switches.** A leaf or spine whose connection is lost keeps its place in the graph, for it may still forward; but
other leaves' packets avoid it where they can (`controller.fabric.paths`). One that comes back empty gets its state
first and its share of packets `JOIN_DELAY_S` later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.effects import (
    LOCAL_PORT_FIRST,
    Effects,
    Event,
    Held,
    LinkDown,
    LinkUp,
    ModeChanged,
    PacketOut,
    PathsChanged,
    Port,
    SchemeChanged,
    StateSent,
    SwitchDown,
    SwitchUp,
)
from controller.fabric.arp import decode_arp, is_host_address, is_host_mac
from controller.fabric.discovery import LinkDiscovery
from controller.fabric.graph import PortRef, Wiring
from controller.fabric.host_learning import HostLearning
from controller.fabric.lldp import decode_lldp, encode_lldp
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import Routing, compute_routing
from controller.fabric_views import FabricViews
from controller.modes.monitor import ModeChange, ModeMonitor
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.pipeline import punt_flows
from controller.openflow.wanted import Difference, SwitchState
from controller.openflow.wanted_switch import WantedSwitch
from controller.schemes.scheme import Mode, Scheme
from controller.snapshot import (
    FabricSnapshot,
    ModeInfo,
    PathInfo,
    SwitchInfo,
    host_infos,
    link_infos,
    path_infos,
)

FAILURE_DELAY_S: Final = 0.003
"""How long a failure waits for others of the same cause; groups' watch ports bridge the time."""
GROWTH_DELAY_S: Final = 0.02
"""How long a new link or host waits for others."""
SETTLE_S: Final = 0.02
"""How long after an update its switches surely forward by it; ARP answers wait for that."""
JOIN_DELAY_S: Final = 0.1
"""Between a returned switch's state and its first packets."""
TAKEOVER_LIMIT_S: Final = 15.0
TAKEOVER_POLL_S: Final = 0.1


@dataclass(slots=True)
class _Switch:
    dpid: int
    wanted: WantedSwitch
    name: str = ""
    connected: bool = False
    connected_at: float = 0.0
    held: Held | None = None
    """What it forwards by, while it has not got our state."""
    synced: bool = False
    """It has got our whole state since it connected."""
    synced_at: float = 0.0
    usable_at: float | None = None
    """From when on it may carry other leaves' packets; None: not known yet."""

    def usable(self, now: float) -> bool:
        return self.connected and self.usable_at is not None and now >= self.usable_at


@dataclass(slots=True)
class _Outcome:
    """Effects while they are being put together. ``touched``: switches whose wanted state may have changed."""

    touched: set[int] = field(default_factory=set)
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
        self._switches: dict[int, _Switch] = {}
        self._wiring = Wiring(frozenset(), frozenset(), frozenset(), frozenset())
        self._routing = Routing()
        self._hosts_version = self._hosts.version
        self._paths: dict[int, Mapping[int, tuple[int, ...]]] = {}
        """Stamps of live paths by source and destination leaf."""
        self._paths_told: dict[int, Mapping[int, tuple[int, ...]]] = {}
        self._scheme: Scheme | None = None
        self._packet_time_s = 0.0
        self._monitor: ModeMonitor | None = None
        self._dirty_at: float | None = None
        self._clear_at: float | None = None
        self._clear_stale = False
        self._updated_at = float("-inf")

    # What happens

    def switch_connected(self, dpid: int, ports: Sequence[Port], held: Held | None, now: float) -> Effects:
        """A switch is connected, for the first time or again; *ports* are all of its ports.

        held: None if the switch has no state at all.
        """
        out = _Outcome()
        switch = self._switches.setdefault(dpid, _Switch(dpid, WantedSwitch(dpid)))
        switch.name = next((port.name for port in ports if port.number >= LOCAL_PORT_FIRST), switch.name)
        switch.connected, switch.connected_at, switch.synced = True, now, False
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
            switch.usable_at = now if first else now + JOIN_DELAY_S
            self._mark(now)
        self._send_probes(out, now)
        return self._finish(out, now)

    def switch_disconnected(self, dpid: int, now: float) -> Effects:
        out = _Outcome()
        switch = self._switches.get(dpid)
        if switch is not None and switch.connected:
            switch.connected = switch.synced = False
            switch.usable_at, switch.held = None, None
            self._discovery.switch_disconnected(dpid)
            if self._monitor is not None:
                self._monitor.leaf_removed(dpid)
            out.events.append(SwitchDown(now, dpid))
            self._mark(now + FAILURE_DELAY_S)
        return self._finish(out, now)

    def port_changed(self, dpid: int, port: Port, now: float) -> Effects:
        """A port is new, changed or gone (then with ``up`` False)."""
        out = _Outcome()
        out.events += self._discovery.port_changed(dpid, port, now)
        self._clear_stale = True
        self._send_probes(out, now)
        return self._finish(out, now)

    def packet_in(self, dpid: int, in_port: int, cookie: int, data: bytes, now: float) -> Effects:
        """A packet that one of our entries sent up; what is not one of ours, or is malformed, changes nothing."""
        out = _Outcome()
        place = PortRef(dpid, in_port)
        if rule_of(cookie) is Rule.FIRST_SHORT:
            if self._monitor is not None:
                self._mode_changed(self._monitor.first_packet(dpid, now), out)
        elif dpid in self._switches and in_port < LOCAL_PORT_FIRST:
            sender = decode_lldp(data, now, self._key)
            if sender is not None:
                out.events += self._discovery.heard(place, sender, now)
                self._send_probes(out, now)
            elif (arp := decode_arp(data)) is not None:
                frames, events = self._learning.arp(arp, place, now)
                out.packet_outs += frames
                out.events += events
        return self._finish(out, now)

    def meter_sample(self, dpid: int, packets: int, now: float) -> Effects:
        """The short class's meter of a leaf has counted *packets* since it was made."""
        out = _Outcome()
        if self._monitor is not None:
            self._mode_changed(self._monitor.sample(dpid, packets, now), out)
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
        """Every leaf starts OFF under a new scheme; under the same mode rule it keeps its mode."""
        if packet_time_s <= 0:
            raise ValueError(f"packet time must be above 0 s, not {packet_time_s} s")
        out = _Outcome()
        same_rule = (
            self._scheme is not None
            and self._scheme.mode == scheme.mode
            and self._packet_time_s == packet_time_s
        )
        if not same_rule:
            self._monitor = ModeMonitor(scheme.mode, packet_time_s) if scheme.mode is not None else None
        if self._scheme is None or self._scheme.name != scheme.name:
            out.events.append(SchemeChanged(now, scheme.name))
        self._scheme, self._packet_time_s = scheme, packet_time_s
        for switch in self._switches.values():
            self._watch_modes(switch, now)
            switch.wanted.want(switch.wanted.view, scheme, self._mode_of(switch.dpid))
            out.touched.add(switch.dpid)
        return self._finish(out, now)

    def tick(self, now: float) -> Effects:
        """Does what is due; call at `deadline`."""
        out = _Outcome()
        self._send_probes(out, now)
        out.packet_outs += self._learning.locate(now)
        if self._monitor is not None:
            out.read_meters = self._monitor.due(now)
        return self._finish(out, now)

    def deadline(self) -> float | None:
        """When `tick` wants to be called next; None: not before something else happens."""
        times = (
            self._dirty_at,
            self._clear_at,
            self._discovery.deadline(),
            self._learning.locate_at(),
            self._learning.answers_at(),
            None if self._monitor is None else self._monitor.deadline(),
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
            hosts=host_infos(self._hosts),
            modes=self.modes(),
            scheme="" if self._scheme is None else self._scheme.name,
            settled=self._settled(),
        )

    def modes(self) -> tuple[ModeInfo, ...]:
        """Modes of the leaves; empty under a scheme without modes."""
        monitor = self._monitor
        if monitor is None:
            return ()
        return tuple(
            ModeInfo(leaf, monitor.mode(leaf), monitor.since(leaf)) for leaf in sorted(monitor.leaves())
        )

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
        """A leaf's own mode; above the leaves ON while any leaf below is."""
        monitor = self._monitor
        if monitor is None:
            return "off"
        below = self._routing.below.get(dpid, frozenset((dpid,))) & frozenset(monitor.leaves())
        return "on" if any(monitor.mode(leaf) == "on" for leaf in below) else "off"

    def _mode_changed(self, change: ModeChange | None, out: _Outcome) -> None:
        if change is None:
            return
        out.events.append(ModeChanged(change.at, change.leaf, change.mode, change.cause))
        for dpid, switch in self._switches.items():
            affected = dpid == change.leaf or change.leaf in self._routing.below.get(dpid, ())
            if affected and (switch.wanted.view.leaf or switch.wanted.view.chooses):
                switch.wanted.want_mode(self._mode_of(dpid))
                out.touched.add(dpid)

    def _watch_modes(self, switch: _Switch, now: float) -> None:
        if self._monitor is None:
            return
        if switch.synced and switch.wanted.view.leaf:
            self._monitor.leaf_added(switch.dpid, now)
        else:
            self._monitor.leaf_removed(switch.dpid)

    # Links and hosts

    def _send_probes(self, out: _Outcome, now: float) -> None:
        senders, events = self._discovery.due(now)
        out.packet_outs += [PacketOut(*ref, encode_lldp(ref, now, self._key)) for ref in senders]
        out.events += events

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
        updates: dict[int, Difference] = {
            dpid: Difference(add_flows=punt_flows()) for dpid in out.punts - resync
        }
        tiers = self._routing.tiers
        for dpid in sorted(out.touched | resync, key=lambda one: (-tiers.get(one, 0), one)):
            switch = self._switches[dpid]
            if dpid in resync:
                updates[dpid] = switch.wanted.take_whole()
                out.events.append(StateSent(now, dpid))
            elif switch.synced and not (change := switch.wanted.take()).empty:
                updates[dpid] = change
        if updates:
            self._updated_at = now
        if self._hosts.version == self._hosts_version:
            self._learning.close(max(now, self._updated_at + SETTLE_S))
        out.packet_outs += self._learning.answers(now)
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
                self._clear_stale = True
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
        if wiring != self._wiring or self._hosts.version != self._hosts_version:
            self._numbers.assign({*self._switches, *wiring.leaves})
            if wiring != self._wiring:
                self._wiring, self._routing = wiring, compute_routing(wiring)
            self._hosts_version = self._hosts.version
            views = FabricViews(self._hosts, self._routing, known, self._numbers)
            for dpid, switch in self._switches.items():
                switch.wanted.want(views.view(dpid), self._scheme, self._mode_of(dpid))
                out.touched.add(dpid)
            self._paths = {leaf: views.stamps(leaf) for leaf in sorted(wiring.leaves)}
        resync = set()
        for dpid, switch in self._switches.items():
            if switch.connected and not switch.synced and self._may_sync(switch, now):
                if switch.held is not None:
                    self._mark(now)  # `leaf_transit` may have changed.
                switch.synced, switch.synced_at, switch.held = True, now, None
                resync.add(dpid)
            if switch.connected and switch.usable_at is not None and switch.usable_at > now:
                self._mark(switch.usable_at)
            self._watch_modes(switch, now)
        self._tell_paths(out, now)
        return resync

    def _tell_paths(self, out: _Outcome, now: float) -> None:
        """Only of leaves that forward by our state: while links are still to be found, paths are missing."""
        for leaf, paths in self._paths.items():
            switch = self._switches.get(leaf)
            if switch is not None and switch.synced and self._paths_told.get(leaf) != paths:
                self._paths_told[leaf] = paths
                out.events.append(PathsChanged(now, leaf, paths))

    def _may_sync(self, switch: _Switch, now: float) -> bool:
        """Whether our state would forward to all hosts that the switch's own does, or it has waited enough."""
        held = switch.held
        if held is None or now >= switch.connected_at + TAKEOVER_LIMIT_S:
            return True
        if self._discovery.is_clear(switch.dpid, now) and (
            self._reaches(switch.dpid, held) or (not held.hosts and self._leaves_are_synced(now))
        ):
            return True
        self._mark(now + TAKEOVER_POLL_S)
        return False

    def _reaches(self, dpid: int, held: Held) -> bool:
        """Whether there is a way from *dpid* to every host that it forwards to."""
        next_hops = self._routing.next_hops.get(dpid, {})
        hosts = (self._hosts.by_ip(ipv4) for ipv4 in held.remote)
        return all(
            host is not None
            and host.place is not None
            and (host.place.dpid == dpid or host.place.dpid in next_hops)
            for host in hosts
        )

    def _leaves_are_synced(self, now: float) -> bool:
        """Whether all leaves that are connected got our state, a moment ago at least."""
        connected = [switch for switch in self._switches.values() if switch.connected]
        leaves = [one for one in connected if one.wanted.view.leaf or (one.held and one.held.hosts)]
        return bool(leaves) and all(leaf.synced and now >= leaf.synced_at + JOIN_DELAY_S for leaf in leaves)

    def _next_clear(self, now: float) -> float | None:
        times = (self._discovery.clear_at(dpid) for dpid, one in self._switches.items() if one.connected)
        return min((time for time in times if time > now), default=None)

    def _settled(self) -> bool:
        connected = [switch for switch in self._switches.values() if switch.connected]
        return (
            bool(connected)
            and self._dirty_at is None
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
