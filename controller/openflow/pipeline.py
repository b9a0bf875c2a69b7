"""From the fabric, a scheme and a mode to what one switch should hold.

Tables and metadata: `controller.openflow.tables`. What each switch does with an IPv4 packet:

- CLASSIFY: a UDP datagram to an agents' port (BASE_PORT + flow key) with an agents' DSCP is an agent's datagram of that
  class. Everything else is plain: ECMP by its own 5-tuple, nothing rewritten. IPv6, broadcast and multicast
  of the underlay, and any other Ethernet type are dropped.
- DELIVER: to a host of this switch. An agent's datagram gets BASE_PORT back. To a host of which no agent is known,
  agents' ports mean nothing: its packets are plain, whatever their port and DSCP.
- CLASS: which kind of group serves the class here, by scheme and mode. The short class of a leaf passes a
  meter and, while the leaf is OFF, is copied to the controller. A mode change is a change of two entries.
- CHOOSE: by leaf and kind: a port, or a group over the next hops. Under a scheme that uses path labels, a label leads
  to the next hops from which the switch with that stamp is reached; a label of a dead path, and an entropy value, to
  the spray group. The first switch that sends an agent's datagram down (the turning point of its path) writes its path
  stamp over the entropy value or label; those after it see a stamp and leave it.

Destination leaves with the same next hops share their groups, named after the lowest leaf number among them. So a
group's buckets are exactly the next hops that reach the leaf: a spine that cannot is not among them.

The mode of a switch above the leaves is ON while any leaf below it is: long flows of those leaves keep to one path
all the way up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from controller.openflow.cookies import Rule
from controller.openflow.port_ranges import prefixes
from controller.openflow.spraying import spray_order, spray_parts
from controller.openflow.tables import (
    AGENT,
    CLASS_MASK,
    CLASS_SHIFT,
    HASH,
    LABEL,
    LEAF_MASK,
    LONG_METER,
    SHORT_METER,
    Table,
    class_bits,
)
from controller.openflow.wanted import (
    Action,
    Bucket,
    Flow,
    Group,
    Masked,
    Match,
    Meter,
    Output,
    SetField,
    SwitchState,
    ThroughMeter,
    ToController,
    ToGroup,
)
from controller.schemes.scheme import GroupKind, Mode, Scheme
from protocol.underlay import (
    BASE_PORT,
    EV_FIRST,
    EV_LAST,
    FLOW_KEYS,
    LABEL_FIRST,
    LABEL_LAST,
    PRIORITIES,
    TrafficClass,
    dscp,
    label_of,
)

ETH_IPV4: Final = 0x0800
ETH_ARP: Final = 0x0806
ETH_LLDP: Final = 0x88CC
UDP: Final = 17

LLDP_BYTES: Final = 256
ARP_BYTES: Final = 64
FIRST_SHORT_BYTES: Final = 64
"""How much of a packet the controller gets."""

AGENT_PORTS: Final = prefixes(BASE_PORT, BASE_PORT + FLOW_KEYS - 1)
UNSTAMPED_PORTS: Final = (*prefixes(LABEL_FIRST, LABEL_LAST), *prefixes(EV_FIRST, EV_LAST))
"""Source ports that agents send with: labels and entropy values."""
FORGED_PORTS: Final = (*prefixes(0, LABEL_FIRST - 1), *prefixes(LABEL_LAST + 1, EV_FIRST - 1))

_IDENTITY: Final = LEAF_MASK | CLASS_MASK | AGENT
_KIND_BITS: Final[dict[GroupKind, int]] = {"spray": 0, "hash": HASH, "label": LABEL}


@dataclass(frozen=True, slots=True)
class LocalHost:
    """A host on a port of this switch."""

    ipv4: str
    mac: str
    port: int
    agent: bool


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A host of the leaf with number ``leaf``."""

    ipv4: str
    leaf: int
    agent: bool


@dataclass(frozen=True, slots=True)
class Towards:
    """Next hops to one leaf: ports, in order. ``stamp``: what to write because paths turn here, or None.

    ``labels``: the stamps that paths from here may get further up, each with the ports that lead there.
    """

    leaf: int
    ports: tuple[int, ...]
    stamp: int | None = None
    labels: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchView:
    """All that one switch's state depends on, besides scheme and mode.

    ``guarded``: ports from which only packets for own hosts are taken: a leaf's uplinks, unless the leaf has to carry
    others' packets.
    """

    dpid: int
    leaf: bool
    local: tuple[LocalHost, ...] = ()
    remote: tuple[RemoteHost, ...] = ()
    towards: tuple[Towards, ...] = ()
    guarded: tuple[int, ...] = ()

    @property
    def chooses(self) -> bool:
        """Whether there is a choice of ways for anything."""
        return any(len(way.ports) > 1 for way in self.towards)


