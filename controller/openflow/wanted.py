"""What a switch should hold, as plain data: the vocabulary between the pipeline builder and the switch shell.

The builder computes a whole `SwitchState` from fabric, scheme and modes; `difference` says what to change;
the shell turns that into OpenFlow 1.5 messages. Nothing here knows os-ken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Masked = tuple[int, int]
"""(value, mask)"""
FieldName = Literal[
    "eth_src",
    "eth_dst",
    "ipv4_src",
    "ipv4_dst",
    "ip_dscp",
    "udp_src",
    "udp_dst",
    "metadata",
    "arp_op",
    "arp_spa",
    "arp_tpa",
    "arp_sha",
    "arp_tha",
]


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Fields that a packet must have; None matches anything. Addresses as text, numbers as int."""

    in_port: int | None = None
    eth_type: int | None = None
    eth_src: str | None = None
    eth_dst: str | None = None
    ip_proto: int | None = None
    ip_dscp: int | None = None
    ipv4_src: str | None = None
    ipv4_dst: str | None = None
    udp_src: Masked | None = None
    udp_dst: Masked | None = None
    arp_op: int | None = None
    arp_tpa: str | None = None
    metadata: Masked | None = None


@dataclass(frozen=True, slots=True, order=True)
class Output:
    """Send out of ``port``."""

    port: int


@dataclass(frozen=True, slots=True, order=True)
class ToController:
    """Send the first ``max_bytes`` to the controller as a packet-in."""

    max_bytes: int = 128


@dataclass(frozen=True, slots=True, order=True)
class ToGroup:
    """Hand the packet to a group."""

    group: int


@dataclass(frozen=True, slots=True, order=True)
class SetField:
    """Write a header field; addresses are text."""

    field: FieldName
    value: int | str


@dataclass(frozen=True, slots=True, order=True)
class CopyField:
    """Write what stands in ``source`` to ``target``, a field of the same width."""

    source: FieldName
    target: FieldName


@dataclass(frozen=True, slots=True, order=True)
class ThroughMeter:
    """Count this packet by a meter (exact at once, unlike flow counters)."""

    meter: int


@dataclass(frozen=True, slots=True, order=True)
class ToQueue:
    """Use this queue of whichever port the packet leaves by. Open vSwitch's userspace datapath does not mind it."""

    queue: int


Action = Output | ToController | ToGroup | SetField | CopyField | ThroughMeter | ToQueue


@dataclass(frozen=True, slots=True)
class FlowRule:
    """One flow entry. Identified within a switch by (table, priority, match)."""

    table: int
    priority: int
    match: Match
    actions: tuple[Action, ...] = ()
    goto: int | None = None
    metadata: Masked | None = None
    """Written before ``goto``."""
    cookie: int = 0

    @property
    def key(self) -> tuple[int, int, Match]:
        """Return what identifies an entry in a switch: table, priority and match."""
        return (self.table, self.priority, self.match)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One way out of a group."""

    actions: tuple[Action, ...]
    watch_port: int | None = None
    """Port whose liveness decides whether the bucket may be chosen; every bucket needs one, or a ``watch_group``."""
    weight: int = 1
    watch_group: int | None = None
    """Group whose liveness decides: it is alive while one of its buckets is."""


@dataclass(frozen=True, slots=True)
class Group:
    """``dp_hash`` and ``hash`` select a live bucket by the whole 5-tuple or ``fields``, each hashed with ``basis``;
    ``failover`` takes the first live one."""

    id: int
    method: Literal["dp_hash", "hash", "failover"]
    basis: int
    buckets: tuple[Bucket, ...]
    fields: tuple[Literal["ipv4_src", "ipv4_dst", "udp_dst"], ...] = ()


@dataclass(frozen=True, slots=True)
class Meter:
    """A meter that drops what is above ``most_pps``; None: it only counts (its band's rate is far above any port's)."""

    id: int
    most_pps: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchState:
    """All that a switch should hold, by what identifies it there."""

    flows: Mapping[tuple[int, int, Match], FlowRule] = field(default_factory=dict)
    groups: Mapping[int, Group] = field(default_factory=dict)
    meters: Mapping[int, Meter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes in the order in which they must be made (deletions last, flows before their groups)."""

    add_meters: tuple[Meter, ...] = ()
    add_groups: tuple[Group, ...] = ()
    """New ones, and changed ones as whole replacements."""
    add_flows: tuple[FlowRule, ...] = ()
    """New ones, and changed ones (same key, other actions)."""
    delete_flows: tuple[FlowRule, ...] = ()
    delete_groups: tuple[int, ...] = ()
    delete_meters: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to change."""
        return self == Difference()


def difference(have: SwitchState, want: SwitchState) -> Difference:
    """Return what turns *have* into *want*."""
    return Difference(
        add_meters=tuple(meter for key, meter in want.meters.items() if have.meters.get(key) != meter),
        add_groups=tuple(group for key, group in want.groups.items() if have.groups.get(key) != group),
        add_flows=tuple(flow for key, flow in want.flows.items() if have.flows.get(key) != flow),
        delete_flows=tuple(flow for key, flow in have.flows.items() if key not in want.flows),
        delete_groups=tuple(key for key in have.groups if key not in want.groups),
        delete_meters=tuple(key for key in have.meters if key not in want.meters),
    )
