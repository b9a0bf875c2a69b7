"""From the fabric as discovered to what CAPTON's schedulers see of it: hosts, virtual links, single paths. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.capton.fabric import HostPlace, Rates
from controller.capton.single_path import SinglePath
from controller.fabric.graph import Hop, PortRef, Wiring, link_between
from controller.fabric.paths import Routing, compute_routing
from controller.plane.naming import switch_names
from controller.plane.snapshot import FabricSnapshot, LinkInfo

UNKNOWN_BPS: Final = 10_000_000_000
"""A link whose rate is not known."""
UNKNOWN_POD: Final = "no pod"
"""Of leaves whose links are still being found."""


@dataclass(frozen=True, slots=True)
class TopologyView:
    """``addresses``: host by underlay address. ``groups``: capacities of leaves and pods."""

    hosts: tuple[HostPlace, ...] = ()
    groups: Mapping[str, Rates] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return what is the same as long as only capacities change."""
        return tuple((host.name, host.groups) for host in self.hosts)


class SnapshotReader:
    """Reads one snapshot. *rates*: bit/s that ports are known to send."""

    def __init__(self, snapshot: FabricSnapshot, rates: Mapping[tuple[int, int], int]) -> None:
        self._snapshot = snapshot
        self._rates = rates
        hosts = {host.name for host in snapshot.hosts}
        self._names = {
            dpid: f"{dpid:#x}" if name in hosts else name
            for dpid, name in switch_names(snapshot.switches).items()
        }
        self._tiers = {switch.dpid: switch.tier for switch in snapshot.switches}
        connected = {switch.dpid for switch in snapshot.switches if switch.connected}
        self._up = [
            link
            for link in snapshot.links
            if link.up and link.a.dpid in connected and link.b.dpid in connected
        ]
        self._speeds = {end: link.speed_kbps for link in self._up for end in (link.a, link.b)}
        self._pods = self._pods_by_leaf()

    def topology(self) -> TopologyView:
        """Return hosts that have agents and are at a leaf, and all virtual links."""
        located = [host for host in self._snapshot.hosts if host.agent and host.name and host.place]
        places = []
        for host in located:
            assert host.place is not None
            rate = (self._rates.get((host.place.dpid, host.place.port)) or UNKNOWN_BPS) if host.up else 0
            leaf = host.place.dpid
            groups = (self._names[leaf],) + ((self._pods.get(leaf, UNKNOWN_POD),) if self._pods else ())
            places.append(HostPlace(host.name, Rates(rate, rate), groups))
        capacities: dict[str, Rates] = {}
        for leaf in sorted({host.place.dpid for host in located if host.place}):
            capacities[self._names[leaf]] = self._above_leaf(leaf) if self._pods else self._above((leaf,))
        pods = {host.groups[1] for host in places if len(host.groups) > 1}
        for pod in sorted(pods):
            inside = [
                dpid for dpid, tier in self._tiers.items() if tier == 1 and self._pod_above(dpid) == pod
            ]
            capacities[pod] = self._above(inside)
        return TopologyView(
            tuple(sorted(places, key=lambda place: place.name)),
            capacities,
            {host.ipv4: host.name for host in located},
        )

    def single_paths(self) -> dict[tuple[str, str], tuple[SinglePath, ...]]:
        """Return by pair of leaves all paths that have a label, each with its links, up and down."""
        routing = self._routing()
        leaves = sorted({host.place.dpid for host in self._snapshot.hosts if host.agent and host.place})
        stamps = {switch.dpid: switch.stamp for switch in self._snapshot.switches}
        single = {}
        for source in leaves:
            for target in leaves:
                if source != target:
                    paths = [
                        self._single_path(routing, stamps, steps, target)
                        for steps in routing.paths(source, target)
                    ]
                    single[self._names[source], self._names[target]] = tuple(
                        path for path in paths if path.stamp
                    )
        return single

    def _single_path(
        self, routing: Routing, stamps: Mapping[int, int], steps: Sequence[tuple[int, Hop]], target: int
    ) -> SinglePath:
        turn = next((dpid for dpid, _ in steps[1:] if routing.turns(dpid, target)), None)
        links = {}
        for dpid, hop in steps:
            end = PortRef(dpid, hop.port)
            links[f"{self._names[dpid]}-{self._names[hop.to]}:{hop.port}"] = self._rate(
                end, self._speeds.get(end, 0)
            )
        return SinglePath(0 if turn is None else stamps.get(turn, 0), tuple(links.items()))

    def _routing(self) -> Routing:
        links = frozenset(link_between(link.a, link.b) for link in self._up)
        leaves = frozenset(host.place.dpid for host in self._snapshot.hosts if host.place)
        usable = frozenset(switch.dpid for switch in self._snapshot.switches if switch.connected)
        return compute_routing(Wiring(links, links, leaves, usable, leaf_transit=False))

    def _above(self, switches: Iterable[int]) -> Rates:
        """Return capacity of the links from these switches to the tier above, and back.

        Packets take parallel links in turn, so every link carries as much as the slowest one.
        """
        inside = set(switches)
        up, down = [], []
        for link in self._up:
            for low, high in ((link.a, link.b), (link.b, link.a)):
                if low.dpid in inside and self._is_above(high.dpid, low.dpid):
                    up.append(self._rate(low, link.speed_kbps))
                    down.append(self._rate(high, link.speed_kbps))
        return Rates(len(up) * min(up, default=0), len(down) * min(down, default=0))

    def _above_leaf(self, leaf: int) -> Rates:
        """Return the same for a leaf of three tiers, whose packets take the *paths* in turn: a link carries its
        share of them.

        Where each switch above has as many links upwards, that is the sum. Traffic within the pod takes the switches
        in turn; of both the lower counts.
        """
        even = self._above((leaf,))
        by_switch: dict[int, list[LinkInfo]] = {}
        for link in self._up:
            other = link.b if link.a.dpid == leaf else link.a if link.b.dpid == leaf else None
            if other is not None and self._is_above(other.dpid, leaf):
                by_switch.setdefault(other.dpid, []).append(link)
        paths = {
            dpid: sum(
                (link.a.dpid == dpid and self._is_above(link.b.dpid, dpid))
                or (link.b.dpid == dpid and self._is_above(link.a.dpid, dpid))
                for link in self._up
            )
            for dpid in by_switch
        }
        total = sum(paths.values())
        if not total:
            return even
        rates = []
        for inner in (True, False):
            several = [
                total * len(links) * min(self._end_rate(link, leaf, inner) for link in links) // paths[dpid]
                for dpid, links in by_switch.items()
                if paths[dpid]
            ]
            rates.append(min(several))
        return Rates(min(even.up, rates[0]), min(even.down, rates[1]))

    def _end_rate(self, link: LinkInfo, leaf: int, inner: bool) -> int:
        """Return the rate of what the leaf's end of a link sends (*inner*), or the other one."""
        return self._rate(link.a if (link.a.dpid == leaf) is inner else link.b, link.speed_kbps)

    def _is_above(self, high: int, low: int) -> bool:
        tiers = self._tiers.get(high), self._tiers.get(low)
        return tiers[0] is not None and tiers[1] is not None and tiers[0] > tiers[1]

    def _rate(self, end: PortRef, speed_kbps: int) -> int:
        return self._rates.get((end.dpid, end.port)) or speed_kbps * 1000 or UNKNOWN_BPS

    def _pods_by_leaf(self) -> dict[int, str]:
        """Return leaves that share switches of the first tier, where there is a second one; empty where there is
        none."""
        if max((tier for tier in self._tiers.values() if tier is not None), default=0) < 2:
            return {}
        pod_of = {dpid: dpid for dpid, tier in self._tiers.items() if tier in (0, 1)}

        def root(dpid: int) -> int:
            while pod_of[dpid] != dpid:
                dpid = pod_of[dpid]
            return dpid

        for link in self._snapshot.links:  # of all that were ever seen: a failure parts no pod
            ends = root_of(link, pod_of)
            if ends is not None:
                low, high = sorted(map(root, ends))
                pod_of[high] = low
        roots = {dpid: root(dpid) for dpid in pod_of}
        numbers = {root: index for index, root in enumerate(sorted(set(roots.values())), 1)}
        self._pod_of_switch = {dpid: f"pod {numbers[root]}" for dpid, root in roots.items()}
        return {dpid: name for dpid, name in self._pod_of_switch.items() if self._tiers[dpid] == 0}

    def _pod_above(self, dpid: int) -> str:
        return self._pod_of_switch.get(dpid, UNKNOWN_POD)


def root_of(link: LinkInfo, inside: Mapping[int, int]) -> tuple[int, int] | None:
    """Return the ends of a link, if both are inside a pod."""
    ends = link.a.dpid, link.b.dpid
    return ends if all(port in inside for port in ends) else None