def switch_state(view: SwitchView, scheme: Scheme | None, mode: Mode) -> SwitchState:
    """The whole state. No scheme: every class by the hash group (ECMP), no modes."""
    groups, choose = choose_part(view.dpid, view.towards)
    label_groups, label_flows = label_part(view.dpid, view.towards, scheme)
    return SwitchState(
        flows=by_key(
            (
                *punt_flows(),
                *classify_flows(),
                *deliver_flows(view.local, view.remote),
                *class_flows(view, scheme, mode),
                *choose,
                *label_flows,
            )
        ),
        groups={group.id: group for group in (*groups, *label_groups)},
        meters=meters(view, scheme),
    )


def by_key(flows: Iterable[Flow]) -> dict[tuple[int, int, Match], Flow]:
    return {flow.key: flow for flow in flows}


def meters(view: SwitchView, scheme: Scheme | None) -> dict[int, Meter]:
    if not view.leaf or scheme is None:
        return {}
    numbers = (SHORT_METER, LONG_METER) if scheme.partition else (SHORT_METER,) if scheme.mode else ()
    return {number: Meter(number) for number in numbers}


@cache
def punt_flows() -> tuple[Flow, ...]:
    """LLDP and ARP to the controller: what a switch needs before anything is known of it."""
    return (
        Flow(
            Table.CLASSIFY,
            1000,
            Match(eth_type=ETH_LLDP),
            (ToController(LLDP_BYTES),),
            cookie=Rule.LLDP,
        ),
        Flow(Table.CLASSIFY, 1000, Match(eth_type=ETH_ARP), (ToController(ARP_BYTES),), cookie=Rule.ARP),
    )


@cache
def classify_flows() -> tuple[Flow, ...]:
    """IPv4 into classes; the same on every switch."""
    agents = tuple(
        Flow(
            Table.CLASSIFY,
            100,
            Match(eth_type=ETH_IPV4, ip_proto=UDP, ip_dscp=dscp(kind, priority), udp_dst=ports),
            goto=Table.DELIVER,
            metadata=(class_bits(kind), CLASS_MASK | AGENT),
            cookie=Rule.CLASSIFY,
        )
        for kind in (TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL)
        for priority in range(PRIORITIES)
        for ports in AGENT_PORTS
    )
    plain = Flow(Table.CLASSIFY, 10, Match(eth_type=ETH_IPV4), goto=Table.DELIVER, cookie=Rule.CLASSIFY)
    return (*agents, plain)


def deliver_flows(local: Iterable[LocalHost], remote: Iterable[RemoteHost]) -> tuple[Flow, ...]:
    """Own hosts, and whose host every other one is."""
    flows: list[Flow] = []
    for host in local:
        flows += _local_flows(host)
    flows += map(_remote_flow, remote)
    return tuple(flows)


@lru_cache(maxsize=1 << 16)
def _local_flows(host: LocalHost) -> tuple[Flow, ...]:
    out: tuple[Action, ...] = (SetField("eth_dst", host.mac), Output(host.port))
    plain = Flow(Table.DELIVER, 10, Match(eth_type=ETH_IPV4, ipv4_dst=host.ipv4), out, cookie=Rule.DELIVER)
    if not host.agent:
        return (plain,)
    agents = Flow(
        Table.DELIVER,
        20,
        Match(eth_type=ETH_IPV4, ip_proto=UDP, ipv4_dst=host.ipv4, metadata=(AGENT, AGENT)),
        (SetField("udp_dst", BASE_PORT), *out),
        cookie=Rule.DELIVER,
    )
    return (agents, plain)


@lru_cache(maxsize=1 << 16)
def _remote_flow(host: RemoteHost) -> Flow:
    return Flow(
        Table.DELIVER,
        10,
        Match(eth_type=ETH_IPV4, ipv4_dst=host.ipv4),
        goto=Table.CLASS,
        # For a host without an agent, what looked like an agent's datagram becomes plain again.
        metadata=(host.leaf, LEAF_MASK if host.agent else _IDENTITY),
        cookie=Rule.REMOTE,
    )


