"""Switches without links and agents: how many of them, and of their ports and hosts, there may be.

Each known switch costs every computation of the fabric's state, and each port LLDP. Whatever reaches the OpenFlow port
can call itself thousands of switches, but none of them is part of the fabric before a link or the host of an agent
shows that it is. ARP shows nothing: who invents a switch invents its hosts.
So those that show nothing have a budget; one that has shown nothing for `GRACE_S` makes room for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.fabric.discovery import LinkDiscovery
from controller.fabric.hosts import Hosts
from controller.plane.takeover import KnownSwitch

MOST_ISOLATED: Final = 128
"""A larger fabric that connects all at once has most of its links after a fraction of a second; those that were turned
away call again after one."""
MOST_ISOLATED_PORTS: Final = 16_384
"""Of all of them together."""
MANY_PORTS: Final = 64
"""An isolated switch with more of them gets no entries and meters for each before a link or a host is there."""
MOST_ISOLATED_HOSTS: Final = 1024
"""Of all of them together."""
MOST_HELD_HOSTS: Final = 32_768
"""Of all of them together, that they held when they connected: after a restart of ours no switch has a link yet."""
GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refusal``: why a switch may not join, or None; ``leaving``: those that make room for it, by datapath id."""

    refusal: str | None = None
    leaving: tuple[int, ...] = ()


class IsolatedSwitches:
    """Args:
    switches: all that are known, by dpid.
    """

    def __init__(self, switches: Mapping[int, KnownSwitch], discovery: LinkDiscovery, hosts: Hosts) -> None:
        self._switches = switches
        self._discovery = discovery
        self._hosts = hosts

    def is_isolated(self, dpid: int) -> bool:
        """Return whether a switch has neither a link (up or not) nor the host of an agent."""
        return not self._discovery.is_wired_switch(dpid) and dpid not in self._hosts.leaves_with_agents()

    def without_ports(self) -> frozenset[int]:
        """Return the switches that get no entries for single ports yet: they have no host at all."""
        isolated = self._ports_by_switch().items()
        return frozenset(
            dpid for dpid, ports in isolated if ports > MANY_PORTS and not self._hosts.count_at(dpid)
        )

    def may_have_host(self, dpid: int) -> bool:
        """Return whether a switch may have one more host that no agent has registered."""
        if not self.is_isolated(dpid):
            return True
        return sum(map(self._hosts.count_at, self._ports_by_switch())) < MOST_ISOLATED_HOSTS

    def most_held(self, dpid: int) -> int | None:
        """Return how many hosts a switch may have for what it held when it connected; None: any number."""
        if not self.is_isolated(dpid):
            return None
        room = MOST_HELD_HOSTS - sum(map(self._hosts.count_at, self._ports_by_switch()))
        return max(0, min(MOST_ISOLATED_HOSTS, room))

    def admit(self, dpid: int, ports: int, now: float) -> Verdict:
        """Return whether a switch with so many ports may join."""
        most, most_ports = MOST_ISOLATED - 1, MOST_ISOLATED_PORTS - ports
        if len(self._switches) <= most and self._discovery.count_all_ports() <= most_ports:
            return Verdict()
        isolated = self._ports_by_switch()
        if dpid in self._switches and dpid not in isolated:
            return Verdict()
        isolated.pop(dpid, None)
        isolated_ports = sum(isolated.values())
        leaving: list[int] = []
        for other in sorted(isolated, key=self._age_key):
            if len(isolated) - len(leaving) <= most and isolated_ports <= most_ports:
                break
            switch = self._switches[other]
            if switch.connected and switch.connected_at > now - GRACE_S:
                break
            leaving.append(other)
            isolated_ports -= isolated[other]
        if len(isolated) - len(leaving) <= most and isolated_ports <= most_ports:
            return Verdict(None, tuple(leaving))
        return Verdict(
            f"{len(isolated)} switches with {sum(isolated.values())} ports have neither links nor agents, and it would "
            f"be one too many: {MOST_ISOLATED} switches and {MOST_ISOLATED_PORTS} ports are the most"
        )

    def refusal_of_port(self, dpid: int) -> str | None:
        """Return why a switch that has got one more port may not stay, or None if it may."""
        if self._discovery.count_all_ports() <= MOST_ISOLATED_PORTS:
            return None
        isolated = self._ports_by_switch()
        if dpid not in isolated or sum(isolated.values()) <= MOST_ISOLATED_PORTS:
            return None
        return f"switches that have neither links nor agents have more than {MOST_ISOLATED_PORTS} ports"

    def _ports_by_switch(self) -> dict[int, int]:
        """Return how many ports each switch without links and agents has."""
        others = self._discovery.wired_switches() | self._hosts.leaves_with_agents()
        return {dpid: self._discovery.count_ports(dpid) for dpid in self._switches if dpid not in others}

    def _age_key(self, dpid: int) -> tuple[bool, float]:
        """Return a key by which those that are away come first, then those that have been here for longest."""
        switch = self._switches[dpid]
        return switch.connected, switch.connected_at
