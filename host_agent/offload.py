"""Super-packets: what a TUN device with IFF_VNET_HDR reads and writes, up to 64 KB of one TCP flow at a time.

Reading, the kernel leaves segmentation to us; writing, we may leave it to the kernel to see many segments as one
packet. Both spare most of the per-packet cost of the host's TCP. Header: virtio_net.h, 10 bytes, host byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from host_agent.checksum import checksum, ones_complement_sum, pseudo_header_sum, pseudo_sum
from host_agent.inner_packet import ACK, PSH, TCP, UDP, InnerPacket, PacketError, look
from host_agent.segments import tcp_segments

VNET_HEADER: Final = struct.Struct("=BBHHHH")
NEEDS_CHECKSUM: Final = 1
GSO_NONE, GSO_TCP4, GSO_TCP6, GSO_ECN = 0, 1, 4, 0x80
_PLAIN: Final = bytes(VNET_HEADER.size)
_MAX_SUPER: Final = 65535 - 40
_TCP: Final = struct.Struct("!4sIIBBHHH")


class Read(NamedTuple):
    """One read of the device: a packet, or a super-packet of TCP segments of ``size`` bytes of payload (0: none)."""

    packet: bytes
    size: int


def read(data: bytes) -> Read:
    """What the device gave.

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


def segments(data: bytes) -> list[bytes]:
    """The IP packets in one read of the device: one, or the TCP segments of a super-packet. Raises PacketError."""
    packet, size = read(data)
    seen = look(packet)
    if not size or seen.payload <= size:
        return [packet]
    rows, last = tcp_segments(packet, seen, size)
    return [*(row.tobytes() for row in rows[:-1]), rows[-1, :last].tobytes()]


def _known_checksum(packet: bytes) -> bool:
    """Whether `written` will know of the checksum that the kernel left unfinished."""
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        return packet[6] in (TCP, UDP)
    return len(packet) >= 20 and packet[9] in (TCP, UDP) and not (packet[6] & 0x3F or packet[7])


def finished(packet: bytes, start: int, offset: int) -> bytes:
    """*packet* with the checksum at *start* + *offset* finished; the field holds the pseudo header's sum."""
    at = start + offset
    if at + 2 > len(packet):
        raise PacketError("inner_truncated", f"a checksum at {at} B is not in a packet of {len(packet)} B")
    value = checksum(packet[start:]) or 0xFFFF
    return packet[:at] + value.to_bytes(2, "big") + packet[at + 2 :]


class _Super:
    """Consecutive segments of one TCP flow, to be written as one packet."""

    __slots__ = ("at", "bytes", "closed", "head_bytes", "like", "next", "parts", "size")

    def __init__(
        self, packet: bytes, at: int, head_bytes: int, sequence: int, flags: int, like: tuple[object, ...]
    ) -> None:
        self.at = at
        self.head_bytes = head_bytes
        self.like = like
        self.parts = [packet]
        self.size = len(packet) - head_bytes
        self.bytes = len(packet)
        self.next = (sequence + self.size) & 0xFFFFFFFF
        self.closed = flags & ~ACK != 0

    def take(
        self, packet: bytes, head_bytes: int, sequence: int, flags: int, like: tuple[object, ...]
    ) -> bool:
        """Add the segment if it follows and looks *like* the others: what a merger would lose is equal."""
        payload = len(packet) - head_bytes
        if (
            self.closed
            or sequence != self.next
            or payload > self.size
            or flags & ~PSH != ACK
            or like != self.like
            or self.bytes + payload > _MAX_SUPER
        ):
            return False
        self.parts.append(packet)
        self.bytes += payload
        self.next = (sequence + payload) & 0xFFFFFFFF
        self.closed = flags & PSH != 0 or payload < self.size
        return True

    def write(self) -> bytes:
        """Header and packet for the device."""
        first, at, head_bytes = self.parts[0], self.at, self.head_bytes
        head = bytearray(first[:head_bytes])
        if len(self.parts) > 1:
            head[at + 13] |= self.parts[-1][at + 13] & PSH
        v4 = first[0] >> 4 == 4
        if v4 and len(self.parts) > 1:
            struct.pack_into("!H", head, 2, self.bytes)
            head[10:12] = b"\0\0"
            struct.pack_into("!H", head, 10, 0xFFFF - ones_complement_sum(head[:at]))
        elif not v4:
            struct.pack_into("!H", head, 4, self.bytes - 40)
        addresses = first[12:20] if v4 else first[8:40]
        struct.pack_into("!H", head, at + 16, pseudo_sum(addresses, TCP, self.bytes - at))
        if len(self.parts) == 1:
            return b"".join(
                (VNET_HEADER.pack(NEEDS_CHECKSUM, GSO_NONE, 0, 0, at, 16), head, first[head_bytes:])
            )
        kind = GSO_TCP4 if v4 else GSO_TCP6
        header = VNET_HEADER.pack(NEEDS_CHECKSUM, kind, head_bytes, self.size, at, 16)
        return b"".join((header, head, *(part[head_bytes:] for part in self.parts)))


def written(packet: bytes, seen: InnerPacket) -> bytes:
    """Header and packet for the device, for one packet whose checksum the datagram's CRC has made needless."""
    offset = {TCP: 16, UDP: 6}.get(seen.protocol)
    if offset is None or seen.flow[-4:] == b"\0\0\0\0":
        return _PLAIN + packet
    at = seen.transport
    data = bytearray(packet)
    struct.pack_into("!H", data, at + offset, pseudo_header_sum(seen, len(packet) - at))
    return VNET_HEADER.pack(NEEDS_CHECKSUM, GSO_NONE, 0, 0, at, offset) + data


def write_of(packet: bytes) -> bytes:
    """Header and packet for the device, for one sound packet by itself."""
    return written(packet, look(packet))


def coalesce(packets: Iterable[bytes]) -> list[bytes]:
    """Writes for the device: consecutive TCP segments of a flow become one; the order within flows is kept.

    *packets* are sound (`inner_packet.look` accepts them).
    """
    out: list[_Super | bytes] = []
    open_: dict[bytes, _Super] = {}
    for packet in packets:
        # nearly all are TCP over IPv4 without options, or IPv6 without extensions
        if packet[0] == 0x45 and packet[9] == TCP and not (packet[6] & 0x3F or packet[7]):
            at, flow = 20, packet[12:24]
            alike = packet[:2] + packet[6:10]
        elif packet[0] >> 4 == 6 and packet[6] == TCP:
            at, flow = 40, packet[8:44]
            alike = packet[:4] + packet[6:8]
        elif packet[0] == 0x45 and packet[9] not in (TCP, UDP):
            out.append(_PLAIN + packet)
            continue
        else:
            out.append(written(packet, look(packet)))
            continue
        _, sequence, acknowledged, offset, flags, window, _, urgent = _TCP.unpack_from(packet, at)
        head_bytes = at + (offset >> 4) * 4
        if head_bytes == len(packet):  # nothing but an ACK
            open_.pop(flow, None)
            out.append(written(packet, look(packet)))
            continue
        like = (alike, acknowledged, window, urgent, packet[at + 20 : head_bytes])
        current = open_.get(flow)
        if current is not None and current.take(packet, head_bytes, sequence, flags, like):
            continue
        fresh = open_[flow] = _Super(packet, at, head_bytes, sequence, flags, like)
        out.append(fresh)
    return [item.write() if isinstance(item, _Super) else item for item in out]
