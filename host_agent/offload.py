"""Super-packets: what a TUN device with IFF_VNET_HDR reads and writes, up to 64 KB of one TCP flow at a time.

Reading, the kernel leaves segmentation to us; writing, we may leave it to the kernel to see many segments as one
packet. Both spare most of the per-packet cost of the host's TCP. Header: virtio_net.h, 10 bytes, host byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from host_agent.checksum import ones_complement_sum, pseudo_header_sum
from host_agent.inner_packet import ACK, FIN, PSH, TCP, UDP, InnerPacket, PacketError, look

VNET_HEADER: Final = struct.Struct("=BBHHHH")
NEEDS_CHECKSUM: Final = 1
GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_ECN = 0, 1, 4, 0x80
_PLAIN: Final = bytes(VNET_HEADER.size)
_MAX_SUPER: Final = 65535 - 40
_CWR: Final = 0x80


def segments(read: bytes) -> list[bytes]:
    """The IP packets in one read of the device: one, or the TCP segments of a super-packet.

    Raises:
        PacketError: the read is no packet, or segmentation of another kind than we asked for.
    """
    if len(read) < VNET_HEADER.size:
        raise PacketError("inner_truncated", f"{len(read)} B are no read of the device")
    _, gso_type, _, gso_size, _, _ = VNET_HEADER.unpack_from(read)
    packet = read[VNET_HEADER.size :]
    gso_type &= ~GSO_ECN
    if gso_type == GSO_NONE:
        return [packet]
    if gso_type not in (GSO_TCP4, GSO_TCP6) or gso_size == 0:
        raise PacketError("inner_gso", f"segmentation of kind {gso_type} and {gso_size} B is not known")
    return _tcp_segments(packet, gso_size)


def _tcp_segments(packet: bytes, size: int) -> list[bytes]:
    seen = look(packet)
    at = seen.transport
    head_bytes = at + (packet[at + 12] >> 4) * 4
    head = bytearray(packet[:head_bytes])
    sequence = int.from_bytes(head[at + 4 : at + 8], "big")
    flags = head[at + 13]
    v4 = seen.version == 4
    if v4:
        identification = int.from_bytes(head[4:6], "big")
        head[2:6] = bytes(4)
        head[10:12] = bytes(2)
        base = ones_complement_sum(head[:at])
    end = len(packet)
    out = []
    for index, start in enumerate(range(head_bytes, end, size)):
        stop = min(start + size, end)
        struct.pack_into("!I", head, at + 4, (sequence + start - head_bytes) & 0xFFFFFFFF)
        kept = flags if stop == end else flags & ~(FIN | PSH)
        head[at + 13] = kept if index == 0 else kept & ~_CWR
        length = head_bytes + stop - start
        if v4:
            number = (identification + index) & 0xFFFF
            total = base + length + number
            total = (total & 0xFFFF) + (total >> 16)
            total = (total & 0xFFFF) + (total >> 16)
            struct.pack_into("!HH", head, 2, length, number)
            struct.pack_into("!H", head, 10, 0xFFFF - total)
        else:
            struct.pack_into("!H", head, 4, length - 40)
        out.append(bytes(head) + packet[start:stop])
    return out


class _Super:
    """Consecutive segments of one TCP flow, to be written as one packet."""

    __slots__ = ("bytes", "closed", "next", "parts", "seen", "size")

    def __init__(self, packet: bytes, seen: InnerPacket) -> None:
        self.seen = seen
        self.parts = [packet]
        self.size = seen.payload
        self.bytes = len(packet)
        at = seen.transport
        self.next = (int.from_bytes(packet[at + 4 : at + 8], "big") + seen.payload) & 0xFFFFFFFF
        self.closed = packet[at + 13] & ~ACK != 0

    def take(self, packet: bytes, seen: InnerPacket) -> bool:
        """Add the segment if it follows and looks alike (RFC 9293 fields that a merger would lose are equal)."""
        first, at = self.parts[0], seen.transport
        if (
            self.closed
            or seen.payload > self.size
            or at != self.seen.transport
            or packet[at + 13] & ~PSH != ACK
            or int.from_bytes(packet[at + 4 : at + 8], "big") != self.next
            or self.bytes + seen.payload > _MAX_SUPER
            or packet[at + 8 : at + 13] != first[at + 8 : at + 13]
            or packet[at + 14 : at + 16] != first[at + 14 : at + 16]
        ):
            return False
        head = at + (packet[at + 12] >> 4) * 4
        if packet[at + 20 : head] != first[at + 20 : head] or packet[:2] != first[:2]:
            return False
        self.parts.append(packet)
        self.bytes += seen.payload
        self.next = (self.next + seen.payload) & 0xFFFFFFFF
        self.closed = bool(packet[at + 13] & PSH) or seen.payload < self.size
        return True

    def write(self) -> bytes:
        """Header and packet for the device."""
        first, at = self.parts[0], self.seen.transport
        if len(self.parts) == 1:
            return written(first, self.seen)
        head_bytes = at + (first[at + 12] >> 4) * 4
        head = bytearray(first[:head_bytes])
        head[at + 13] |= self.parts[-1][at + 13] & PSH
        if self.seen.version == 4:
            struct.pack_into("!H", head, 2, self.bytes)
            head[10:12] = b"\0\0"
            struct.pack_into("!H", head, 10, 0xFFFF - ones_complement_sum(head[:at]))
        else:
            struct.pack_into("!H", head, 4, self.bytes - 40)
        struct.pack_into("!H", head, at + 16, pseudo_header_sum(self.seen, self.bytes - at))
        kind = GSO_TCP4 if self.seen.version == 4 else GSO_TCP6
        header = VNET_HEADER.pack(NEEDS_CHECKSUM, kind, head_bytes, self.size, at, 16)
        return b"".join((header, head, *(part[head_bytes:] for part in self.parts)))


def written(packet: bytes, seen: InnerPacket) -> bytes:
    """Header and packet for the device, for one packet whose checksum the datagram's CRC has made needless."""
    offset = {TCP: 16, UDP: 6}.get(seen.protocol)
    if offset is None or seen.flow[-4:] == b"\0\0\0\0":
        return _PLAIN + packet
    at = seen.transport
    data = bytearray(packet)
    struct.pack_into("!H", data, at + offset, pseudo_header_sum(seen, _end(packet) - at))
    return VNET_HEADER.pack(NEEDS_CHECKSUM, GSO_NONE, 0, 0, at, offset) + data


def _end(packet: bytes) -> int:
    """Where the IP packet says that it ends."""
    return (
        int.from_bytes(packet[2:4], "big") if packet[0] >> 4 == 4 else 40 + int.from_bytes(packet[4:6], "big")
    )


def coalesce(packets: Iterable[bytes]) -> list[bytes]:
    """Writes for the device: consecutive TCP segments of a flow become one; the order within flows is kept."""
    out: list[_Super | bytes] = []
    open_: dict[bytes, _Super] = {}
    for packet in packets:
        seen = look(packet)
        if seen.protocol != TCP or seen.flow[-4:] == b"\0\0\0\0":
            out.append(written(packet, seen))
            continue
        current = open_.get(seen.flow)
        if current is not None and seen.payload and current.take(packet, seen):
            continue
        fresh = _Super(packet, seen)
        out.append(fresh)
        if seen.payload:
            open_[seen.flow] = fresh
        else:
            open_.pop(seen.flow, None)
    return [item.write() if isinstance(item, _Super) else item for item in out]
