"""Numbers that flow entries share: protocols, tables, metadata bits, meters."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from protocol.underlay import TrafficClass

ETH_IPV4: Final = 0x0800
ETH_ARP: Final = 0x0806
ETH_LLDP: Final = 0x88CC
UDP: Final = 17
ARP_REQUEST: Final = 1
ARP_REPLY: Final = 2
IN_PORT: Final = 0xFFFFFFF8
"""OFPP_IN_PORT: where the packet came in."""


class Table(IntEnum):
    """The tables of a switch, in the order in which packets pass them."""

    CLASSIFY = 0
    """LLDP to the controller; ARP; agents' traffic by port and DSCP; other IPv4; nothing else."""
    SOURCE = 1
    """Ports with hosts: packets from their own addresses go on to DELIVER, others to FOREIGN."""
    FOREIGN = 2
    """What is from another host's address is dropped."""
    DELIVER = 3
    """Hosts of this switch: out; hosts of other leaves: which leaf; unknown ones: drop."""
    CLASS = 4
    """Which kind of group serves a class now. All that a mode or a scheme changes is here."""
    CHOOSE = 5
    """Towards a leaf by a kind of group; the path stamp."""
    ARP = 6
    """Unicast requests are answered; all ARP goes to the controller."""


LEAF_MASK: Final = 0x0000_FFFF
"""Metadata bits 0-15: number of the destination's leaf."""
CLASS_SHIFT: Final = 16
CLASS_MASK: Final = 0x0003_0000
"""Metadata bits 16-17: `TrafficClass`."""
AGENT: Final = 0x0004_0000
"""Metadata bit 18: a datagram of an agent."""
HASH: Final = 0x0008_0000
"""Metadata bit 19: by the hash group (else the spray group)."""
LABEL: Final = 0x0010_0000
"""Metadata bit 20: by the label if it is that of a live path (else by the spray group; HASH is not set then)."""

SHORT_METER: Final = 1
"""Meter that counts the short class at a leaf."""
LONG_METER: Final = 2
"""Meter that counts the long class at a leaf, under a scheme that splits the paths."""
PUNT_METER: Final = 3
"""Meter of what ports without a meter of their own send to the controller (LLDP, ARP)."""
PORT_METERS: Final = 0x10000
"""Meter of what port N sends to the controller: this number and N."""
METERED_PORTS: Final = 0xFFFF
"""Ports up to here have a meter of their own; Open vSwitch gives no others."""


def class_bits(traffic_class: TrafficClass) -> int:
    """Return the metadata that says *traffic_class*; AGENT is set for all but NONE."""
    return traffic_class << CLASS_SHIFT | (AGENT if traffic_class else 0)
