"""Leaf-spine fabric: every leaf is linked to every spine, hosts sit on leaves.

Also for Mininet's own command, which gives its own switches and links (leaves, spines, hosts per leaf, and,
with ``--link tc``, the rates of fabric and access links in Mbit/s)::

    mn --custom topologies/leaf_spine.py --topo leafspine,2,4,2,10,50 --link tc
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

if "__file__" not in globals():  # `mn --custom` executes this text by itself: let it find its package
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))))

from topologies.layout import leaf_spine
from topologies.links import Link as FabricLink
from topologies.links import link_of
from topologies.shaped_topo import ShapedTopo


class LeafSpine(ShapedTopo):
    """`leaves` x `spines`; hosts h1.. on leaves l1.., spines s1...

    link, access: shape of leaf-spine and of host links (a Link, a mapping, a rate in Mbit/s, or None).
    overrides: shape of single links by name, like {"l1-s3": Link(rate_mbps=2)}.
    """

    def build(
        self,
        leaves: int = 2,
        spines: int = 2,
        hosts_per_leaf: int = 2,
        link: FabricLink | float | None = None,
        access: FabricLink | float | None = None,
        overrides: Mapping[str, FabricLink] | None = None,
    ) -> None:
        """Add all nodes and links (Mininet calls this)."""
        self.lay_out(
            leaf_spine(leaves, spines, hosts_per_leaf), link_of(link), link_of(access), overrides or {}
        )


topos = {"leafspine": LeafSpine}
