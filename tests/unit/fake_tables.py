"""A switch that exists only as its tables: an interpreter of `SwitchState`, for tests without a switch.

It does what OpenFlow 1.5 says about the entries that we write, and refuses what a real switch would refuse or leave
undefined: two entries of one priority that both match, an entry that jumps back, a group or meter that is not
there, a field that is written without the match that it needs.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from controller.fabric.arp import Arp, decode_arp
from controller.openflow.wanted import (
    Action,
    Bucket,
    CopyField,
    Difference,
    FlowRule,
    Group,
    Meter,
    Output,
    SetField,
    SwitchState,
    ThroughMeter,
    ToController,
    ToGroup,
    ToQueue,
)
from tests.unit.fake_entries import EntryIndex, FakeTablesError

_ETH_IPV4: Final = 0x0800
_ETH_ARP: Final = 0x0806
_IN_PORT: Final = 0xFFFFFFF8
_UDP: Final = 17


@dataclass(frozen=True, slots=True)
class Packet:
    """The fields that our entries can see. Ports are 0 where there are none."""

    eth_dst: str = "02:00:00:00:00:00"
    eth_src: str = "02:00:00:00:00:00"
    eth_type: int = _ETH_IPV4
    ip_proto: int = _UDP
    ip_dscp: int = 0
    ipv4_src: str = "0.0.0.0"
    ipv4_dst: str = "0.0.0.0"
    udp_src: int = 0
    udp_dst: int = 0
    arp_op: int = 0
    arp_spa: str = "0.0.0.0"
    arp_tpa: str = "0.0.0.0"
    arp_sha: str = "00:00:00:00:00:00"
    arp_tha: str = "00:00:00:00:00:00"


def packet_of(frame: bytes) -> Packet:
    """Return the fields of an ARP packet; of any other frame, its Ethernet type alone."""
    arp = decode_arp(frame)
    if arp is None:
        return Packet(eth_type=int.from_bytes(frame[12:14], "big"), ip_proto=0)
    return Packet(
        eth_dst=arp.eth_dst,
        eth_src=arp.eth_src,
        eth_type=_ETH_ARP,
        ip_proto=0,
        arp_op=arp.operation,
        arp_spa=arp.sender_ip,
        arp_tpa=arp.target_ip,
        arp_sha=arp.sender_mac,
        arp_tha=arp.target_mac,
    )


def frame_of(packet: Packet) -> bytes:
    """Return the ARP packet with these fields."""
    assert packet.eth_type == _ETH_ARP
    operation: Literal[1, 2] = 1 if packet.arp_op == 1 else 2
    return Arp(
        packet.eth_dst,
        packet.eth_src,
        operation,
        packet.arp_sha,
        packet.arp_spa,
        packet.arp_tha,
        packet.arp_tpa,
    ).encode()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one packet led to: where it left (port, packet), copies to the controller by cookie, meters passed,
    queues that it was given (the last one holds)."""

    sent: tuple[tuple[int, Packet], ...] = ()
    punted: tuple[int, ...] = ()
    metered: tuple[int, ...] = ()
    queued: tuple[int, ...] = ()

    def __add__(self, other: Outcome) -> Outcome:
        if other is _NOTHING:
            return self
        if self is _NOTHING:
            return other
        return Outcome(
            self.sent + other.sent,
            self.punted + other.punted,
            self.metered + other.metered,
            self.queued + other.queued,
        )


_NOTHING: Final = Outcome()

Chooser = Callable[[Group, tuple[int, ...], Packet], tuple[int, ...]]
"""From a group, the indices of its live buckets and a packet to the indices to follow: one, or all to explore."""


def by_hash(group: Group, live: tuple[int, ...], packet: Packet) -> tuple[int, ...]:
    """Return one bucket, by a hash of the fields that the group hashes and its basis."""
    if group.method == "hash":
        values: tuple[object, ...] = tuple(getattr(packet, name) for name in group.fields)
    else:
        values = (packet.ipv4_src, packet.ipv4_dst, packet.ip_proto, packet.udp_src, packet.udp_dst)
    text = repr((group.basis, values)).encode()
    return (live[int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % len(live)],)


def every_bucket(group: Group, live: tuple[int, ...], packet: Packet) -> tuple[int, ...]:
    """Return all of them: explore whatever any hash may do. Buckets that do the same are followed once."""
    objects: dict[int, int] = {}  # one bucket stands in a group dozens of times, and its hash takes long
    for index in live:
        objects.setdefault(id(group.buckets[index]), index)
    first: dict[Bucket, int] = {}
    for index in objects.values():
        first.setdefault(group.buckets[index], index)
    return tuple(first.values())


