"""What the compiled parts of the agent do, written out in Python: slow, and without a line in common with them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from host_agent.checksum import ones_complement_sum
from host_agent.inner_packet import ACK, PSH, TCP, UDP, look
from host_agent.offload import GSO_NONE, GSO_TCP4, GSO_TCP6, NEEDS_CHECKSUM, VNET_HEADER

_PLAIN: Final = bytes(VNET_HEADER.size)
_MAX_SUPER: Final = 65535 - 40
_TCP: Final = struct.Struct("!4sIIBBHHH")


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
        """Return header and packet for the device."""
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
        struct.pack_into("!H", head, at + 16, ones_complement_sum(addresses, TCP + self.bytes - at))
        if len(self.parts) == 1:
            return b"".join(
                (VNET_HEADER.pack(NEEDS_CHECKSUM, GSO_NONE, 0, 0, at, 16), head, first[head_bytes:])
            )
        kind = GSO_TCP4 if v4 else GSO_TCP6
        header = VNET_HEADER.pack(NEEDS_CHECKSUM, kind, head_bytes, self.size, at, 16)
        return b"".join((header, head, *(part[head_bytes:] for part in self.parts)))


def _write_of(packet: bytes) -> bytes:
    """Return header and packet for the device, whose checksum the datagram's CRC has made needless."""
    seen = look(packet)
    offset = {TCP: 16, UDP: 6}.get(seen.protocol)
    if offset is None or seen.flow[-4:] == b"\0\0\0\0":
        return bytes(VNET_HEADER.size) + packet
    transport = seen.transport
    data = bytearray(packet)
    pseudo_header = ones_complement_sum(seen.flow[1:-4], seen.protocol + len(packet) - transport)
    struct.pack_into("!H", data, transport + offset, pseudo_header)
    return VNET_HEADER.pack(NEEDS_CHECKSUM, GSO_NONE, 0, 0, transport, offset) + data


def coalesce(packets: Iterable[bytes]) -> list[bytes]:
    """Return writes for the device: consecutive TCP segments of a flow become one; the order within flows is kept.

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
            out.append(_write_of(packet))
            continue
        _, sequence, acknowledged, offset, flags, window, _, urgent = _TCP.unpack_from(packet, at)
        head_bytes = at + (offset >> 4) * 4
        if head_bytes == len(packet):  # nothing but an ACK
            open_.pop(flow, None)
            out.append(_write_of(packet))
            continue
        like = (alike, acknowledged, window, urgent, packet[at + 20 : head_bytes])
        current = open_.get(flow)
        if current is not None and current.take(packet, head_bytes, sequence, flags, like):
            continue
        fresh = open_[flow] = _Super(packet, at, head_bytes, sequence, flags, like)
        out.append(fresh)
    return [item.write() if isinstance(item, _Super) else item for item in out]
