"""k-ary fat tree (Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center Network Architecture, 2008).

Its switches and how they are linked: see `layout`.

Also for Mininet's own command (k, hosts per edge switch or 0 for k/2, rates in Mbit/s)::

    mn --custom topologies/fat_tree.py --topo fattree,4,2,10,50 --link tc
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

if "__file__" not in globals():  # `mn --custom` executes this text by itself: let it find its package
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))))

from topologies.layout import fat_tree
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
        self.lay_out(fat_tree(k, hosts_per_leaf or k // 2), link_of(link), link_of(access), overrides or {})


topos = {"fattree": FatTree}
