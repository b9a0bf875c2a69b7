"""ICMP errors that a tunnel's entry gives back to the sender: RFC 792, 1191, 1812, 4443, 8201.

They are written to the TUN device and come from the address that the packet was sent to: one of our own as source
would be dropped by the kernel as martian.
"""

from __future__ import annotations

import struct
from typing import Final

from host_agent.checksums import checksum, icmpv6_checksum
from host_agent.packets import ICMP, ICMPV6, is_group_address

_IPV4: Final = struct.Struct("!BBHHHBBH4s4s")
_IPV6: Final = struct.Struct("!IHBB16s16s")
_TTL: Final = 64
_MOST_IPV4: Final = 576
"""RFC 1812, 4.3.2.3: an error should not be longer than this."""
_MOST_IPV6: Final = 1280


def too_large(packet: bytes, mtu: int) -> bytes | None:
    """"Fragmentation needed" or "packet too big" with *mtu* in bytes; None if no error may be sent about it."""
    if packet[0] >> 4 == 4:
        return _icmp(packet, struct.pack("!BBHHH", 3, 4, 0, 0, mtu))
    return _icmpv6(packet, struct.pack("!BBHI", 2, 0, 0, mtu))


def unreachable(packet: bytes) -> bytes | None:
    """"Host unreachable" or "address unreachable"; None if no error may be sent about it."""
    if packet[0] >> 4 == 4:
        return _icmp(packet, struct.pack("!BBHI", 3, 1, 0, 0))
    return _icmpv6(packet, struct.pack("!BBHI", 1, 3, 0, 0))


def _icmp(packet: bytes, head: bytes) -> bytes | None:
    l4 = (packet[0] & 0x0F) * 4
    source, destination = packet[12:16], packet[16:20]
    later_fragment = int.from_bytes(packet[6:8], "big") & 0x1FFF
    if later_fragment or _useless_source(source) or is_group_address(destination, frozenset()):
        return None
    if packet[9] == ICMP and (len(packet) <= l4 or packet[l4] not in (0, 8, 13, 14, 15, 16, 17, 18)):
        return None
    body = head + packet[: _MOST_IPV4 - 20 - len(head)]
    body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    fields = (0x45, 0xC0, 20 + len(body), 0, 0, _TTL, ICMP)
    header = _IPV4.pack(*fields, 0, destination, source)
    return _IPV4.pack(*fields, checksum(header), destination, source) + body


def _icmpv6(packet: bytes, head: bytes) -> bytes | None:
    source, destination = packet[8:24], packet[24:40]
    if source[0] == 0xFF or not any(source) or (destination[0] == 0xFF and head[0] != 2):
        return None
    if packet[6] == ICMPV6 and (len(packet) <= 40 or packet[40] < 128):
        return None
    body = head + packet[: _MOST_IPV6 - 40 - len(head)]
    body = body[:2] + icmpv6_checksum(destination + source, body).to_bytes(2, "big") + body[4:]
    return _IPV6.pack(6 << 28, len(body), ICMPV6, _TTL, destination, source) + body


def _useless_source(source: bytes) -> bool:
    return not any(source) or source[0] == 127 or source[0] >= 224
