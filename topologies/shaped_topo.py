"""A Mininet topology whose links have shapes and whose hosts have places."""

from __future__ import annotations

from collections.abc import Mapping

from mininet.topo import Topo

from topologies.addressing import UNDERLAY_PREFIX, datapath_id, link_name
from topologies.layout import Layout
from topologies.links import Link


class ShapedTopo(Topo):  # type: ignore[misc]
    """What leaf-spine and fat tree share: how switches, hosts and links are added."""

    def lay_out(self, layout: Layout, fabric: Link, access: Link, overrides: Mapping[str, Link]) -> None:
        """Add all nodes and links. *overrides*, by name of the link, come before *fabric* and *access*."""
        for name in layout.switches:
            self.addSwitch(name, dpid=datapath_id(name))
        for host in layout.hosts:
            self.addHost(host.name, ip=f"{host.underlay}/{UNDERLAY_PREFIX}", mac=host.mac, place=host)
        for pairs, base in ((layout.access, access), (layout.fabric, fabric)):
            for end, other in pairs:
                self._join(end, other, overrides.get(link_name(end, other), base))

    def _join(self, end: str, other: str, shape: Link) -> None:
        # The shape goes along as our own option and as those of Mininet's TCLink (`mn --link tc`).
        self.addLink(end, other, shape=shape, **shape.mininet_options())
