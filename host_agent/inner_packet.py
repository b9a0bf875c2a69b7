"""What the agent has to know of an inner IP packet: whose it is, where it goes, what it carries."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import capstan_native

from capstan_client.errors import CapstanError

TCP: Final = 6
UDP: Final = 17
ICMP: Final = 1
FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_PORTS: Final = struct.Struct("!HH")


class PacketError(CapstanError, ValueError):
    """Not an IP packet that the agent can carry; ``reason`` is a counter's name."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class InnerPacket(NamedTuple):
    """An inner packet, looked at.

    flow: protocol (1 B), source, destination (4 or 16 B each), ports (4 B; zero where there are none): what
    makes a flow and direction. payload: bytes behind the transport header. transport: offset of that header.
    """

    version: int
    flow: bytes
    destination: bytes
    protocol: int
    transport: int
    payload: int
    control: bool
    push: bool
    opening: bool = False
    """SYN: a connection begins, even if an earlier one had the same addresses and ports."""


def look(packet: bytes) -> InnerPacket:
    """Return what the headers of an IPv4 or IPv6 packet say.

    SYN, FIN without payload, RST and pure ACKs are control, and so is ICMP. All fragments of a packet are one flow
    without ports, so that they keep together.

    Raises:
        PacketError: neither IPv4 nor IPv6, or lengths that do not fit the packet.
    """
    return capstan_native.look_at(packet, InnerPacket, PacketError)


def is_opening(packet: bytes) -> bool:
    """Return whether a connection begins with *packet*, which may be none that the agent can carry."""
    try:
        return look(packet).opening
    except PacketError:
        return False


def ports(flow: bytes) -> tuple[int, int]:
    """Return the source and destination port of a `flow` (0, 0 where the protocol has none)."""
    source, destination = _PORTS.unpack(flow[-4:])
    return source, destination


def addresses(flow: bytes) -> tuple[bytes, bytes]:
    """Return the source and destination address of a `flow`, 4 or 16 bytes each."""
    size = (len(flow) - 5) // 2
    return flow[1 : 1 + size], flow[1 + size : 1 + 2 * size]
