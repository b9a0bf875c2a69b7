"""What every switch sends to the controller from the first moment on: LLDP and ARP, metered by port.

A host may send as much as its port carries, and each copy to the controller costs a thousand times what forwarding
costs. Each port has a meter of its own, so that what one host sends too much is dropped at its own port. Ports that
the controller has not learnt of yet share a meter.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from controller.openflow.arp_probes import TO_CONTROLLER
from controller.openflow.cookies import Rule
from controller.openflow.tables import ETH_ARP, ETH_LLDP, METERED_PORTS, PORT_METERS, PUNT_METER, Table
from controller.openflow.wanted import FlowRule, Match, Meter, ThroughMeter, ToController

LLDP_BYTES: Final = 256
PORT_PPS: Final = 100
"""LLDP and ARP of one port: a link has 10 frames a second at most, a host asks for a few addresses."""
SHARED_PPS: Final = 1000
"""Those of all ports together that have no meter of their own yet."""


def punt_flows(ports: tuple[int, ...] = ()) -> tuple[FlowRule, ...]:
    """Return the entries that send LLDP and ARP up; *ports*: those with a meter of their own."""
    own = (port for port in ports if port <= METERED_PORTS)
    return (*TO_CONTROLLER, *_flows(None), *(flow for port in own for flow in _flows(port)))


def punt_meters(ports: tuple[int, ...] = ()) -> dict[int, Meter]:
    """Return the meters that `punt_flows` needs, by number."""
    own = (_meter(port) for port in ports if port <= METERED_PORTS)
    return {meter.id: meter for meter in (Meter(PUNT_METER, SHARED_PPS), *own)}


@cache
def _meter(port: int) -> Meter:
    return Meter(PORT_METERS + port, PORT_PPS)


@lru_cache(maxsize=1 << 13)
def _flows(port: int | None) -> tuple[FlowRule, ...]:
    priority, meter = (1000, PUNT_METER) if port is None else (1001, PORT_METERS + port)
    lldp, arp = (Match(in_port=port, eth_type=eth_type) for eth_type in (ETH_LLDP, ETH_ARP))
    metered = ThroughMeter(meter)
    return (
        FlowRule(Table.CLASSIFY, priority, lldp, (metered, ToController(LLDP_BYTES)), cookie=Rule.LLDP),
        FlowRule(Table.CLASSIFY, priority, arp, (metered,), goto=Table.ARP, cookie=Rule.ARP),
    )
