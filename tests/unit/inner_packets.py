"""Inner packets for tests, built and read without any code of the agent's."""

from __future__ import annotations

import functools
import ipaddress
import struct

TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
HOST1, HOST2 = "10.128.1.1", "10.128.1.2"
HOST1_V6, HOST2_V6 = "fd00:ca::1:1", "fd00:ca::1:2"


def words_sum(data: bytes) -> int:
    """Return the one's complement sum of 16-bit words by RFC 1071's prose; 0xFFFF means that a checksum fits."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@functools.cache
def packed(address: str) -> bytes:
    """Return the bytes of an IPv4 or IPv6 address."""
    return ipaddress.ip_address(address).packed


def pseudo_header(packet: bytes, length: int, protocol: int) -> bytes:
    if packet[0] >> 4 == 4:
        return packet[12:20] + struct.pack("!BBH", 0, protocol, length)
    return packet[8:40] + struct.pack("!IHBB", length, 0, 0, protocol)


def ip(
    protocol: int,
    body: bytes,
    source: str = HOST1,
    destination: str = HOST2,
    *,
    tos: int = 0,
    df: bool = True,
    number: int = 7,
    word: int = 0,
    options: bytes = b"",
) -> bytes:
    """Build an IPv4 or IPv6 packet by its addresses; *word*: more flags and the fragment offset (IPv4)."""
    first, second = packed(source), packed(destination)
    if len(first) == 16:
        head = struct.pack("!IHBB", 6 << 28 | tos << 20, len(body), protocol, 64)
        return head + first + second + body
    length = 20 + len(options)
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x40 | length // 4,
        tos,
        length + len(body),
        number,
        (0x4000 if df else 0) | word,
        64,
        protocol,
        0,
        first,
        second,
    )
    head += options
    check = 0xFFFF - words_sum(head)
    return head[:10] + check.to_bytes(2, "big") + head[12:] + body


def tcp(
    payload: bytes = b"",
    source: str = HOST1,
    destination: str = HOST2,
    *,
    ports: tuple[int, int] = (40000, 80),
    sequence: int = 1000,
    ack: int = 1,
    flags: int = 0x10,
    options: bytes = b"",
    tos: int = 0,
    number: int = 7,
    partial: bool = False,
    window: int = 500,
) -> bytes:
    """Build a TCP packet; *partial*: its checksum is the pseudo header's sum only, as from a TUN with IFF_VNET_HDR."""
    head = struct.pack(
        "!HHIIBBHHH",
        *ports,
        sequence % 2**32,
        ack % 2**32,
        (20 + len(options)) // 4 << 4,
        flags,
        window,
        0,
        0,
    )
    segment = _checked(head + options + payload, TCP, source, destination, 16, partial)
    return ip(TCP, segment, source, destination, tos=tos, number=number)


def udp(
    payload: bytes = b"",
    source: str = HOST1,
    destination: str = HOST2,
    *,
    ports: tuple[int, int] = (5000, 5001),
    df: bool = True,
    tos: int = 0,
    partial: bool = False,
) -> bytes:
    head = struct.pack("!HHHH", *ports, 8 + len(payload), 0)
    return ip(
        UDP,
        _checked(head + payload, UDP, source, destination, 6, partial),
        source,
        destination,
        df=df,
        tos=tos,
    )


def _checked(segment: bytes, protocol: int, source: str, destination: str, at: int, partial: bool) -> bytes:
    pseudo = pseudo_header(ip(protocol, segment, source, destination), len(segment), protocol)
    value = words_sum(pseudo) if partial else 0xFFFF - words_sum(pseudo + segment) or 0xFFFF
    return segment[:at] + value.to_bytes(2, "big") + segment[at + 2 :]


def check_ip(packet: bytes) -> None:
    """Check the lengths and, for IPv4, the header checksum."""
    if packet[0] >> 4 == 4:
        assert int.from_bytes(packet[2:4], "big") == len(packet)
        assert words_sum(packet[: (packet[0] & 15) * 4]) == 0xFFFF
    else:
        assert int.from_bytes(packet[4:6], "big") + 40 == len(packet)


def check_transport(packet: bytes, at: int, protocol: int) -> None:
    """Check the finished checksum of TCP, UDP or ICMPv6 at offset *at*."""
    segment = packet[at:]
    assert words_sum(pseudo_header(packet, len(segment), protocol) + segment) == 0xFFFF


def reassembled(fragments: list[bytes]) -> bytes:
    """Return the body of the IPv4 packet that was fragmented; check that every part is where its offset says."""
    body: dict[int, bytes] = {}
    end = None
    for fragment in fragments:
        check_ip(fragment)
        word = int.from_bytes(fragment[6:8], "big")
        at, part = (word & 0x1FFF) * 8, fragment[(fragment[0] & 15) * 4 :]
        assert at not in body
        body[at] = part
        if not word & 0x2000:
            assert end is None
            end = at + len(part)
    data = b"".join(body[at] for at in sorted(body))
    assert len(data) == end
    assert all(sum(len(body[one]) for one in body if one < at) == at for at in body)
    return data
