"""Switches as the control plane knows them, and when one that still forwards by an older state may get ours.

A switch that holds a state of a controller before (or of this one, before its connection was lost) goes on forwarding
by it. It gets nothing but the entries that send LLDP and ARP up, until the new state forwards to every host that the
old one did, and every port of it is either proved to be a link's or has been quiet; or until `TAKEOVER_LIMIT_S` has
passed. Its hosts are learnt back from what it holds. A switch above the leaves that can not do what it did (a link is
gone) is deleted when the leaves have their new states, which do not use it for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controller.fabric.graph import Hop
from controller.fabric.hosts import Hosts
from controller.fabric.switch_data import Held
from controller.openflow.wanted_switch import WantedSwitch

TAKEOVER_LIMIT_S: Final = 15.0
TAKEOVER_POLL_S: Final = 0.1


@dataclass(slots=True)
class KnownSwitch:
    """A switch that was connected at least once."""

    dpid: int
    wanted: WantedSwitch
    name: str = ""
    connected: bool = False
    connected_at: float = 0.0
    held: Held | None = None
    """What it forwards by, while it has not got our state."""
    synced: bool = False
    """It has got our whole state since it connected."""
    in_place_at: float | None = None
    """From when on it forwards by that state; None: not confirmed yet."""
    usable_at: float | None = None
    """From when on it may carry other leaves' packets; None: not known yet."""

    def usable(self, now: float) -> bool:
        """Return whether others' packets may go by way of it."""
        return self.connected and self.usable_at is not None and now >= self.usable_at

    def lost(self) -> None:
        """Note that the connection ended."""
        self.connected = self.synced = False
        self.usable_at = self.in_place_at = self.held = None

    @property
    def has_hosts(self) -> bool:
        """Return whether it is a leaf, by what is wanted of it or by what it held when it connected."""
        return self.wanted.view.leaf or (self.held is not None and bool(self.held.hosts))


def reaches(dpid: int, held: Held, next_hops: Mapping[int, tuple[Hop, ...]], hosts: Hosts) -> bool:
    """Return whether there is a way from *dpid*, whose next hops by leaf these are, to every host that it forwards
    to."""
    remote = (hosts.by_ip(ipv4) for ipv4 in held.remote)
    return all(
        host is not None
        and host.place is not None
        and (host.place.dpid == dpid or host.place.dpid in next_hops)
        for host in remote
    )


def leaves_are_in_place(switches: Iterable[KnownSwitch], now: float) -> bool:
    """Return whether all leaves that are connected forward by our state."""
    leaves = [switch for switch in switches if switch.connected and switch.has_hosts]
    return bool(leaves) and all(leaf.in_place_at is not None and now >= leaf.in_place_at for leaf in leaves)
