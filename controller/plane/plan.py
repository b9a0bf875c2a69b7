"""What every switch should hold, computed from the wiring, the hosts, the scheme and the modes; and when next."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.fabric.discovery import LinkDiscovery
from controller.fabric.graph import PortRef, Wiring
from controller.fabric.hosts import Hosts
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import Routing, compute_routing
from controller.modes.leaf_modes import LeafModes
from controller.openflow.wanted_switch import WantedSwitch
from controller.plane.effects import Event
from controller.plane.fabric_views import FabricViews
from controller.plane.isolated import IsolatedSwitches
from controller.plane.path_announcements import PathAnnouncements
from controller.plane.rollout import Rollout
from controller.plane.snapshot import PathInfo, path_infos
from controller.plane.takeover import (
    TAKEOVER_LIMIT_S,
    TAKEOVER_POLL_S,
    KnownSwitch,
    leaves_are_in_place,
    reaches,
)
from controller.rare_log import RareLog
from controller.schemes.scheme import Mode, Scheme

_RARELY: Final = RareLog(logging.getLogger("capstan.plan"))


@dataclass(frozen=True, slots=True)
class Recomputed:
    """``resync``: switches that get their whole state now, by datapath id."""

    resync: frozenset[int] = frozenset()
    events: tuple[Event, ...] = ()


class Plan:
    """Wanted states of *switches*, by the parts that know the fabric. It is computed anew when `due`."""

    def __init__(
        self,
        switches: Mapping[int, KnownSwitch],
        discovery: LinkDiscovery,
        hosts: Hosts,
        rollout: Rollout,
        *,
        modes: LeafModes,
        announcements: PathAnnouncements,
        isolated: IsolatedSwitches,
    ) -> None:
        self._switches: Final = switches
        self._discovery: Final = discovery
        self._hosts: Final = hosts
        self._rollout: Final = rollout
        self._modes: Final = modes
        self._announcements: Final = announcements
        self._isolated: Final = isolated
        self.numbers: Final = SwitchNumbers()
        self.routing = Routing()
        self.scheme: Scheme | None = None
        self._wiring = Wiring(frozenset(), frozenset(), frozenset(), frozenset())
        self._hosts_version = hosts.version
        self._ports: dict[int, tuple[int, ...]] = {}
        self._without_ports: frozenset[int] = frozenset()
        self._planned: dict[int, WantedSwitch] = {}
        self._due_at: float | None = None
        self._failed = False
        """Whether something that carried packets is gone since the last computation."""

    def mark(self, when: float) -> None:
        """Have it computed anew at *when* (seconds) at the latest."""
        self._due_at = when if self._due_at is None else min(self._due_at, when)

    def mark_failure(self, when: float) -> None:
        """Mark a change by a failure, whose consequences no switch waits for another's to be in force."""
        self._failed = True
        self.mark(when)

    @property
    def due_at(self) -> float | None:
        """Return when it is to be computed anew, seconds; None: it is up to date."""
        return self._due_at

    def is_due(self, now: float) -> bool:
        """Return whether `recompute` is to be called now."""
        return self._due_at is not None and now >= self._due_at

    @property
    def knows_hosts(self) -> bool:
        """Return whether no host has come, moved or gone since the last computation."""
        return self._hosts.version == self._hosts_version

    def mode_of(self, dpid: int) -> Mode:
        """Return the mode that counts at a switch: its own at a leaf, that of the leaves below elsewhere."""
        return self._modes.of(dpid, self.routing.below)

    def set_scheme(self, scheme: Scheme, now: float) -> list[Event]:
        """Want *scheme* of all switches at once, and return what agents have to know of it."""
        self.scheme = scheme
        for switch in self._switches.values():
            self._watch_leaf(switch, now)
            switch.wanted.want(switch.wanted.view, scheme, self.mode_of(switch.dpid))
            self._rollout.at_once(switch.dpid)
        return self.announce_paths(now)

    def mode_changed(self, leaf: int) -> None:
        """Want the new mode of *leaf* at once, there and at the switches above that choose by it."""
        for dpid, switch in self._switches.items():
            affected = dpid == leaf or leaf in self.routing.below.get(dpid, ())
            if affected and (switch.wanted.view.leaf or switch.wanted.view.chooses):
                switch.wanted.want_mode(self.mode_of(dpid))
                self._rollout.at_once(dpid)

    def announce_paths(self, now: float) -> list[Event]:
        """Return changes of live paths that agents do not know yet."""
        synced = {dpid for dpid, switch in self._switches.items() if switch.synced}
        return list(self._announcements.changes(synced, now))

    def recompute(self, now: float) -> Recomputed:
        """Bring all wanted states up to date; return what has changed."""
        self._due_at = None
        linked = self._discovery.wired_switches()
        wiring = Wiring(
            self._discovery.links_known(),
            self._discovery.links_up(),
            self._hosts.leaves(),
            # of the others none carries packets: their coming and going is no change of the wiring
            frozenset(dpid for dpid in linked & self._switches.keys() if self._switches[dpid].usable(now)),
            # A switch's old state does not know that it should carry others' packets; one without links carries none.
            leaf_transit=not any(
                switch.held is not None and self._discovery.is_wired_switch(dpid)
                for dpid, switch in self._switches.items()
            ),
        )
        self._want(wiring)
        if self._failed:
            self._rollout.now()
            self._failed = False
        resync = self._sync(now)
        return Recomputed(frozenset(resync), tuple(self.announce_paths(now)))

    def paths(self, host_a: str, host_b: str) -> tuple[PathInfo, ...]:
        """Return all equal-cost paths between two hosts, by name or IPv4 address; none if there is no way.

        Raises:
            KeyError: a host that is not known, or whose place is not.
        """
        return path_infos(self.routing, self.numbers, self._place_of(host_a), self._place_of(host_b))

    def _want(self, wiring: Wiring) -> None:
        """Give a new view to all switches, or, where wiring and hosts are as before, to those with other ports."""
        without_ports = self._isolated.without_ports()
        for dpid in without_ports - self._without_ports:
            _RARELY.say(
                f"switch {dpid:#x} has {self._discovery.count_ports(dpid)} ports, no link and no host: none of its "
                "ports gets an entry or a meter of its own until it shows a link (LLDP) or a host (ARP)"
            )
        self._without_ports = without_ports
        ports = self._discovery.ports_of_all() | dict.fromkeys(without_ports, ())
        as_before = wiring == self._wiring and self.knows_hosts
        changed = {
            dpid: switch.wanted
            for dpid, switch in self._switches.items()
            if not as_before
            or self._planned.get(dpid) is not switch.wanted
            or ports.get(dpid) != self._ports.get(dpid)
        }
        if as_before and not changed:
            return
        self._ports = ports
        self._planned = {dpid: switch.wanted for dpid, switch in self._switches.items()}
        self.numbers.assign({*self._switches, *wiring.leaves})
        if wiring != self._wiring:
            self._wiring, self.routing = wiring, compute_routing(wiring)
        self._hosts_version = self._hosts.version
        views = FabricViews(self._hosts, self.routing, wiring.known, self.numbers, ports=ports)
        for dpid, wanted in changed.items():
            wanted.want(views.view(dpid), self.scheme, self.mode_of(dpid))
        self._rollout.in_turn(changed)
        if not as_before:
            self._announcements.set_paths({leaf: views.stamps(leaf) for leaf in sorted(wiring.leaves)})

    def _sync(self, now: float) -> set[int]:
        """Return the switches that get their whole state now, and mark when others may."""
        resync = set()
        for dpid, switch in self._switches.items():
            if switch.connected and not switch.synced and self._may_sync(switch, now):
                if switch.held is not None:
                    self.mark(now)  # `leaf_transit` may have changed.
                switch.synced, switch.in_place_at, switch.held = True, None, None
                resync.add(dpid)
            if switch.connected and switch.usable_at is not None and switch.usable_at > now:
                self.mark(switch.usable_at)
            self._watch_leaf(switch, now)
        return resync

    def _may_sync(self, switch: KnownSwitch, now: float) -> bool:
        """Return whether our state would forward to all hosts that the switch's own does, or it has waited enough."""
        held = switch.held
        if held is None or now >= switch.connected_at + TAKEOVER_LIMIT_S:
            return True
        if self._discovery.is_clear(switch.dpid, now) and (
            reaches(switch.dpid, held, self.routing.next_hops.get(switch.dpid, {}), self._hosts)
            or (not held.hosts and leaves_are_in_place(self._switches.values(), now))
        ):
            return True
        self.mark(now + TAKEOVER_POLL_S)
        return False

    def _watch_leaf(self, switch: KnownSwitch, now: float) -> None:
        """Measure it if it is a leaf that has our meters."""
        measured = switch.synced and switch.wanted.view.leaf
        self._modes.watch(switch.dpid, measured, now)
        self._announcements.watch(switch.wanted, measured, now)

    def _place_of(self, name: str) -> PortRef:
        host = self._hosts.find(name)
        if host is None:
            known = ", ".join(sorted(other.name or other.ipv4 for other in self._hosts)[:20])
            raise KeyError(f"host {name!r} is not known; known: {known}")
        if host.place is None:
            raise KeyError(f"host {name!r} has not been seen at any port yet")
        return host.place
