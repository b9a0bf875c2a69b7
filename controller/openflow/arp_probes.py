"""Leaves answer the unicast ARP requests by which hosts confirm what they know (RFC 1122, section 2.3.2.1).

A host asks again, by unicast, some 20 to 50 s after the last answer, and stops sending if nothing answers for 3 s: by
the controller alone, that would end all traffic of a fabric whose controller is away for longer. What a host asks by
broadcast, because it knows nothing yet, goes to the controller, which answers when every switch can forward to the host
(docs/traps.md). The controller gets a copy of what a leaf has answered, to learn from. What the controller itself asks,
to find a host, no switch answers: it may ask through a link that it has not found yet, and would learn the wrong place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from controller.fabric.lldp import CONTROLLER_MAC
from controller.openflow.cookies import Rule
from controller.openflow.tables import ARP_REPLY, ARP_REQUEST, ETH_ARP, IN_PORT, Table
from controller.openflow.view import LocalHost, RemoteHost, SwitchView
from controller.openflow.wanted import CopyField, FlowRule, Match, Output, SetField, ToController

ARP_BYTES: Final = 64
"""How much of a frame the controller gets: all of an ARP packet."""
TO_CONTROLLER: Final = (
    FlowRule(Table.ARP, 0, Match(), (ToController(ARP_BYTES),), cookie=Rule.ARP),
    FlowRule(
        Table.ARP,
        20,
        Match(eth_type=ETH_ARP, eth_src=CONTROLLER_MAC.hex(":")),
        (ToController(ARP_BYTES),),
        cookie=Rule.ARP,
    ),
)
"""At every switch: what no entry answers, and what the controller asks, which none may answer."""


def arp_probe_flows(view: SwitchView) -> tuple[FlowRule, ...]:
    """Return the entries that answer for all hosts with a place; none at a switch that is no leaf."""
    return tuple(map(_answer, (*view.local, *view.remote))) if view.leaf else ()


@lru_cache(maxsize=1 << 16)
def _answer(host: LocalHost | RemoteHost) -> FlowRule:
    return FlowRule(
        Table.ARP,
        10,
        Match(eth_type=ETH_ARP, eth_dst=host.mac, arp_op=ARP_REQUEST, arp_tpa=host.ipv4),
        (
            ToController(ARP_BYTES),
            CopyField("eth_src", "eth_dst"),
            SetField("eth_src", host.mac),
            SetField("arp_op", ARP_REPLY),
            CopyField("arp_sha", "arp_tha"),
            SetField("arp_sha", host.mac),
            CopyField("arp_spa", "arp_tpa"),
            SetField("arp_spa", host.ipv4),
            Output(IN_PORT),
        ),
        cookie=Rule.ARP_ANSWERED,
    )
