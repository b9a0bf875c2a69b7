"""k-ary fat tree (Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center Network Architecture, 2008).

k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores; edge switches are numbered e1.. over all pods,
and so are a1.. and c1...  Aggregation switch j of every pod is linked to cores (j-1)*k/2+1 .. j*k/2.

Also for Mininet's own command (k, hosts per edge switch or 0 for k/2, rates in Mbit/s)::

    mn --custom topologies/fat_tree.py --topo fattree,4,2,10,50 --link tc
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

if "__file__" not in globals():  # `mn --custom` executes this text by itself: let it find its package
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))))

from topologies.addressing import place_hosts
from topologies.links import Link as FabricLink
from topologies.links import link_of
from topologies.shaped_topo import ShapedTopo


class FatTree(ShapedTopo):
    """Fat tree of switches with k ports each; hosts h1.. on edge switches e1...

    hosts_per_leaf: hosts on each edge switch; None or 0 means k/2.
    link, access: shape of switch-switch and of host links (a Link, a mapping, a rate in Mbit/s, or None).
    overrides: shape of single links by name, like {"e1-a2": Link(rate_mbps=2)}.
    """

    def build(
        self,
        k: int = 4,
        hosts_per_leaf: int | None = None,
        link: FabricLink | float | None = None,
        access: FabricLink | float | None = None,
        overrides: Mapping[str, FabricLink] | None = None,
    ) -> None:
        """Add all nodes and links (Mininet calls this). Raises ValueError for an odd k."""
        if k < 2 or k % 2:
            raise ValueError(f"k must be an even number from 2 on, not {k}")
        overrides = overrides or {}
        fabric, edge_shape = link_of(link), link_of(access)
        half = k // 2
        for tier, count in (("e", k * half), ("a", k * half), ("c", half * half)):
            for number in range(1, count + 1):
                self.add_switch(f"{tier}{number}")
        for host in place_hosts(k * half, hosts_per_leaf or half):
            self.add_host(host)
            self.join(host.name, f"e{host.leaf}", edge_shape, overrides)
        for pod in range(k):
            for edge in range(half):
                for aggregation in range(half):
                    self.join(
                        f"e{pod * half + edge + 1}", f"a{pod * half + aggregation + 1}", fabric, overrides
                    )
            for aggregation in range(half):
                for core in range(half):
                    self.join(
                        f"a{pod * half + aggregation + 1}",
                        f"c{aggregation * half + core + 1}",
                        fabric,
                        overrides,
                    )


topos = {"fattree": FatTree}
