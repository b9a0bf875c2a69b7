"""The last table of a switch: by leaf and kind to a port, or to a group over the next hops.

Under a scheme that uses path labels, a label leads to the next hops from which the switch with that stamp is reached; a
label of a dead path, and an entropy value, to the spray group. The first switch that sends an agent's datagram down
(the turning point of its path) writes its path stamp over the entropy value or label; those after it see a stamp and
leave it.

Destination leaves with the same next hops share their groups, named after the lowest leaf number among them. So a
group's buckets are exactly the next hops that reach the leaf: a spine that cannot is not among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from controller.openflow.cookies import Rule
from controller.openflow.port_ranges import prefixes
from controller.openflow.spraying import spray_order, spray_parts
from controller.openflow.tables import AGENT, ETH_IPV4, HASH, LABEL, LEAF_MASK, UDP, Table
from controller.openflow.view import Towards
from controller.openflow.wanted import Bucket, FlowRule, Group, Masked, Match, Output, SetField, ToGroup
from controller.schemes.scheme import Scheme
from protocol.underlay import EV_FIRST, EV_LAST, LABEL_FIRST, LABEL_LAST, label_of

UNSTAMPED_PORTS: Final = (*prefixes(LABEL_FIRST, LABEL_LAST), *prefixes(EV_FIRST, EV_LAST))
"""Source ports that agents send with: labels and entropy values."""


def basis_of(dpid: int) -> int:
    """Return the hash basis of a switch: its own, so that two stages of hashing do not polarise."""
    digest = hashlib.blake2b(dpid.to_bytes(8, "big"), digest_size=4, person=b"capstan-basis")
    return int.from_bytes(digest.digest(), "big")


def choose_part(dpid: int, towards: Iterable[Towards]) -> tuple[tuple[Group, ...], tuple[FlowRule, ...]]:
    """Return groups, and the entries that lead to them, for all leaves."""
    basis = basis_of(dpid)
    groups: dict[int, Group] = {}
    flows: list[FlowRule] = []
    for way, shared in _sharing(towards):
        if shared is None:
            flows += _single(way)
            continue
        if shared == way.leaf:
            groups.update((group.id, group) for group in _groups(shared, way, basis))
        flows += _several(shared, way)
    return tuple(groups.values()), tuple(flows)


def _sharing(towards: Iterable[Towards]) -> Iterable[tuple[Towards, int | None]]:
    """Return every way, by leaf, with the leaf that its groups are named after; None where there is no choice of
    next hops."""
    first: dict[tuple[tuple[int, ...], int | None], int] = {}
    for way in sorted(towards, key=lambda way: way.leaf):
        yield way, first.setdefault((way.ports, way.stamp), way.leaf) if len(way.ports) > 1 else None


def _single(way: Towards) -> Iterable[FlowRule]:
    """Yield the entries towards a leaf to which there is one next hop, or none."""
    out = tuple(Output(port) for port in way.ports)
    yield FlowRule(Table.CHOOSE, 10, Match(metadata=(way.leaf, LEAF_MASK)), out, cookie=Rule.CHOOSE)
    if way.ports and way.stamp is not None:
        for source in UNSTAMPED_PORTS:
            match = _datagram((way.leaf | AGENT, LEAF_MASK | AGENT), source)
            yield FlowRule(
                Table.CHOOSE, 20, match, (SetField("udp_src", way.stamp), *out), cookie=Rule.CHOOSE
            )


def _several(number: int, way: Towards) -> Iterable[FlowRule]:
    """Yield the entries towards a leaf by the groups named after leaf *number*."""

    def entry(priority: int, match: Match, group: int) -> FlowRule:
        return FlowRule(Table.CHOOSE, priority, match, (ToGroup(group),), cookie=Rule.CHOOSE)

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
) -> tuple[tuple[Group, ...], tuple[FlowRule, ...]]:
    """Return the entries by which path labels lead to their paths, and their groups; nothing under a scheme without
    labels.

    A label's group takes the ways to its switch while one is alive (by hash if there are several: parallel links) and
    else falls back to the spray group at once. Labels and leaves with the same ways share groups, named after the first
    of them.
    """
    if scheme is None or not scheme.labels:
        return (), ()
    basis = basis_of(dpid)
    groups: dict[int, Group] = {}
    flows: list[FlowRule] = []
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
            flows.append(FlowRule(Table.CHOOSE, 30, match, (ToGroup(number),), cookie=Rule.CHOOSE))
    return tuple(groups.values()), tuple(flows)


def label_group_id(leaf: int, stamp: int) -> int:
    """Return the group of label *stamp* towards leaf *leaf*: none of `group_id`'s, which end below 2^20."""
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
    """Return the group of leaf *number*: ``kind`` HASH or 0 (spray), with or without a path stamp, or a part."""
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