def class_flows(view: SwitchView, scheme: Scheme | None, mode: Mode) -> tuple[Flow, ...]:
    """Which kind of group serves each class; everything that depends on scheme and mode."""
    flows = [Flow(Table.CLASS, 0, Match(), goto=Table.CHOOSE, cookie=Rule.CLASS)]
    if view.leaf:
        flows += _guards(view)
    if view.leaf or view.chooses:
        flows += [
            _class_flow(TrafficClass.SHORT, view, scheme, mode),
            _class_flow(TrafficClass.LONG, view, scheme, mode),
            _class_flow(TrafficClass.CONTROL, view, scheme, mode),
        ]
    return tuple(flows)


def _class_flow(kind: TrafficClass, view: SwitchView, scheme: Scheme | None, mode: Mode) -> Flow:
    actions: tuple[Action, ...] = ()
    rule = Rule.CLASS
    number = {TrafficClass.SHORT: SHORT_METER, TrafficClass.LONG: LONG_METER}.get(kind)
    if number in meters(view, scheme):
        actions = (ThroughMeter(number),)
        if mode == "off" and scheme is not None and scheme.mode is not None:
            actions = (*actions, ToController(FIRST_SHORT_BYTES))
            rule = Rule.FIRST_SHORT
    return Flow(
        Table.CLASS,
        10,
        Match(metadata=(kind << CLASS_SHIFT, CLASS_MASK)),
        actions,
        goto=Table.CHOOSE,
        metadata=(_KIND_BITS[_group_kind(kind, scheme, mode)], HASH | LABEL),
        cookie=rule,
    )


def _group_kind(kind: TrafficClass, scheme: Scheme | None, mode: Mode) -> GroupKind:
    if scheme is None:
        return "hash"
    if kind is TrafficClass.SHORT:
        return scheme.group_of("short", mode)
    return scheme.group_of("long" if kind is TrafficClass.LONG else "control", mode)


def _guards(view: SwitchView) -> Iterable[Flow]:
    """What a leaf does not pass on: packets that came down to it, and agents' datagrams with a forged stamp."""
    for port in view.guarded:
        yield Flow(Table.CLASS, 100, Match(in_port=port), cookie=Rule.GUARD)
    for port in sorted({host.port for host in view.local}):
        for source in FORGED_PORTS:
            yield Flow(
                Table.CLASS,
                50,
                Match(in_port=port, eth_type=ETH_IPV4, ip_proto=UDP, udp_src=source, metadata=(AGENT, AGENT)),
                cookie=Rule.GUARD,
            )


def basis_of(dpid: int) -> int:
    """The hash basis of a switch: its own, so that two stages of hashing do not polarise."""
    digest = hashlib.blake2b(dpid.to_bytes(8, "big"), digest_size=4, person=b"capstan-basis")
    return int.from_bytes(digest.digest(), "big")


def choose_part(dpid: int, towards: Iterable[Towards]) -> tuple[tuple[Group, ...], tuple[Flow, ...]]:
    """Groups, and the entries that lead to them, for all leaves."""
    basis = basis_of(dpid)
    groups: dict[int, Group] = {}
    flows: list[Flow] = []
    for way, shared in _sharing(towards):
        if shared is None:
            flows += _single(way)
            continue
        if shared == way.leaf:
            groups.update((group.id, group) for group in _groups(shared, way, basis))
        flows += _several(shared, way)
    return tuple(groups.values()), tuple(flows)


def _sharing(towards: Iterable[Towards]) -> Iterable[tuple[Towards, int | None]]:
    """Every way, by leaf, with the leaf that its groups are named after; None where there is no choice of next hops."""
    first: dict[tuple[tuple[int, ...], int | None], int] = {}
    for way in sorted(towards, key=lambda one: one.leaf):
        yield way, first.setdefault((way.ports, way.stamp), way.leaf) if len(way.ports) > 1 else None


def _single(way: Towards) -> Iterable[Flow]:
    """Entries towards a leaf to which there is one next hop, or none."""
    out = tuple(Output(port) for port in way.ports)
    yield Flow(Table.CHOOSE, 10, Match(metadata=(way.leaf, LEAF_MASK)), out, cookie=Rule.CHOOSE)
    if way.ports and way.stamp is not None:
        for source in UNSTAMPED_PORTS:
            match = _datagram((way.leaf | AGENT, LEAF_MASK | AGENT), source)
            yield Flow(Table.CHOOSE, 20, match, (SetField("udp_src", way.stamp), *out), cookie=Rule.CHOOSE)


