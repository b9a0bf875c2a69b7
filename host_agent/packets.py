"""Inner IP packets, read as far as a tunnel needs: addresses, protocol, ports, payload, fragments."""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple

TCP: Final = 6
UDP: Final = 17
ICMP: Final = 1
ICMPV6: Final = 58
IGMP: Final = 2
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION, _MOBILITY = 0, 43, 44, 51, 60, 135
_EXTENSIONS: Final = frozenset((_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION, _MOBILITY))
_MAX_EXTENSIONS: Final = 16

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10
CWR: Final = 0x80

_IPV4: Final = struct.Struct("!BBHHHBBH")
_NO_PORTS: Final = bytes(4)
_PROTOCOL: Final = tuple(bytes((number,)) for number in range(256))


class PacketError(ValueError):
    """An inner packet that is no IPv4 or IPv6 packet, or whose lengths do not fit together."""


class Inner(NamedTuple):
    """What was read of one inner packet. Offsets and lengths in bytes."""

    key: bytes
    """Protocol, source, destination, ports: 13 bytes (IPv4) or 37 (IPv6). Ports are 0 where there are none, and for
    all fragments of a fragmented packet, so that they keep together."""
    protocol: int
    l4: int
    """Offset of the layer-4 header; of a fragment: of its data."""
    payload: int
    """Bytes behind the TCP or UDP header; of other protocols and of fragments: behind the IP headers."""
    flags: int
    """TCP flags, 0 if not TCP."""
    fragment: bool


def parse(packet: bytes) -> Inner:
    """Raises PacketError; reads nothing beyond *packet*, whatever it holds."""
    size = len(packet)
    if size < 20:
        raise PacketError(f"{size} B are no IP packet")
    version = packet[0] >> 4
    if version == 4:
        first, _, total, _, fragment_word, _, protocol, _ = _IPV4.unpack_from(packet)
        l4 = (first & 0x0F) * 4
        if l4 < 20 or total != size or l4 > size:
            raise PacketError(f"IPv4 packet of {size} B claims {total} B and a header of {l4} B")
        addresses = packet[12:20]
        fragment = bool(fragment_word & 0x3FFF)
    elif version == 6:
        if size < 40 or int.from_bytes(packet[4:6], "big") + 40 != size:
            raise PacketError(f"IPv6 packet of {size} B claims another length")
        addresses = packet[8:40]
        protocol, l4, fragment = _behind_extensions(packet)
    else:
        raise PacketError(f"IP version {version} is not known")
    if fragment:
        return Inner(_PROTOCOL[protocol] + addresses + _NO_PORTS, protocol, l4, size - l4, 0, True)
    if protocol == TCP:
        if size < l4 + 20:
            raise PacketError("TCP header is cut off")
        header = (packet[l4 + 12] >> 4) * 4
        if header < 20 or l4 + header > size:
            raise PacketError(f"TCP header of {header} B does not fit")
        return Inner(
            _PROTOCOL[TCP] + addresses + packet[l4 : l4 + 4],
            TCP,
            l4,
            size - l4 - header,
            packet[l4 + 13],
            False,
        )
    if protocol == UDP:
        if size < l4 + 8:
            raise PacketError("UDP header is cut off")
        return Inner(
            _PROTOCOL[UDP] + addresses + packet[l4 : l4 + 4], UDP, l4, size - l4 - 8, 0, False
        )
    return Inner(_PROTOCOL[protocol] + addresses + _NO_PORTS, protocol, l4, size - l4, 0, False)


def _behind_extensions(packet: bytes) -> tuple[int, int, bool]:
    """Protocol, its offset, and whether this is a fragment, of an IPv6 packet."""
    protocol, offset = packet[6], 40
    for _ in range(_MAX_EXTENSIONS):
        if protocol not in _EXTENSIONS:
            return protocol, offset, False
        if len(packet) < offset + 8:
            raise PacketError("IPv6 extension header is cut off")
        following = packet[offset]
        if protocol == _FRAGMENT:
            # an "atomic" fragment (RFC 6946) is a whole packet
            whole = not int.from_bytes(packet[offset + 2 : offset + 4], "big") & 0xFFF9
            offset += 8
            if not whole:
                return following, offset, True
        elif protocol == _AUTHENTICATION:
            offset += (packet[offset + 1] + 2) * 4
        else:
            offset += (packet[offset + 1] + 1) * 8
        if offset > len(packet):
            raise PacketError("IPv6 extension header is cut off")
        protocol = following
    raise PacketError(f"more than {_MAX_EXTENSIONS} IPv6 extension headers")


def destination(packet: bytes) -> bytes:
    """Destination address (4 or 16 bytes) of a packet that `parse` accepts."""
    return packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]


def reverse_key(key: bytes) -> bytes:
    """`Inner.key` of the packets of the same connection in the other direction."""
    half = (len(key) - 5) // 2
    return key[:1] + key[1 + half : 1 + 2 * half] + key[1 : 1 + half] + key[-2:] + key[-4:-2]


def describe(key: bytes) -> tuple[int, str, int, str, int]:
    """Protocol, source address and port, destination address and port of an `Inner.key`."""
    half = (len(key) - 5) // 2
    return (
        key[0],
        str(ipaddress.ip_address(key[1 : 1 + half])),
        int.from_bytes(key[-4:-2], "big"),
        str(ipaddress.ip_address(key[1 + half : 1 + 2 * half])),
        int.from_bytes(key[-2:], "big"),
    )


def is_group_address(address: bytes, broadcasts: frozenset[bytes]) -> bool:
    """Whether *address* (4 or 16 bytes) is multicast, or broadcast of any subnet in *broadcasts*."""
    if len(address) == 16:
        return address[0] == 0xFF
    return 224 <= address[0] < 240 or address == b"\xff\xff\xff\xff" or address in broadcasts
