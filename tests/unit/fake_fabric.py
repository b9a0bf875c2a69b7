"""A whole fabric of fake switches: where a packet can come out, over every choice that groups may make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controller.fabric.graph import Link, PortRef
from tests.unit.fake_tables import Chooser, FakeSwitch, FakeTablesError, Packet, every_bucket


@dataclass(frozen=True, slots=True)
class Trace:
    """One way of one packet: the switches on it, and where it left the fabric (None: it was dropped)."""

    switches: tuple[int, ...]
    place: PortRef | None
    packet: Packet


@dataclass
class FakeFabric:
    """Switches and the links between them; every other port leads to a host."""

    switches: dict[int, FakeSwitch] = field(default_factory=dict)
    punted: list[tuple[PortRef, int]] = field(default_factory=list)
    """Copies to the controller: where the packet had come in, and the entry's cookie."""
    _peers: dict[PortRef, PortRef] = field(default_factory=dict)

    def wire(self, links: Iterable[Link]) -> None:
        for a, b in links:
            self._peers[a], self._peers[b] = b, a

    def cut(self, link: Link) -> None:
        """Take the link from both ports of *link*, as their switches see at once."""
        for end in link:
            self.switches[end.dpid].down.add(end.port)

    def mend(self, link: Link) -> None:
        for end in link:
            self.switches[end.dpid].down.discard(end.port)

    def traces(self, packet: Packet, place: PortRef, choose: Chooser = every_bucket) -> list[Trace]:
        """Return every way that *packet*, sent by the host at *place*, may take. One choice leads to one way.

        Raises:
            FakeTablesError: a loop, or a packet that is sent twice.
        """
        return self._follow(packet, place, (), choose)

    def _follow(
        self, packet: Packet, place: PortRef, before: tuple[int, ...], choose: Chooser
    ) -> list[Trace]:
        if place.dpid in before:
            raise FakeTablesError(f"loop: {before} and back to {place.dpid}")
        way = (*before, place.dpid)
        traces: list[Trace] = []
        for outcome in self.switches[place.dpid].outcomes(packet, place.port, choose):
            self.punted += [(place, cookie) for cookie in outcome.punted]
            if len(outcome.sent) > 1:
                raise FakeTablesError(f"sent twice at {place.dpid}: {outcome.sent}")
            if not outcome.sent:
                traces.append(Trace(way, None, packet))
                continue
            port, after = outcome.sent[0]
            peer = self._peers.get(PortRef(place.dpid, port))
            if peer is None:
                traces.append(Trace(way, PortRef(place.dpid, port), after))
            else:
                traces += self._follow(after, peer, way, choose)
        return traces