def _several(number: int, way: Towards) -> Iterable[Flow]:
    """Entries towards a leaf by the groups named after leaf *number*."""

    def entry(priority: int, match: Match, group: int) -> Flow:
        return Flow(Table.CHOOSE, priority, match, (ToGroup(group),), cookie=Rule.CHOOSE)

    for kind in (0, HASH):
        yield entry(
            10,
            Match(metadata=(way.leaf | kind, LEAF_MASK | HASH)),
            group_id(number, kind, stamped=False),
        )
    if way.stamp is not None:
        for kind in (0, HASH):
            for source in UNSTAMPED_PORTS:
                match = _datagram((way.leaf | AGENT | kind, LEAF_MASK | AGENT | HASH), source)
                yield entry(20, match, group_id(number, kind, stamped=True))
        return
    parts = spray_parts(len(way.ports))
    for part in range(1, parts):
        match = _datagram((way.leaf | AGENT, LEAF_MASK | AGENT | HASH), (part, parts - 1))
        yield entry(20, match, group_id(number, 0, stamped=False, part=part))


def label_part(
    dpid: int, towards: Iterable[Towards], scheme: Scheme | None
) -> tuple[tuple[Group, ...], tuple[Flow, ...]]:
    """Entries by which path labels lead to their paths, and their groups; nothing under a scheme without labels.

    A label's group takes the ways to its switch while one is alive (by hash if there are several: parallel links) and
    else falls back to the spray group at once. Labels and leaves with the same ways share groups, named after the first
    of them.
    """
    if scheme is None or not scheme.labels:
        return (), ()
    basis = basis_of(dpid)
    groups: dict[int, Group] = {}
    flows: list[Flow] = []
    first: dict[tuple[int, tuple[int, ...]], int] = {}
    for way, shared in _sharing(towards):
        if shared is None:
            continue
        spray = group_id(shared, 0, stamped=False)
        for stamp, ports in way.labels:
            number = first.setdefault((spray, ports), label_group_id(way.leaf, stamp))
            if number not in groups:
                groups.update((group.id, group) for group in _label_groups(number, ports, spray, basis))
            match = _datagram(
                (way.leaf | AGENT | LABEL, LEAF_MASK | AGENT | LABEL), (label_of(stamp), 0xFFFF)
            )
            flows.append(Flow(Table.CHOOSE, 30, match, (ToGroup(number),), cookie=Rule.CHOOSE))
    return tuple(groups.values()), tuple(flows)


def label_group_id(leaf: int, stamp: int) -> int:
    """Group of label *stamp* towards leaf *leaf*; apart from all of `group_id`, whose numbers end below 2^20."""
    return 1 << 24 | leaf << 12 | stamp


def _label_groups(number: int, ports: tuple[int, ...], spray: int, basis: int) -> Iterable[Group]:
    way = _bucket(ports[0], None)
    if len(ports) > 1:
        several = number | 1 << 25
        yield Group(several, "dp_hash", basis, tuple(_bucket(port, None) for port in spray_order(ports, 0)))
        way = Bucket((ToGroup(several),), watch_group=several)
    yield Group(number, "failover", 0, (way, Bucket((ToGroup(spray),), watch_group=spray)))


def _datagram(metadata: Masked, source: Masked) -> Match:
    return Match(eth_type=ETH_IPV4, ip_proto=UDP, udp_src=source, metadata=metadata)


def group_id(number: int, kind: int, *, stamped: bool, part: int = 0) -> int:
    """Group of leaf *number*: ``kind`` HASH or 0 (spray), with or without a path stamp, part of the spray."""
    return number << 8 | (0x80 if stamped else 0) | (0x40 if kind == HASH else 0) | part


def _groups(number: int, way: Towards, basis: int) -> Iterable[Group]:
    stamps = (None,) if way.stamp is None else (None, way.stamp)
    for stamp in stamps:
        stamped = stamp is not None
        yield Group(
            group_id(number, HASH, stamped=stamped),
            "hash",
            basis,
            tuple(_bucket(port, stamp) for port in way.ports),
            ("ipv4_src", "ipv4_dst", "udp_dst"),
        )
        for part in range(1 if way.stamp is not None else spray_parts(len(way.ports))):
            buckets = tuple(_bucket(port, stamp) for port in spray_order(way.ports, part))
            yield Group(group_id(number, 0, stamped=stamped, part=part), "dp_hash", basis, buckets)


@lru_cache(maxsize=1 << 14)
def _bucket(port: int, stamp: int | None) -> Bucket:
    out = Output(port)
    return Bucket((out,) if stamp is None else (SetField("udp_src", stamp), out), watch_port=port)
