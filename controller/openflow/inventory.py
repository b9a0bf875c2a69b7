"""What a switch holds when it connects: read back from its multipart replies.

A controller that takes a switch over must know the generations of its flow entries, its groups and its meters
(to delete what is stale) and where the switch delivers (so that known hosts stay known). Flow descriptions
are walked by their fixed heads; os-ken parses only those of the deliver table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from os_ken.ofproto import ofproto_v1_5 as ofp
from os_ken.ofproto import ofproto_v1_5_parser as parser

from controller.effects import Held, HeldHost, MeterReading
from controller.openflow.codec import cookie_of, generation_of
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.tables import Table

_FLOW_DESCRIPTION: Final = struct.Struct("!H2xBxHHHHHQ")
"""Length, table, priority, idle and hard time-out, flags, importance, cookie."""
_GROUP_STATS: Final = struct.Struct("!H2xI")
_METER_STATS: Final = struct.Struct("!IH6xIQQ")
"""Meter, length, references, packets in, bytes in."""


@dataclass(frozen=True, slots=True)
class Inventory:
    generations: frozenset[int]
    """Generations of its flow entries; 0 is that of entries which no controller of ours wrote."""
    groups: frozenset[int]
    meters: frozenset[int]
    held: Held | None
    """Hosts that it forwards to; None if it has no flow entry at all."""


def flow_entries(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(table, cookie as on the wire, raw description) of each entry in the body of an OFPMP_FLOW_DESC reply."""
    offset = 0
    while offset < len(body):
        length, table, *_, cookie = _FLOW_DESCRIPTION.unpack_from(body, offset)
        if length < _FLOW_DESCRIPTION.size:
            raise ValueError(f"flow description of {length} B at {offset} is too short")
        yield table, cookie, body[offset : offset + length]
        offset += length


def groups_in(body: bytes) -> frozenset[int]:
    """Group ids in the body of an OFPMP_GROUP_STATS reply."""
    groups = set()
    offset = 0
    while offset < len(body):
        length, group = _GROUP_STATS.unpack_from(body, offset)
        if length < _GROUP_STATS.size:
            raise ValueError(f"group statistics of {length} B at {offset} are too short")
        groups.add(group)
        offset += length
    return frozenset(groups)


def meters_in(body: bytes) -> dict[int, MeterReading]:
    """What each meter has counted, from the body of an OFPMP_METER_STATS reply."""
    readings = {}
    offset = 0
    while offset < len(body):
        meter, length, _, packets, octets = _METER_STATS.unpack_from(body, offset)
        if length < _METER_STATS.size:
            raise ValueError(f"meter statistics of {length} B at {offset} are too short")
        readings[meter] = MeterReading(packets, octets)
        offset += length
    return readings


def take_inventory(flows: bytes, groups: bytes, meters: bytes) -> Inventory:
    """What the bodies of the three replies say. Raises ValueError or struct.error on what is malformed."""
    generations = set()
    deliveries = []
    for table, cookie, raw in flow_entries(flows):
        generations.add(generation_of(cookie))
        if table == Table.DELIVER and rule_of(cookie_of(cookie)) in (Rule.DELIVER, Rule.REMOTE):
            deliveries.append(raw)
    held = held_hosts(deliveries) if generations else None
    return Inventory(frozenset(generations), groups_in(groups), frozenset(meters_in(meters)), held)


def held_hosts(descriptions: Iterable[bytes]) -> Held:
    """The hosts that entries of the deliver table forward to.

    An entry for a whole IPv4 destination that outputs to a port delivers to a local host, whose Ethernet address it
    writes (or matches); one that outputs nowhere leads towards another leaf. A host with an agent has an entry
    that also writes the UDP destination port.
    """
    local: dict[str, HeldHost] = {}
    remote: set[str] = set()
    for raw in descriptions:
        entry: Any = parser.OFPFlowDesc.parser(bytearray(raw), 0)
        ipv4 = entry.match.get("ipv4_dst")
        if not isinstance(ipv4, str):
            continue
        actions = [action for item in entry.instructions for action in getattr(item, "actions", ())]
        written = {item.key: item.value for item in actions if isinstance(item, parser.OFPActionSetField)}
        outputs = [item.port for item in actions if isinstance(item, parser.OFPActionOutput)]
        ports = [port for port in outputs if port <= ofp.OFPP_MAX]
        mac = written.get("eth_dst") or entry.match.get("eth_dst")
        if not ports:
            remote.add(ipv4)
        elif isinstance(mac, str):
            agent = "udp_dst" in written or (ipv4 in local and local[ipv4].agent)
            local[ipv4] = HeldHost(ipv4, mac, ports[0], agent)
    return Held(tuple(local[ipv4] for ipv4 in sorted(local)), frozenset(remote - local.keys()))
