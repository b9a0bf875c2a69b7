"""Internet checksums (RFC 1071, RFC 1624), and checksums that a kernel has left unfinished.

A TUN device with ``IFF_VNET_HDR`` hands over TCP and UDP packets whose checksum field holds only the sum of the pseudo
header: the rest would be the network card's work. Whether a packet is in that state can be told from the packet
alone, so nothing about it crosses the fabric: `is_partial`. (A finished checksum looks unfinished once in 65536
packets; then the receiving kernel does not check what our CRC has checked.)
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

import numpy as np

from host_agent.packets import ICMPV6, TCP, UDP, Inner

CHECKSUM_OFFSET: Final = {TCP: 16, UDP: 6}
"""Of the checksum within the TCP and UDP header."""


def ones_sum(data: bytes, start: int = 0) -> int:
    """Ones' complement sum of *data* as 16-bit words (a last odd byte is padded), added to *start*; 0..0xFFFF."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    if len(data) <= 64:
        total = start + sum(struct.unpack(f"!{len(data) // 2}H", data))
    else:
        total = start + int(np.frombuffer(data, dtype=">u2").sum(dtype=np.uint64))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes, start: int = 0) -> int:
    """The Internet checksum of *data*."""
    return ones_sum(data, start) ^ 0xFFFF


@lru_cache(maxsize=4096)
def address_sum(addresses: bytes, protocol: int) -> int:
    """Sum of the pseudo header without its length."""
    return ones_sum(addresses, protocol)


def pseudo_sum(addresses: bytes, protocol: int, length: int) -> int:
    """Sum of the whole pseudo header (IPv4: RFC 9293, IPv6: RFC 8200); *length*: layer-4 header and payload."""
    total = address_sum(addresses, protocol) + length
    return total if total <= 0xFFFF else (total & 0xFFFF) + (total >> 16)


def adjusted(check: int, old: int, new: int) -> int:
    """Checksum *check* after one of its 16-bit words changed from *old* to *new* (RFC 1624, equation 3)."""
    total = (check ^ 0xFFFF) + (old ^ 0xFFFF) + new
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _addresses(packet: bytes) -> bytes:
    return packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]


def has_checksum(inner: Inner) -> bool:
    """Whether the packet has a TCP or UDP checksum of its own (a fragment has none)."""
    return inner.protocol in CHECKSUM_OFFSET and not inner.fragment


def is_partial(packet: bytes, inner: Inner) -> bool:
    """Whether the checksum field of a TCP or UDP packet holds just the sum of the pseudo header."""
    if not has_checksum(inner):
        return False
    at = inner.l4 + CHECKSUM_OFFSET[inner.protocol]
    held = packet[at] << 8 | packet[at + 1]
    return held == pseudo_sum(_addresses(packet), inner.protocol, len(packet) - inner.l4)


def completed(packet: bytes, start: int, offset: int) -> bytes:
    """*packet* with the checksum at *start* + *offset* finished over all from *start* on.

    Raises:
        ValueError: the checksum would lie outside of the packet.
    """
    at = start + offset
    if at + 2 > len(packet):
        raise ValueError(f"a checksum at {at} B lies outside of a packet of {len(packet)} B")
    # the field itself holds the pseudo header's sum, so it is part of what is summed up
    value = checksum(packet[start:])
    return packet[:at] + (value or 0xFFFF).to_bytes(2, "big") + packet[at + 2 :]


def icmpv6_checksum(addresses: bytes, message: bytes) -> int:
    """Of an ICMPv6 *message* with a checksum field of 0 (RFC 4443)."""
    return checksum(message, pseudo_sum(addresses, ICMPV6, len(message)))
