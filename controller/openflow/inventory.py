"""What a switch holds when it connects: read back from its multipart replies.

A controller that takes a switch over must know the generations of its flow entries, its groups and its meters
(to delete what is stale) and where the switch delivers (so that known hosts stay known).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controller.fabric.switch_data import LOCAL_PORT_FIRST, Held, HeldHost, Port
from controller.openflow.codec import cookie_of, generation_of
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.lengths import EntryForm, MalformedError, whole_entries
from controller.openflow.reading import (
    FLOW_FORM,
    GROUP_FORM,
    METER_FORM,
    PORT_FORM,
    FlowDescription,
    flows_in,
    groups_in,
    meters_in,
    ports_in,
)
from controller.openflow.tables import Table

MOST_GENERATIONS: Final = 256
"""Of a switch's flow entries. Ours are few, but others may set cookies as they like; each costs a message that
deletes its entries, and a free one is needed for what comes instead."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a switch holds when it connects."""

    generations: frozenset[int]
    """Generations of its flow entries; 0 is that of entries which no controller of ours wrote."""
    groups: frozenset[int]
    meters: frozenset[int]
    held: Held | None
    """Hosts that it forwards to; None if it has no flow entry at all."""


class InventoryReader:
    """Reads the replies of a switch that connects, part by part: what it says may be long, and others wait meanwhile.

    An entry may lie in two parts. Raises MalformedError.
    """

    def __init__(self) -> None:
        self.knows_ports = False
        """Whether some of the ports have come."""
        self._rests: dict[EntryForm, bytes] = {}
        self._counts: Counter[EntryForm] = Counter()
        self._generations: set[int] = set()
        self._deliveries: list[FlowDescription] = []
        self._groups: set[int] = set()
        self._meters: set[int] = set()

    def ports(self, body: bytes, last: bool) -> list[Port]:
        """Return the ports in the next part of an OFPMP_PORT_DESC reply."""
        self.knows_ports = True
        return ports_in(self._whole(PORT_FORM, body, last))

    def flows(self, body: bytes, last: bool) -> None:
        """Take the next part of an OFPMP_FLOW_DESC reply."""
        for flow in flows_in(self._whole(FLOW_FORM, body, last)):
            self._generations.add(generation_of(flow.cookie))
            rule = rule_of(cookie_of(flow.cookie))
            if flow.table == Table.DELIVER and rule in (Rule.DELIVER, Rule.REMOTE):
                self._deliveries.append(flow)
        if len(self._generations) > MOST_GENERATIONS:
            raise MalformedError(f"flow entries of more than {MOST_GENERATIONS} generations")

    def groups(self, body: bytes, last: bool) -> None:
        """Take the next part of an OFPMP_GROUP_STATS reply."""
        self._groups |= groups_in(self._whole(GROUP_FORM, body, last))

    def meters(self, body: bytes, last: bool) -> None:
        """Take the next part of an OFPMP_METER_STATS reply."""
        self._meters |= meters_in(self._whole(METER_FORM, body, last)).keys()

    def inventory(self) -> Inventory:
        """Return what all of them say."""
        held = held_hosts(self._deliveries) if self._generations else None
        return Inventory(frozenset(self._generations), frozenset(self._groups), frozenset(self._meters), held)

    def _whole(self, form: EntryForm, body: bytes, last: bool) -> bytes:
        """Return the entries that are whole, of those that are not read yet."""
        data = self._rests.pop(form, b"") + body
        count, end = whole_entries(form, data)
        self._counts[form] += count
        if self._counts[form] > form.most:
            raise MalformedError(f"more than {form.most} entries: {form.name}")
        if last:
            return data
        self._rests[form] = data[end:]
        return data[:end]


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
