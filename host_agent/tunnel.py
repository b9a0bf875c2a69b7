"""Rules of IP tunnels: ECN across them (RFC 6040), and packets that are too large (RFC 1191, RFC 8201)."""

from __future__ import annotations

import struct
from typing import Final

from host_agent.checksum import checksum, ones_complement_sum
from host_agent.inner_packet import ICMP, ICMPV6

NOT_ECT, ECT1, ECT0, CE = 0b00, 0b01, 0b10, 0b11
OUTER_TTL: Final = 64
"""The outer header's own; the inner one is not forwarded by a tunnel that begins and ends on hosts."""


def ecn_of(packet: bytes | memoryview) -> int:
    """ECN field of an IPv4 or IPv6 packet."""
    return packet[1] & 0b11 if packet[0] >> 4 == 4 else (packet[1] >> 4) & 0b11


def decapsulate_ecn(packet: bytes, outer: int) -> bytes | None:
    """The inner packet with the ECN field of RFC 6040, figure 4; None: it must be dropped.

    A congestion mark on the outer header of a packet that cannot carry one is a loss.
    """
    inner = ecn_of(packet)
    if outer == CE:
        if inner == NOT_ECT:
            return None
        return packet if inner == CE else _with_ecn(packet, CE)
    if outer == ECT1 and inner == ECT0:
        return _with_ecn(packet, ECT1)
    return packet


def _with_ecn(packet: bytes, ecn: int) -> bytes:
    data = bytearray(packet)
    if data[0] >> 4 == 6:
        data[1] = data[1] & 0xCF | ecn << 4
        return bytes(data)
    data[1] = data[1] & 0xFC | ecn
    data[10:12] = b"\0\0"
    data[10:12] = checksum(data[: (data[0] & 0x0F) * 4]).to_bytes(2, "big")
    return bytes(data)


def dont_fragment(packet: bytes) -> bool:
    """Whether only the sender may fragment it: IPv6, or IPv4 with DF."""
    return packet[0] >> 4 == 6 or bool(packet[6] & 0x40)


def too_big(packet: bytes, mtu: int) -> bytes | None:
    """The ICMP error that tells the sender of *packet* of the tunnel's MTU; None where none may be sent.

    ICMPv4: destination unreachable, fragmentation needed (RFC 1191). ICMPv6: packet too big (RFC 4443, 3.2).
    """
    if packet[0] >> 4 == 4:
        return _icmp4(packet, 3, 4, mtu)
    return _icmp6(packet, 2, 0, mtu)


def unreachable(packet: bytes) -> bytes | None:
    """The ICMP error for an overlay address that nobody has; None where none may be sent."""
    if packet[0] >> 4 == 4:
        return _icmp4(packet, 3, 1, 0)
    return _icmp6(packet, 1, 3, 0)


def _icmp4(packet: bytes, kind: int, code: int, rest: int) -> bytes | None:
    header = (packet[0] & 0x0F) * 4
    source = packet[12]
    if int.from_bytes(packet[6:8], "big") & 0x1FFF or source in (0, 127) or source >= 224:
        return None  # RFC 1122, 3.2.2: no errors about later fragments, and none to groups
    if packet[9] == ICMP and (len(packet) == header or packet[header] not in (0, 8)):
        return None  # nor about errors
    body = struct.pack("!BBHI", kind, code, 0, rest) + packet[: header + 8]
    body = body[:2] + checksum(body).to_bytes(2, "big") + body[4:]
    outer = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, ICMP, 0, packet[16:20], packet[12:16]
    )
    return outer[:10] + checksum(outer).to_bytes(2, "big") + outer[12:] + body


def _icmp6(packet: bytes, kind: int, code: int, rest: int) -> bytes | None:
    if packet[8] == 0xFF or not any(packet[8:24]):
        return None  # RFC 4443, 2.4: no errors to groups or to nobody
    if packet[6] == ICMPV6 and (len(packet) == 40 or packet[40] < 128):
        return None  # nor about errors
    body = struct.pack("!BBHI", kind, code, 0, rest) + packet[: 1280 - 48]
    pseudo = packet[24:40] + packet[8:24] + struct.pack("!IHBB", len(body), 0, 0, ICMPV6)
    body = body[:2] + checksum(body, ones_complement_sum(pseudo)).to_bytes(2, "big") + body[4:]
    return struct.pack("!IHBB", 6 << 28, len(body), ICMPV6, 64) + packet[24:40] + packet[8:24] + body


def fragment(packet: bytes, mtu: int) -> list[bytes]:
    """An IPv4 packet without DF in pieces of at most *mtu* bytes (RFC 791); options go with every piece."""
    header_bytes = (packet[0] & 0x0F) * 4
    body = packet[header_bytes:]
    step = (mtu - header_bytes) // 8 * 8
    if step <= 0:
        raise ValueError(f"an MTU of {mtu} B leaves no room behind a header of {header_bytes} B")
    field = int.from_bytes(packet[6:8], "big")
    offset, more = field & 0x1FFF, field & 0x2000
    pieces = []
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        last = at + step >= len(body)
        header = bytearray(packet[:header_bytes])
        header[2:4] = (header_bytes + len(piece)).to_bytes(2, "big")
        header[6:8] = ((more if last else 0x2000) | (offset + at // 8)).to_bytes(2, "big")
        header[10:12] = b"\0\0"
        header[10:12] = checksum(header).to_bytes(2, "big")
        pieces.append(bytes(header) + piece)
    return pieces