@dataclass
class FakeSwitch:
    """``down``: ports without a link; what goes there is lost, and buckets that watch them are dead."""

    state: SwitchState = field(default_factory=SwitchState)
    down: set[int] = field(default_factory=set)
    meter_counts: dict[int, int] = field(default_factory=dict)
    _entries: EntryIndex = field(default_factory=EntryIndex, repr=False)
    _live_of: tuple[SwitchState | None, frozenset[int], dict[int, tuple[int, ...]]] = field(
        default=(None, frozenset(), {}), repr=False
    )
    """Live buckets by group, for as long as entries and ports stay what they are."""
    _distinct: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """Of these, by group, those that `every_bucket` follows."""

    def apply(self, change: Difference, *, whole: bool = False) -> None:
        """Make a bundle's changes. whole: what the change does not name is deleted (a resync)."""
        flows = {} if whole else dict(self.state.flows)
        groups = {} if whole else dict(self.state.groups)
        meters = {} if whole else dict(self.state.meters)
        meters |= {meter.id: meter for meter in change.add_meters}
        for group in change.add_groups:
            groups[group.id] = group
            self._check_group(group, groups)
        for flow in change.add_flows:
            self._check_flow(flow, groups, meters)
            flows[flow.key] = flow
        for flow in change.delete_flows:
            if flows.pop(flow.key, None) is None:
                raise FakeTablesError(f"deletes {flow}, which is not there")
        for group_id in change.delete_groups:
            if groups.pop(group_id, None) is None:
                raise FakeTablesError(f"deletes group {group_id}, which is not there")
        for meter_id in change.delete_meters:
            if meters.pop(meter_id, None) is None:
                raise FakeTablesError(f"deletes meter {meter_id}, which is not there")
        if change.delete_groups or change.delete_meters:
            for flow in flows.values():
                self._check_flow(flow, groups, meters)
        if change.delete_groups or change.add_groups:
            for group in groups.values():
                self._check_group(group, groups)
        before, self.state = self.state, SwitchState(flows, groups, meters)
        self._entries.follow(before, self.state, change, whole)

    def outcomes(self, packet: Packet, in_port: int, choose: Chooser = by_hash) -> list[Outcome]:
        """Return what *packet* leads to when it comes in at *in_port*; one outcome for each combination of choices."""
        results = list(self._table(0, packet, in_port, 0, choose))
        if len(results) == 1:
            for meter in results[0].metered:
                self.meter_counts[meter] = self.meter_counts.get(meter, 0) + 1
        return results

    def _table(
        self, table: int, packet: Packet, in_port: int, metadata: int, choose: Chooser
    ) -> Iterator[Outcome]:
        flow = self._entries.lookup(self.state, table, packet, in_port, metadata)
        if flow is None:
            yield _NOTHING
            return
        for done, after in self._actions(flow.actions, packet, in_port, flow.cookie, choose):
            if flow.goto is None:
                yield done
                continue
            written = metadata
            if flow.metadata is not None:
                value, mask = flow.metadata
                written = metadata & ~mask | value & mask
            for rest in self._table(flow.goto, after, in_port, written, choose):
                yield done + rest

    def _actions(
        self, actions: tuple[Action, ...], packet: Packet, in_port: int, cookie: int, choose: Chooser
    ) -> list[tuple[Outcome, Packet]]:
        """Return every (outcome, packet afterwards) of an action list."""
        branches: list[tuple[Outcome, Packet]] = [(_NOTHING, packet)]
        for action in actions:
            branches = [
                (done + more, after)
                for done, before in branches
                for more, after in self._action(action, before, in_port, cookie, choose)
            ]
        return branches

    def _action(
        self, action: Action, packet: Packet, in_port: int, cookie: int, choose: Chooser
    ) -> list[tuple[Outcome, Packet]]:
        match action:
            case Output(port):
                gone = port in self.down or port == in_port
                way = in_port if port == _IN_PORT else port
                return [(_NOTHING if gone else Outcome(sent=((way, packet),)), packet)]
            case ToController():
                return [(Outcome(punted=(cookie,)), packet)]
            case ThroughMeter(meter):
                return [(Outcome(metered=(meter,)), packet)]
            case ToQueue(queue):
                return [(Outcome(queued=(queue,)), packet)]
            case SetField(name, value):
                written: dict[str, Any] = {name: value}
                return [(_NOTHING, dataclasses.replace(packet, **written))]
            case CopyField(source, target):
                copied: dict[str, Any] = {target: getattr(packet, source)}
                return [(_NOTHING, dataclasses.replace(packet, **copied))]
            case ToGroup(group_id):
                group = self.state.groups[group_id]
                return [(done, packet) for done in self._group(group, packet, in_port, cookie, choose)]

    def _group(
        self, group: Group, packet: Packet, in_port: int, cookie: int, choose: Chooser
    ) -> Iterator[Outcome]:
        live = self._live(group)
        if not live:
            yield _NOTHING
            return
        if group.method == "failover":
            chosen = live[:1]
        elif choose is every_bucket:
            if group.id not in self._distinct:
                self._distinct[group.id] = every_bucket(group, live, packet)
            chosen = self._distinct[group.id]
        else:
            chosen = choose(group, live, packet)
        for index in chosen:
            for done, _ in self._actions(group.buckets[index].actions, packet, in_port, cookie, choose):
                yield done

    def _live(self, group: Group) -> tuple[int, ...]:
        """Return the indices of the buckets that may be chosen."""
        down = frozenset(self.down)
        if self._live_of[0] is not self.state or self._live_of[1] != down:
            self._live_of = (self.state, down, {})
            self._distinct.clear()
        known = self._live_of[2]
        if group.id not in known:
            objects = {id(bucket): bucket for bucket in group.buckets}
            dead = {number for number, bucket in objects.items() if not self._alive(bucket)}
            known[group.id] = tuple(
                [index for index, bucket in enumerate(group.buckets) if id(bucket) not in dead]
            )
        return known[group.id]

    def _alive(self, bucket: Bucket) -> bool:
        port, other = bucket.watch_port, bucket.watch_group
        if port is None and other is None:
            return True
        return (port is not None and port not in self.down) or (
            other is not None and bool(self._live(self.state.groups[other]))
        )

    @staticmethod
    def _check_group(group: Group, groups: Mapping[int, Group], above: tuple[int, ...] = ()) -> None:
        """Check that the groups that *group* leads to or watches are there, and that none leads back to itself."""
        if group.id in above:
            raise FakeTablesError(f"group {group.id} leads to itself by way of {above}")
        # One bucket stands in a group dozens of times.
        for bucket in {id(bucket): bucket for bucket in group.buckets}.values():
            needed = [action.group for action in bucket.actions if isinstance(action, ToGroup)]
            if bucket.watch_group is not None:
                needed.append(bucket.watch_group)
            for other in needed:
                if other not in groups:
                    raise FakeTablesError(f"group {group.id} needs group {other}, which is not there")
                FakeSwitch._check_group(groups[other], groups, (*above, group.id))

    @staticmethod
    def _check_flow(flow: FlowRule, groups: Mapping[int, Group], meters: Mapping[int, Meter]) -> None:
        if flow.goto is not None and flow.goto <= flow.table:
            raise FakeTablesError(f"{flow} jumps back")
        match = flow.match
        if (match.udp_src or match.udp_dst) and (match.eth_type, match.ip_proto) != (_ETH_IPV4, _UDP):
            raise FakeTablesError(f"{flow} matches UDP ports without eth_type and ip_proto")
        if (match.ipv4_src or match.ipv4_dst or match.ip_proto or match.ip_dscp is not None) and (
            match.eth_type != _ETH_IPV4
        ):
            raise FakeTablesError(f"{flow} matches IPv4 fields without eth_type")
        if (match.arp_op is not None or match.arp_tpa) and match.eth_type != _ETH_ARP:
            raise FakeTablesError(f"{flow} matches ARP fields without eth_type")
        for action in flow.actions:
            match action:
                case SetField(name) if name.startswith("arp_") and match.eth_type != _ETH_ARP:
                    raise FakeTablesError(f"{flow} writes an ARP field without matching ARP")
                case ToGroup(group) if group not in groups:
                    raise FakeTablesError(f"{flow} needs group {group}, which is not there")
                case ThroughMeter(meter) if meter not in meters:
                    raise FakeTablesError(f"{flow} needs meter {meter}, which is not there")
                case SetField("udp_src" | "udp_dst") if match.ip_proto != _UDP:
                    raise FakeTablesError(f"{flow} writes a UDP port without matching UDP")
                case _:
                    pass
