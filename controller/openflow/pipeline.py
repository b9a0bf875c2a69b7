"""From the fabric, a scheme and a mode to what one switch should hold.

Tables and metadata: `controller.openflow.tables`. What each switch does with an IPv4 packet:

- CLASSIFY: LLDP goes to the controller (`controller.openflow.punts`), ARP to a table of its own
  (`controller.openflow.arp_probes`). A UDP datagram to an agents' port (BASE_PORT + flow key) with an agents' DSCP is
  an agent's datagram of that class. Everything else is plain: ECMP by its own 5-tuple, nothing rewritten. IPv6,
  broadcast and multicast of the underlay, and any other Ethernet type are dropped.
- SOURCE, FOREIGN: what a port with hosts sends from another host's address is dropped (`controller.openflow.sources`).
- DELIVER: to a host of this switch. An agent's datagram gets BASE_PORT back. To a host of which no agent is known,
  agents' ports mean nothing: its packets are plain, whatever their port and DSCP.
- CLASS: which kind of group serves the class here, by scheme and mode. The short class of a leaf passes a
  meter and, while the leaf is OFF, is copied to the controller. A mode change is a change of two entries.
- CHOOSE: see `controller.openflow.choosing`.

The mode of a switch above the leaves is ON while any leaf below it is: long flows of those leaves keep to one path
all the way up.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final

from controller.openflow.cookies import Rule
from controller.openflow.port_ranges import prefixes
from controller.openflow.tables import (
    AGENT,
    CLASS_MASK,
    CLASS_SHIFT,
    ETH_IPV4,
    HASH,
    LABEL,
    LEAF_MASK,
    LONG_METER,
    SHORT_METER,
    UDP,
    Table,
    class_bits,
)
from controller.openflow.view import LocalHost, RemoteHost, SwitchView
from controller.openflow.wanted import (
    Action,
    FlowRule,
    Match,
    Meter,
    Output,
    SetField,
    ThroughMeter,
    ToController,
    ToQueue,
)
from controller.schemes.scheme import GroupKind, Mode, Scheme
from protocol.underlay import (
    BASE_PORT,
    EV_FIRST,
    FLOW_KEYS,
    LABEL_FIRST,
    LABEL_LAST,
    PRIORITIES,
    TrafficClass,
    dscp,
    queue_of_dscp,
)

FIRST_SHORT_BYTES: Final = 64
"""How much of a packet the controller gets."""

AGENT_PORTS: Final = prefixes(BASE_PORT, BASE_PORT + FLOW_KEYS - 1)
FORGED_PORTS: Final = (*prefixes(0, LABEL_FIRST - 1), *prefixes(LABEL_LAST + 1, EV_FIRST - 1))

_IDENTITY: Final = LEAF_MASK | CLASS_MASK | AGENT
_KIND_BITS: Final[dict[GroupKind, int]] = {"spray": 0, "hash": HASH, "label": LABEL}


def by_key(flows: Iterable[FlowRule]) -> dict[tuple[int, int, Match], FlowRule]:
    """Return *flows* by table, priority and match: of two with the same, a switch keeps the later one."""
    return {flow.key: flow for flow in flows}


def meters(view: SwitchView, scheme: Scheme | None) -> dict[int, Meter]:
    """Return the meters that count classes at a leaf, by number; empty where the scheme reads none."""
    if not view.leaf or scheme is None:
        return {}
    numbers = (SHORT_METER, LONG_METER) if scheme.partition else (SHORT_METER,) if scheme.mode else ()
    return {number: Meter(number) for number in numbers}


def queues_of(scheme: Scheme | None) -> int:
    """Return how many queues each port has."""
    return 1 if scheme is None or scheme.queues is None else scheme.queues.number


@cache
def classify_flows(queues: int = 1) -> tuple[FlowRule, ...]:
    """Return the entries that put IPv4 packets into classes, and into *queues* queues: the same on every switch."""

    def to_queue(value: int) -> tuple[Action, ...]:
        return (ToQueue(queue_of_dscp(value, queues)),) if queues > 1 else ()

    agents = tuple(
        FlowRule(
            Table.CLASSIFY,
            100,
            Match(eth_type=ETH_IPV4, ip_proto=UDP, ip_dscp=dscp(kind, priority), udp_dst=ports),
            to_queue(dscp(kind, priority)),
            goto=Table.SOURCE,
            metadata=(class_bits(kind), CLASS_MASK | AGENT),
            cookie=Rule.CLASSIFY,
        )
        for kind in (TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL)
        for priority in range(PRIORITIES)
        for ports in AGENT_PORTS
    )
    last = to_queue(dscp(TrafficClass.NONE))
    plain = FlowRule(
        Table.CLASSIFY, 10, Match(eth_type=ETH_IPV4), last, goto=Table.SOURCE, cookie=Rule.CLASSIFY
    )
    return (*agents, plain)


def deliver_flows(local: Iterable[LocalHost], remote: Iterable[RemoteHost]) -> tuple[FlowRule, ...]:
    """Return the flows that deliver to own hosts, and say whose host every other one is."""
    flows: list[FlowRule] = []
    for host in local:
        flows += _local_flows(host)
    flows += map(_remote_flow, remote)
    return tuple(flows)


@lru_cache(maxsize=1 << 16)
def _local_flows(host: LocalHost) -> tuple[FlowRule, ...]:
    out: tuple[Action, ...] = (SetField("eth_dst", host.mac), Output(host.port))
    plain = FlowRule(
        Table.DELIVER, 10, Match(eth_type=ETH_IPV4, ipv4_dst=host.ipv4), out, cookie=Rule.DELIVER
    )
    if not host.agent:
        return (plain,)
    agents = FlowRule(
        Table.DELIVER,
        20,
        Match(eth_type=ETH_IPV4, ip_proto=UDP, ipv4_dst=host.ipv4, metadata=(AGENT, AGENT)),
        (SetField("udp_dst", BASE_PORT), *out),
        cookie=Rule.DELIVER,
    )
    return (agents, plain)


@lru_cache(maxsize=1 << 16)
def _remote_flow(host: RemoteHost) -> FlowRule:
    return FlowRule(
        Table.DELIVER,
        10,
        Match(eth_type=ETH_IPV4, ipv4_dst=host.ipv4),
        goto=Table.CLASS,
        # For a host without an agent, what looked like an agent's datagram becomes plain again.
        metadata=(host.leaf, LEAF_MASK if host.agent else _IDENTITY),
        cookie=Rule.REMOTE,
    )


def class_flows(view: SwitchView, scheme: Scheme | None, mode: Mode) -> tuple[FlowRule, ...]:
    """Return the entries that say which kind of group serves each class: all that depends on scheme and mode."""
    if view.closed:
        return (FlowRule(Table.CLASS, 0, Match(), cookie=Rule.GUARD),)
    flows = [FlowRule(Table.CLASS, 0, Match(), goto=Table.CHOOSE, cookie=Rule.CLASS)]
    flows += _guards(view)
    if view.leaf or view.chooses:
        flows += [
            _class_flow(TrafficClass.SHORT, view, scheme, mode),
            _class_flow(TrafficClass.LONG, view, scheme, mode),
            _class_flow(TrafficClass.CONTROL, view, scheme, mode),
        ]
    return tuple(flows)


def _class_flow(kind: TrafficClass, view: SwitchView, scheme: Scheme | None, mode: Mode) -> FlowRule:
    actions: tuple[Action, ...] = ()
    rule = Rule.CLASS
    number = {TrafficClass.SHORT: SHORT_METER, TrafficClass.LONG: LONG_METER}.get(kind)
    if number in meters(view, scheme):
        actions = (ThroughMeter(number),)
        if mode == "off" and scheme is not None and scheme.mode is not None:
            actions = (*actions, ToController(FIRST_SHORT_BYTES))
            rule = Rule.FIRST_SHORT
    return FlowRule(
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


def _guards(view: SwitchView) -> Iterable[FlowRule]:
    """Return what a leaf does not pass on: what no host of its sent, and agents' datagrams with a forged stamp."""
    for port in view.guarded:
        yield FlowRule(Table.CLASS, 100, Match(in_port=port), cookie=Rule.GUARD)
    for port in sorted({host.port for host in view.local}):
        for source in FORGED_PORTS:
            yield FlowRule(
                Table.CLASS,
                50,
                Match(in_port=port, eth_type=ETH_IPV4, ip_proto=UDP, udp_src=source, metadata=(AGENT, AGENT)),
                cookie=Rule.GUARD,
            )
