"""From hosts and routing to what each switch needs to know of them (`SwitchView`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.fabric.graph import Link
from controller.fabric.hosts import Host
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import Routing
from controller.fabric.turning import TurningPoints, Ways
from controller.openflow.view import LocalHost, RemoteHost, SwitchView, Towards


class FabricViews:
    """The views of all switches at one moment.

    What no path passes, such as a leaf whose last host has moved, passes nothing on, and a leaf only what its hosts
    send: until all others have been updated they may send them packets, which could come back. They may do so by links
    that have not been found yet.
    """

    def __init__(
        self,
        hosts: Iterable[Host],
        routing: Routing,
        links: Iterable[Link],
        numbers: SwitchNumbers,
        *,
        ports: Mapping[int, tuple[int, ...]],
    ) -> None:
        self._ports = ports
        self._routing = routing
        self._numbers = numbers
        self._turning = TurningPoints(routing)
        self._labels_of: dict[Ways, Ways] = {}
        self._local: dict[int, list[LocalHost]] = {}
        self._remote: dict[int, list[RemoteHost]] = {}
        for host in sorted(hosts, key=lambda host: host.ipv4):
            if host.place is not None:
                dpid, port = host.place
                self._local.setdefault(dpid, []).append(LocalHost(host.ipv4, host.mac, port, host.agent))
                self._remote.setdefault(dpid, []).append(
                    RemoteHost(host.ipv4, host.mac, numbers[dpid], host.agent)
                )
        self._uplinks: dict[int, list[int]] = {}
        for link in links:
            for dpid, port in link:
                self._uplinks.setdefault(dpid, []).append(port)

    def view(self, dpid: int) -> SwitchView:
        """Return the fabric as one switch needs it for its tables."""
        routing = self._routing
        leaf = dpid in self._local
        towards = tuple(
            Towards(
                self._numbers[to],
                tuple(hop.port for hop in hops),
                self._numbers[dpid] if routing.turns(dpid, to) else None,
                self._labels(dpid, to),
            )
            for to, hops in sorted(routing.next_hops.get(dpid, {}).items())
        )
        ports = self._ports.get(dpid, ())
        local = tuple(self._local.get(dpid, ()))
        guarded = {*ports} - {host.port for host in local} | {*self._uplinks.get(dpid, ())}
        return SwitchView(
            dpid,
            leaf,
            local,
            tuple(host for leaf, hosts in sorted(self._remote.items()) if leaf != dpid for host in hosts),
            towards,
            tuple(sorted(guarded)) if leaf and dpid not in routing.transit_leaves else (),
            not leaf and dpid not in routing.carriers,
            ports,
        )

    def stamps(self, leaf: int) -> dict[int, tuple[int, ...]]:
        """Return the stamps of all paths from *leaf*, ascending, by destination leaf; no entry where no path is
        stamped."""
        stamps = {
            to: tuple(sorted(stamp for stamp, _ in self._labels(leaf, to)))
            for to in sorted(self._local)
            if to != leaf
        }
        return {to: stamps_to for to, stamps_to in stamps.items() if stamps_to}

    def _labels(self, dpid: int, leaf: int) -> Ways:
        ways = self._turning.ways(dpid, leaf)
        labels = self._labels_of.get(ways)
        if labels is None:
            labels = self._labels_of[ways] = tuple((self._numbers[turn], ports) for turn, ports in ways)
        return labels
