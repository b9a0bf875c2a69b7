"""A Mininet topology whose links have shapes and whose hosts have places."""

from __future__ import annotations

from collections.abc import Mapping

from mininet.topo import Topo

from topologies.addressing import UNDERLAY_PREFIX, HostPlace, datapath_id, link_name
from topologies.links import Link


class ShapedTopo(Topo):  # type: ignore[misc]
    """What leaf-spine and fat tree share: how switches, hosts and links are added."""

    def add_switch(self, name: str) -> None:
        """Add a switch with the datapath id of its name."""
        self.addSwitch(name, dpid=datapath_id(name))

    def add_host(self, host: HostPlace) -> None:
        """Add a host with the addresses of its place."""
        self.addHost(host.name, ip=f"{host.underlay}/{UNDERLAY_PREFIX}", mac=host.mac, place=host)

    def join(self, end: str, other: str, base: Link, overrides: Mapping[str, Link]) -> None:
        """Link two nodes; *overrides*, by name of the link, come before *base*.

        The shape goes along as our own option and as those of Mininet's TCLink (`mn --link tc`).
        """
        shape = overrides.get(link_name(end, other), base)
        self.addLink(end, other, shape=shape, **shape.mininet_options())
