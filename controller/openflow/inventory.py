"""What a switch holds when it connects: read back from its multipart replies.

A controller that takes a switch over must know the generations of its flow entries, its groups and its meters
(to delete what is stale) and where the switch delivers (so that known hosts stay known).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.fabric.switch_data import LOCAL_PORT_FIRST, Held, HeldHost
from controller.openflow.codec import cookie_of, generation_of
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.reading import FlowDescription, flows_in, groups_in, meters_in
from controller.openflow.tables import Table


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a switch holds when it connects."""

    generations: frozenset[int]
    """Generations of its flow entries; 0 is that of entries which no controller of ours wrote."""
    groups: frozenset[int]
    meters: frozenset[int]
    held: Held | None
    """Hosts that it forwards to; None if it has no flow entry at all."""


def take_inventory(flows: bytes, groups: bytes, meters: bytes) -> Inventory:
    """Return what the bodies of the three replies say. Raises MalformedError."""
    generations = set()
    deliveries = []
    for flow in flows_in(flows):
        generations.add(generation_of(flow.cookie))
        if flow.table == Table.DELIVER and rule_of(cookie_of(flow.cookie)) in (Rule.DELIVER, Rule.REMOTE):
            deliveries.append(flow)
    held = held_hosts(deliveries) if generations else None
    return Inventory(frozenset(generations), groups_in(groups), frozenset(meters_in(meters)), held)


def held_hosts(descriptions: Iterable[FlowDescription]) -> Held:
    """Return the hosts that entries of the deliver table forward to.

    An entry for a whole IPv4 destination that outputs to a port delivers to a local host, whose Ethernet address it
    writes (or matches); one that outputs nowhere leads towards another leaf. A host with an agent has an entry
    that also writes the UDP destination port.
    """
    local: dict[str, HeldHost] = {}
    remote: set[str] = set()
    for flow in descriptions:
        ipv4 = flow.ipv4_dst
        if ipv4 is None:
            continue
        ports = [port for port in flow.outputs if port < LOCAL_PORT_FIRST]
        mac = flow.written_eth_dst or flow.eth_dst
        if not ports:
            remote.add(ipv4)
        elif mac is not None:
            agent = flow.writes_udp_dst or (ipv4 in local and local[ipv4].agent)
            local[ipv4] = HeldHost(ipv4, mac, ports[0], agent)
    return Held(tuple(local[ipv4] for ipv4 in sorted(local)), frozenset(remote - local.keys()))
