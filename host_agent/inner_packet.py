"""What the agent has to know of an inner IP packet: whose it is, where it goes, what it carries."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

TCP: Final = 6
UDP: Final = 17
ICMP: Final = 1
ICMPV6: Final = 58
FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_IPV6_EXTENSIONS: Final = frozenset({0, 43, 60, 135})
_PORTS: Final = struct.Struct("!HH")
_TCP_KEY: Final = bytes((TCP,))
_UDP_KEY: Final = bytes((UDP,))
_NO_PORTS: Final = bytes(4)
_CONTROL: Final = (ICMP, ICMPV6)
_V4: Final = struct.Struct("!BBHHHBBH4s4s")


class PacketError(ValueError):
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

    @property
    def reverse(self) -> bytes:
        """The `flow` of the other direction."""
        return reverse_flow(self.flow)


def reverse_flow(flow: bytes) -> bytes:
    """The other direction's flow."""
    size = (len(flow) - 5) // 2
    source, destination = flow[1 : 1 + size], flow[1 + size : 1 + 2 * size]
    return flow[:1] + destination + source + flow[-2:] + flow[-4:-2]


def look(packet: bytes) -> InnerPacket:
    """Read the headers of an IPv4 or IPv6 packet.

    SYN, FIN without payload, RST and pure ACKs are control, and so is ICMP. All fragments of a packet are one flow
    without ports, so that they keep together.

    Raises:
        PacketError: neither IPv4 nor IPv6, or lengths that do not fit the packet.
    """
    size = len(packet)
    if (
        size >= 28
        and packet[0] == 0x45
        and (packet[2] << 8 | packet[3]) == size
        and not (packet[6] & 0x3F or packet[7])
    ):
        # nearly all packets: IPv4 without options, not fragmented
        protocol = packet[9]
        if protocol == TCP:
            if size >= 40 and 20 <= (header := (packet[32] >> 4) * 4) <= size - 20:
                payload, flags = size - 20 - header, packet[33]
                control = payload == 0 or flags & (SYN | RST) != 0
                push, opening = flags & (PSH | FIN) != 0, flags & SYN != 0
                key = _TCP_KEY + packet[12:24]
                return InnerPacket(4, key, packet[16:20], TCP, 20, payload, control, push, opening)
        elif protocol == UDP:
            return InnerPacket(4, _UDP_KEY + packet[12:24], packet[16:20], UDP, 20, size - 28, False, True)
        else:
            key = packet[9:10] + packet[12:20] + _NO_PORTS
            return InnerPacket(4, key, packet[16:20], protocol, 20, size - 20, protocol in _CONTROL, True)
    if len(packet) < 20:
        raise PacketError("inner_truncated", f"{len(packet)} B are no IP packet")
    first = packet[0]
    if first >> 4 == 4:
        _, _, total, _, fragment, _, protocol, _, source, destination = _V4.unpack_from(packet)
        transport = (first & 0x0F) * 4
        if transport < 20 or transport > total or total != len(packet):
            raise PacketError("inner_length", f"IPv4 packet of {len(packet)} B says {total} B")
        fragmented = bool(fragment & 0x3FFF)
        version, end = 4, total
    elif first >> 4 == 6:
        if len(packet) < 40:
            raise PacketError("inner_truncated", f"{len(packet)} B are no IPv6 packet")
        end = 40 + int.from_bytes(packet[4:6], "big")
        if end != len(packet):
            raise PacketError("inner_length", f"IPv6 packet of {len(packet)} B says {end} B")
        source, destination = packet[8:24], packet[24:40]
        protocol, transport, fragmented = _transport_of_ipv6(packet, end)
        version = 6
    else:
        raise PacketError("inner_not_ip", f"version {first >> 4} is neither IPv4 nor IPv6")
    return _transport(packet, version, protocol, source, destination, transport, end, fragmented)


def _transport(
    packet: bytes,
    version: int,
    protocol: int,
    source: bytes,
    destination: bytes,
    transport: int,
    end: int,
    fragmented: bool,
) -> InnerPacket:
    kind = bytes((protocol,))
    room = end - transport
    if protocol in (TCP, UDP) and not fragmented and room < (20 if protocol == TCP else 8):
        raise PacketError("inner_truncated", f"{room} B are no header of protocol {protocol}")
    if fragmented or protocol not in (TCP, UDP):
        control = protocol in (ICMP, ICMPV6)
        flow = b"".join((kind, source, destination, b"\0\0\0\0"))
        return InnerPacket(version, flow, destination, protocol, transport, room, control, True)
    flow = b"".join((kind, source, destination, packet[transport : transport + 4]))
    if protocol == UDP:
        return InnerPacket(version, flow, destination, protocol, transport, room - 8, False, True)
    header = (packet[transport + 12] >> 4) * 4
    if not 20 <= header <= room:
        raise PacketError("inner_length", f"TCP header of {header} B in {room} B")
    payload = room - header
    flags = packet[transport + 13]
    control = payload == 0 or bool(flags & (SYN | RST))
    push, opening = bool(flags & (PSH | FIN)), bool(flags & SYN)
    return InnerPacket(version, flow, destination, TCP, transport, payload, control, push, opening)


def _transport_of_ipv6(packet: bytes, end: int) -> tuple[int, int, bool]:
    """Upper protocol, its offset, and whether this is a fragment without it."""
    protocol, at, fragmented = packet[6], 40, False
    while protocol in _IPV6_EXTENSIONS or protocol == 44:
        if at + 8 > end:
            return protocol, end, True
        following = packet[at]
        if protocol == 44:
            fragmented = fragmented or bool(int.from_bytes(packet[at + 2 : at + 4], "big") & 0xFFF9)
            at += 8
        else:
            at += 8 + packet[at + 1] * 8
        protocol = following
    return protocol, min(at, end), fragmented


def ports(flow: bytes) -> tuple[int, int]:
    """Source and destination port of a `flow` (0, 0 where the protocol has none)."""
    source, destination = _PORTS.unpack(flow[-4:])
    return source, destination


def addresses(flow: bytes) -> tuple[bytes, bytes]:
    """Source and destination address of a `flow`, 4 or 16 bytes each."""
    size = (len(flow) - 5) // 2
    return flow[1 : 1 + size], flow[1 + size : 1 + 2 * size]


def is_group_address(address: bytes) -> bool:
    """Whether an overlay address is multicast or the limited broadcast."""
    if len(address) == 16:
        return address[0] == 0xFF
    return 224 <= address[0] <= 239 or address == b"\xff\xff\xff\xff"
