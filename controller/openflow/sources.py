"""A host sends only from addresses that are no other host's: what a leaf takes from ports with hosts.

At such a port a packet from one of the port's own addresses goes on, and one from an address of another host, here or
at another leaf, is dropped. An address of which nothing is known yet passes: it is no host's, and a host's first packet
from a new address may come before its ARP. Agents take datagrams from the addresses of agents only, so what passes can
speak for no agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from controller.openflow.cookies import Rule
from controller.openflow.tables import ETH_IPV4, Table
from controller.openflow.view import LocalHost, RemoteHost
from controller.openflow.wanted import FlowRule, Match

NO_CHECK: Final = (FlowRule(Table.SOURCE, 0, Match(), goto=Table.DELIVER, cookie=Rule.SOURCE),)
"""For switches without hosts."""


def source_flows(local: Iterable[LocalHost], remote: Iterable[RemoteHost]) -> tuple[FlowRule, ...]:
    """Return the entries of a switch with these hosts at its ports and at other leaves."""
    local = tuple(local)
    if not local:
        return NO_CHECK
    ports = sorted({host.port for host in local})
    addresses = [*(host.ipv4 for host in local), *(host.ipv4 for host in remote)]
    return (
        *NO_CHECK,
        *(_own(host.port, host.ipv4) for host in local),
        *map(_ask, ports),
        FlowRule(Table.FOREIGN, 0, Match(), goto=Table.DELIVER, cookie=Rule.SOURCE),
        *map(_foreign, addresses),
    )


@lru_cache(maxsize=1 << 16)
def _own(port: int, ipv4: str) -> FlowRule:
    match = Match(in_port=port, eth_type=ETH_IPV4, ipv4_src=ipv4)
    return FlowRule(Table.SOURCE, 20, match, goto=Table.DELIVER, cookie=Rule.SOURCE)


@lru_cache(maxsize=1 << 13)
def _ask(port: int) -> FlowRule:
    return FlowRule(Table.SOURCE, 10, Match(in_port=port), goto=Table.FOREIGN, cookie=Rule.SOURCE)


@lru_cache(maxsize=1 << 16)
def _foreign(ipv4: str) -> FlowRule:
    return FlowRule(Table.FOREIGN, 10, Match(eth_type=ETH_IPV4, ipv4_src=ipv4), cookie=Rule.GUARD)
