"""Super-packets: what a TUN device with IFF_VNET_HDR reads and writes, up to 64 KB of one TCP flow at a time.

Reading, the kernel leaves segmentation to us; writing, we may leave it to the kernel to see many segments as one
packet. Both spare most of the per-packet cost of the host's TCP. Header: virtio_net.h, 10 bytes, host byte order.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from host_agent.checksum import checksum
from host_agent.inner_packet import TCP, UDP, PacketError

VNET_HEADER: Final = struct.Struct("=BBHHHH")
NEEDS_CHECKSUM: Final = 1
GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_ECN = 0, 1, 4, 0x80


class Read(NamedTuple):
    """One read of the device: a packet, or a super-packet of TCP segments of ``size`` bytes of payload (0: none)."""

    packet: bytes
    size: int


def read(data: bytes) -> Read:
    """Return what the device gave.

    Raises:
        PacketError: it is no packet, or segmentation of another kind than we asked for.
    """
    if len(data) < VNET_HEADER.size:
        raise PacketError("inner_truncated", f"{len(data)} B are no read of the device")
    flags, gso_type, _, gso_size, start, offset = VNET_HEADER.unpack_from(data)
    packet = data[VNET_HEADER.size :]
    gso_type &= ~GSO_ECN
    if gso_type == GSO_NONE:
        if flags & NEEDS_CHECKSUM and not _known_checksum(packet):
            packet = finished(packet, start, offset)
        return Read(packet, 0)
    if gso_type not in (GSO_TCP4, GSO_TCP6) or gso_size == 0:
        raise PacketError("inner_gso", f"segmentation of kind {gso_type} and {gso_size} B is not known")
    return Read(packet, gso_size)


def _known_checksum(packet: bytes) -> bool:
    """Return whether `write_packets` will know of the checksum that the kernel left unfinished."""
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        return packet[6] in (TCP, UDP)
    return len(packet) >= 20 and packet[9] in (TCP, UDP) and not (packet[6] & 0x3F or packet[7])


def finished(packet: bytes, start: int, offset: int) -> bytes:
    """Return *packet* with the checksum at *start* + *offset* finished; the field holds the pseudo header's
    sum.
    """
    position = start + offset
    if position + 2 > len(packet):
        raise PacketError(
            "inner_truncated", f"a checksum at {position} B is not in a packet of {len(packet)} B"
        )
    value = checksum(packet[start:]) or 0xFFFF
    return packet[:position] + value.to_bytes(2, "big") + packet[position + 2 :]
