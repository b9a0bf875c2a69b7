"""What switches say of themselves, and what they are to send: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOCAL_PORT_FIRST = 0xFFFFFF00
"""Port numbers from here on are reserved by OpenFlow; OFPP_LOCAL among them carries the bridge's name."""
MOST_PORTS: Final = 4096
"""Of one switch; one that says more is refused."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch. ``up``: link and administrative state both up. A removed port is a port that is down."""

    number: int
    name: str
    mac: str
    up: bool
    speed_kbps: int = 0


@dataclass(frozen=True, slots=True)
class HeldHost:
    """A host that a switch delivers to: an entry of `Table.DELIVER` that outputs to ``port``.

    Matched ``ipv4_dst`` is ``ipv4``, written ``eth_dst`` is ``mac``. A host with an agent has two such entries.
    """

    ipv4: str
    mac: str
    port: int
    agent: bool = False
    """Whether one of its entries writes ``udp_dst``: an agent listens there."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a switch holds when it connects, read back from its deliver table."""

    hosts: tuple[HeldHost, ...] = ()
    remote: frozenset[str] = frozenset()
    """IPv4 addresses that it forwards towards other leaves: ``ipv4_dst`` of the deliver table's other entries."""


@dataclass(frozen=True, slots=True)
class MeterReading:
    """What a meter has counted since it was made."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PacketOut:
    """Send ``data`` (a whole Ethernet frame) out of ``port``; in_port is OFPP_CONTROLLER."""

    dpid: int
    port: int
    data: bytes
