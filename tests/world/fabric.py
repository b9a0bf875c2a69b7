"""The fabric's hardware: fake tables, links that fail at one end, at both, or without a sign, and what a packet meets.

`explore` follows a packet over every choice that groups may make; what one switch makes of it is computed once for as
long as its entries and ports stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from controller.fabric.graph import Link, PortRef
from controller.openflow.wanted import Difference, SwitchState, ToGroup
from tests.unit.fake_tables import (
    FakeSwitch,
    FakeTablesError,
    Outcome,
    Packet,
    by_hash,
    every_bucket,
)


class LoopError(FakeTablesError):
    """A packet comes to a switch for the second time."""


class Way(NamedTuple):
    """One way of a packet: the ports by which it left switches, and where it came out (None: it was dropped)."""

    hops: tuple[PortRef, ...]
    place: PortRef | None
    packet: Packet


@dataclass
class Tables(FakeSwitch):
    """Fake tables that remember what they made of a packet, and that a switch may fill badly."""

    _known: dict[tuple[Packet, int], list[Outcome]] = field(default_factory=dict, repr=False)
    _known_by_hash: dict[tuple[Packet, int], Outcome] = field(default_factory=dict, repr=False)
    _known_of: tuple[SwitchState | None, frozenset[int]] = field(default=(None, frozenset()), repr=False)

    def every_outcome(self, packet: Packet, in_port: int) -> list[Outcome]:
        """Return what the packet may lead to, whatever groups choose. No meter counts it."""
        self._forget_what_was()
        found = self._known.get((packet, in_port))
        if found is None:
            found = self._known[packet, in_port] = list(self._table(0, packet, in_port, 0, every_bucket))
        return found

    def outcome(self, packet: Packet, in_port: int) -> Outcome:
        """Return what the packet leads to by the groups' hashes. Meters count it."""
        self._forget_what_was()
        found = self._known_by_hash.get((packet, in_port))
        if found is None:
            (found,) = self._table(0, packet, in_port, 0, by_hash)
            self._known_by_hash[packet, in_port] = found
        for meter in found.metered:
            self.meter_counts[meter] = self.meter_counts.get(meter, 0) + 1
        return found

    def _forget_what_was(self) -> None:
        if self._known_of[0] is not self.state or self._known_of[1] != self.down:
            self._known_of = (self.state, frozenset(self.down))
            self._known.clear()
            self._known_by_hash.clear()

    def apply_some(self, change: Difference, whole: bool, left_out: frozenset[int]) -> int:
        """Make a change without its flows and groups of these indices, as a switch does that refuses them.

        What needs a group that is not there is refused as well, and what is deleted need not be there. Return how many
        parts were refused.
        """
        parts = [*change.add_groups, *change.add_flows]
        refused = {index for index in left_out if index < len(parts)}
        groups = {} if whole else dict(self.state.groups)
        flows = {} if whole else dict(self.state.flows)
        meters = {} if whole else dict(self.state.meters)
        meters |= {meter.id: meter for meter in change.add_meters}
        for index, group in enumerate(change.add_groups):
            needed = {
                action.group for one in group.buckets for action in one.actions if isinstance(action, ToGroup)
            }
            needed |= {one.watch_group for one in group.buckets if one.watch_group is not None}
            if index in refused or not needed <= groups.keys():
                refused.add(index)
            else:
                groups[group.id] = group
        for index, flow in enumerate(change.add_flows, len(change.add_groups)):
            needed = {action.group for action in flow.actions if isinstance(action, ToGroup)}
            if index in refused or not needed <= groups.keys():
                refused.add(index)
            else:
                flows[flow.key] = flow
        for flow in change.delete_flows:
            flows.pop(flow.key, None)
        for number in change.delete_groups:  # with it go the entries that lead to it
            groups.pop(number, None)
            flows = {key: flow for key, flow in flows.items() if ToGroup(number) not in flow.actions}
        for number in change.delete_meters:
            meters.pop(number, None)
        self.state = SwitchState(flows, groups, meters)
        return len(refused)


class Hardware:
    """Switches, links between their ports; every other port leads to a host, or nowhere."""

    def __init__(self, ports: dict[int, int], links: list[Link]) -> None:
        self.switches = {dpid: Tables() for dpid in ports}
        self.peers = {end: other for a, b in links for end, other in ((a, b), (b, a))}
        self.lossy: set[PortRef] = set()
        """Ports from which nothing arrives at the other end, though both see light."""

    def passes(self, sender: PortRef) -> bool:
        """Return whether a frame that leaves by *sender* arrives at the other end of its cable."""
        peer = self.peers.get(sender)
        return (
            sender.port not in self.switches[sender.dpid].down
            and sender not in self.lossy
            and (peer is None or peer.port not in self.switches[peer.dpid].down)
        )

    def explore(self, packet: Packet, place: PortRef) -> list[Way]:
        """Return every way of a packet from the host at *place*.

        Raises LoopError, and FakeTablesError for a packet that is sent twice.
        """
        return self._follow(packet, place, ())

    def _follow(self, packet: Packet, place: PortRef, hops: tuple[PortRef, ...]) -> list[Way]:
        if any(hop.dpid == place.dpid for hop in hops):
            raise LoopError(f"loop: {[f'{hop.dpid:x}:{hop.port}' for hop in hops]}, back to {place.dpid:x}")
        found: list[Way] = []
        for outcome in self.switches[place.dpid].every_outcome(packet, place.port):
            found += self._after(outcome, packet, place, hops)
        return found

    def _after(
        self, outcome: Outcome, packet: Packet, place: PortRef, hops: tuple[PortRef, ...]
    ) -> list[Way]:
        if len(outcome.sent) > 1:
            raise FakeTablesError(f"sent twice at {place.dpid:x}: {outcome.sent}")
        if not outcome.sent:
            return [Way(hops, None, packet)]
        port, after = outcome.sent[0]
        sender = PortRef(place.dpid, port)
        hops = (*hops, sender)
        if not self.passes(sender):
            return [Way(hops, None, after)]
        peer = self.peers.get(sender)
        return [Way(hops, sender, after)] if peer is None else self._follow(after, peer, hops)

    def carry(self, packet: Packet, place: PortRef) -> tuple[Way, list[tuple[PortRef, int]]]:
        """Send a packet for good: its way by the groups' hashes, and copies to the controller (place, cookie)."""
        copies: list[tuple[PortRef, int]] = []
        hops: tuple[PortRef, ...] = ()
        while True:
            if any(hop.dpid == place.dpid for hop in hops):
                raise LoopError(
                    f"loop: {[f'{hop.dpid:x}:{hop.port}' for hop in hops]}, back to {place.dpid:x}"
                )
            outcome = self.switches[place.dpid].outcome(packet, place.port)
            copies += [(place, cookie) for cookie in outcome.punted]
            if len(outcome.sent) > 1:
                raise FakeTablesError(f"sent twice at {place.dpid:x}: {outcome.sent}")
            if not outcome.sent:
                return Way(hops, None, packet), copies
            port, packet = outcome.sent[0]
            sender = PortRef(place.dpid, port)
            hops = (*hops, sender)
            if not self.passes(sender):
                return Way(hops, None, packet), copies
            if sender not in self.peers:
                return Way(hops, sender, packet), copies
            place = self.peers[sender]
