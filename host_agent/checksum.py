"""Internet checksums (RFC 1071)."""

from __future__ import annotations

import struct
from functools import lru_cache

from host_agent.inner_packet import TCP, UDP, InnerPacket


def ones_complement_sum(data: bytes | bytearray | memoryview, start: int = 0) -> int:
    """Return the 16-bit one's complement sum, not inverted; odd lengths are padded with a zero."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total: int = start + sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes | bytearray | memoryview, start: int = 0) -> int:
    """Return the checksum field's value for *data* (with that field as 0)."""
    return 0xFFFF - ones_complement_sum(data, start)


def pseudo_header_sum(packet: InnerPacket, length: int) -> int:
    """Return the sum over the pseudo header of TCP, UDP or ICMPv6 with *length* bytes from the transport header on."""
    return pseudo_sum(packet.flow[1:-4], packet.protocol, length)


def pseudo_sum(addresses: bytes, protocol: int, length: int) -> int:
    """Return the same, from the addresses (both, 8 or 32 bytes) and the protocol."""
    total = _address_sum(addresses, protocol) + length
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@lru_cache(maxsize=4096)
def _address_sum(addresses: bytes, protocol: int) -> int:
    return ones_complement_sum(addresses, protocol)


def complete(packet: bytes, seen: InnerPacket) -> bytes:
    """Return the packet with its TCP or UDP checksum computed; others unchanged.

    Packets that a TUN device with IFF_VNET_HDR hands over carry none; needed where the receiver's has no such header.
    """
    offset = {TCP: 16, UDP: 6}.get(seen.protocol)
    if offset is None or seen.flow[-4:] == b"\0\0\0\0":
        return packet
    data = bytearray(packet)
    offset += seen.transport
    data[offset : offset + 2] = b"\0\0"
    segment = memoryview(data)[seen.transport :]
    value = checksum(segment, pseudo_header_sum(seen, len(segment)))
    data[offset : offset + 2] = (value or 0xFFFF).to_bytes(2, "big")
    return bytes(data)
