"""The links of a fabric that is up: found by name, changed, counted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from topologies.counters import PortCounters, read_counters
from topologies.fabric_spec import unknown_link
from topologies.links import Link
from topologies.namespaces import run_batch
from topologies.nodes import Nodes
from topologies.ovs import OvsSwitch
from topologies.port_trees import PortTrees
from topologies.registry import LabError
from topologies.wiring import LabLink


class RunningLinks:
    """Both directions of every link. *reshaped* gets the name of a node one of whose ports has another rate or buffer.

    Calls may come from several threads.
    """

    def __init__(self, nodes: Nodes, trees: PortTrees, reshaped: Callable[[str], None]) -> None:
        self._nodes: Final = nodes
        self.trees: Final = trees
        self._reshaped: Final = reshaped
        self._down: set[str] = set()
        """Links that were taken down by name."""
        self._changes: Final = threading.Lock()

    @property
    def shapes(self) -> dict[str, Link]:
        """Return shapes by name of the link, as they are now."""
        return self.trees.shapes

    def change(self, name: str, up: bool | None, rate_mbps: float | None, buffer_packets: int | None) -> None:
        """Change one link, both directions; None leaves a thing as it is. Raises LabError for a name that is none."""
        link = self.find(name)
        with self._changes:
            old = self.shapes[link.name]
            new = replace(
                old,
                rate_mbps=old.rate_mbps if rate_mbps is None else rate_mbps,
                buffer_packets=old.buffer_packets if buffer_packets is None else buffer_packets,
                buffer_bytes=old.buffer_bytes if buffer_packets is None else None,
            )
            self.trees.reshape(link.name, new)
            for end in (link.intf1, link.intf2):
                self._reshaped(end.node.name)
            if up is not None:
                self._set_up(link, up)
                (self._down.discard if up else self._down.add)(link.name)

    def counters(self, name: str) -> tuple[PortCounters, PortCounters]:
        """Return the counters of both ends of a link, the end named first in the link's name first."""
        link = self.find(name)
        ends = sorted((link.intf1, link.intf2), key=lambda end: link.name.index(end.node.name))
        first, second = (
            self._nodes.inside(end.node.name, partial(read_counters, end.name)).result() for end in ends
        )
        return first, second

    def set_ports(self, switch: OvsSwitch, *, up: bool) -> None:
        """Take all ports of a switch up or down, but for links that were taken down one by one."""
        lowered = {link.lowered_end.name for link in self._nodes.net.links if link.name in self._down}
        names = [name for name in switch.intfNames() if name not in lowered]
        lines = [f"link set dev {name} {'up' if up else 'down'}" for name in names]
        self._nodes.inside(switch.name, partial(run_batch, "ip", lines)).result()

    def find(self, name: str) -> LabLink:
        """Return the link between the two nodes of "l1-s1", in any order. Raises LabError if there is none."""
        wanted = set(name.split("-"))
        for link in self._nodes.net.links:
            if {link.intf1.node.name, link.intf2.node.name} == wanted:
                assert isinstance(link, LabLink)
                return link
        raise LabError(unknown_link(name, list(self.shapes)))

    def _set_up(self, link: LabLink, up: bool) -> None:
        end = link.lowered_end
        line = f"link set dev {end.name} {'up' if up else 'down'}"
        self._nodes.inside(end.node.name, partial(run_batch, "ip", [line])).result()
