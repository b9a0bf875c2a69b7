"""What must hold: always, after some quiet, and when everything has been mended."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from protocol.underlay import BASE_PORT, LABEL_FIRST, TrafficClass, dscp
from tests.unit.fake_entries import FakeTablesError
from tests.unit.fake_tables import Packet
from tests.world.agents import Host, WrongDeliveryError
from tests.world.fabric import LoopError, Way

if TYPE_CHECKING:
    from tests.world.world import World

AGENTS_CLASSES: Final = (TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL)
EV: Final = 40000
MANY_EVERY: Final = 16
MANY: Final = 12
"""After so many changes of switches so many pairs of hosts are looked at, between them one."""


class Watch:
    """Looks at a world whenever a switch or a port has changed. ``quiet``: nothing may be lost now."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._changes = 0
        self.pairs = list(itertools.permutations(world.hosts.values(), 2))
        self.quiet = False
        self.at_rest = False
        """All updates are in force: not even a fabric of three tiers may have a loop."""
        self._three_tiers = len({dpid >> 16 for dpid in world.shape.ports}) > 2

    def looked_at(self, dpid: int) -> None:
        """Look where packets go, after a change at *dpid*. Raises AssertionError."""
        self._changes += 1
        rng = self._world.rng
        for _ in range(MANY if self._changes % MANY_EVERY == 0 else 1):
            self.ways(*rng.choice(self.pairs), rng.choice(AGENTS_CLASSES))

    def ways(self, source: Host, target: Host, kind: TrafficClass) -> list[Way]:
        """Return every way between two hosts. Raises AssertionError for a loop, a duplicate, a wrong host."""
        rng = self._world.rng
        controller = self._world.controller
        labels = controller is None or controller.current.scheme.labels
        stamp = rng.randint(0, len(self._world.shape.ports)) if labels else 0
        port = LABEL_FIRST + stamp if stamp else EV
        packet = packet_of(source, target, kind, port)
        try:
            found = self._world.hardware.explore(packet, source.place.place)
        except LoopError as error:
            self.loop(f"{source.name} to {target.name}, {kind.name}: {error}")
            return []
        except FakeTablesError as error:
            raise FakeTablesError(f"{source.name} to {target.name}, {kind.name}: {error}") from None
        for way in found:
            self._came_out(source, target, way)
        return found

    def loop(self, text: str) -> None:
        """Raise LoopError for a packet that goes round where it must not: see docs/security.md for three tiers."""
        if self.at_rest or self.quiet or not self._three_tiers:
            raise LoopError(text)

    def datagram(self, source: Host, target: Host, way: Way) -> None:
        """Check the way that an agent's datagram has gone. Raises AssertionError."""
        self._came_out(source, target, way)
        if self.quiet and (way.place is None or way.packet.udp_dst != BASE_PORT):
            hops = [f"{hop.dpid:x}:{hop.port}" for hop in way.hops]
            raise AssertionError(
                f"{source.name}'s datagram to {target.name} by port {way.packet.udp_src} is lost after {hops}"
            )

    def _came_out(self, source: Host, target: Host, way: Way) -> None:
        if way.place is not None and way.place != target.place.place and not target.moved:
            raise WrongDeliveryError(f"{source.name}'s packet to {target.name} comes out at {way.place}")

    def settled(self) -> None:
        """Treat hosts that have moved as known where they are: what comes out elsewhere is a defect from now on."""
        for host in self._world.hosts.values():
            host.moved = False

    def check_ways(self) -> None:
        """Check that every pair of hosts that links join by way of no other leaf is joined, whatever groups choose.

        Others may lose packets only.
        """
        self.at_rest = True
        near = self._working_links()
        for source, target in self.pairs:
            ends = (source.place.place.dpid, target.place.place.dpid)
            known = source.session is not None and target.session is not None
            if source.moved or target.moved:
                continue  # what it said of that may have been lost
            # What has neither registered nor said ARP since its leaf came up is not known.
            if not known or ends[1] not in self._reached(near, ends[0]):
                continue
            for kind in AGENTS_CLASSES:
                for way in self.ways(source, target, kind):
                    if way.place is None:
                        hops = [f"{hop.dpid:x}:{hop.port}" for hop in way.hops]
                        raise AssertionError(
                            f"{source.name} to {target.name}, {kind.name}, port {way.packet.udp_src}: lost after {hops}"
                        )

        self.at_rest = False

    def _working_links(self) -> dict[int, list[int]]:
        """Return of each switch that lives those to which a link works both ways."""
        world = self._world
        near: dict[int, list[int]] = {dpid: [] for dpid, daemon in world.daemons.items() if daemon.alive}
        for end, other in world.hardware.peers.items():
            works = world.hardware.passes(end) and world.hardware.passes(other)
            if works and end.dpid in near and other.dpid in near:
                near[end.dpid].append(other.dpid)
        return near

    def _reached(self, near: dict[int, list[int]], leaf: int) -> set[int]:
        """Return what *leaf* reaches without passing another leaf, as paths of a fabric do; nothing if it is dead."""
        reached: set[int] = set()
        todo = [leaf] if leaf in near else []
        while todo:
            dpid = todo.pop()
            if dpid not in reached:
                reached.add(dpid)
                todo += near[dpid] if dpid == leaf or dpid not in self._world.shape.leaves else []
        return reached

    # When all has been mended

    def unlike(self) -> str:
        """Return what is not yet as it should be with everything mended; "": nothing."""
        world = self._world
        controller = world.controller
        if controller is None:
            return "there is no controller"
        if world.clock.now < controller.stalled_until:
            return "the controller gets no processor"
        if len(controller.links) < len(world.daemons):
            return "switches are not connected"
        if controller.owes_a_beginning():
            return "a switch that refused something is to begin anew"
        if len(controller.sessions) < len(world.hosts):
            return "agents are not connected"
        if not controller.plane.ready():
            return "the control plane is not ready"
        if sum(link.up for link in controller.plane.snapshot().links) < len(world.shape.links):
            return "links are not up"
        for known in controller.plane.snapshot().hosts:
            place = world.by_address[known.ipv4].place.place
            if known.place != place:
                return f"{known.ipv4} is at {place}, and known at {known.place}"
        for dpid, daemon in world.daemons.items():
            if daemon.busy:
                return f"switch {dpid:x} is working off what it was sent"
            if daemon.tables.state != controller.plane.wanted_state(dpid):
                return f"switch {dpid:x} holds something else than it should"
        return self._unlike_agents() or self._unlike_files()

    def _unlike_agents(self) -> str:
        world = self._world
        controller = world.controller
        assert controller is not None
        everyone = frozenset((host.name, host.session_number) for host in world.hosts.values())
        reported = {
            f"{leaf:016x}": {f"{other:016x}": stamps for other, stamps in paths.items()}
            for leaf, paths in stamps_of(world).items()
        }
        for host in world.hosts.values():
            if host.peers != everyone:
                return f"the directory of {host.name} has {sorted(host.peers)}, not {sorted(everyone)}"
            if host.policy_version != controller.current.version:
                return f"{host.name} acts on policy {host.policy_version}, not {controller.current.version}"
            # Without any at the controller agents go on with those of the one before.
            if controller.flow_types is not None and host.flow_types != controller.flow_types:
                return f"{host.name} has types {host.flow_types}, not {controller.flow_types}"
            wanted = reported[f"{host.place.place.dpid:016x}"]
            if dict(host.paths) != wanted:
                return f"{host.name} has paths {dict(host.paths)}, not {wanted}"
        return ""

    def _unlike_files(self) -> str:
        controller = self._world.controller
        assert controller is not None
        kept = controller.scheme_file.read()
        if controller.current.version > 1 and (kept is None or kept.scheme != controller.current.scheme):
            return "the file of the scheme has another one than is in force"
        if controller.plane.snapshot().scheme != controller.current.scheme.name:
            return "the control plane has another scheme than is in force"
        return ""


def stamps_of(world: World) -> dict[int, dict[int, tuple[int, ...]]]:
    """Return stamps of all paths between leaves, as the control plane's own answer about paths has them."""
    controller = world.controller
    assert controller is not None
    leaves: dict[int, Host] = {}
    for host in world.hosts.values():
        leaves.setdefault(host.place.place.dpid, host)
    return {
        leaf: {
            other: tuple(
                sorted({path.stamp for path in controller.plane.paths(one.place.ipv4, peer.place.ipv4)})
            )
            for other, peer in leaves.items()
            if other != leaf
        }
        for leaf, one in leaves.items()
    }


def packet_of(source: Host, target: Host, kind: TrafficClass, port: int) -> Packet:
    """Return a datagram between two agents, as the fabric sees it."""
    return Packet(
        eth_dst=target.place.mac,
        ip_dscp=dscp(kind),
        ipv4_src=source.place.ipv4,
        ipv4_dst=target.place.ipv4,
        udp_src=port,
        udp_dst=BASE_PORT + 5,
    )
