"""The TCP segments of a super-packet that the kernel left to us to cut (TSO), all at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from host_agent.checksum import ones_complement_sum
from host_agent.inner_packet import FIN, PSH, InnerPacket
from host_agent.wire import Rows

CWR: Final = 0x80


def header_bytes(packet: bytes, seen: InnerPacket) -> int:
    """Length of all headers of a TCP packet."""
    return len(packet) - seen.payload


def tcp_segments(packet: bytes, seen: InnerPacket, size: int, headroom: int = 0) -> tuple[Rows, int]:
    """Cut TCP *packet* into segments of *size* bytes of payload, the last one with the rest.

    Sequence numbers, lengths, identifications and IPv4 checksums are each segment's own; PSH and FIN go with the last,
    CWR with the first. TCP checksums stay unfinished, as they are.

    Returns:
        Rows (segments, headroom + headers + size), contiguous, and the length of the last segment.
    """
    head = header_bytes(packet, seen)
    count = -(-seen.payload // size)
    data = np.frombuffer(packet, np.uint8)
    rows = np.empty((count, headroom + head + size), np.uint8)
    whole = rows[:, headroom:]
    whole[:, :head] = data[:head]
    full = seen.payload // size
    whole[:full, head:] = data[head : head + full * size].reshape(full, size)
    rest = seen.payload - (count - 1) * size
    if full < count:
        whole[-1, head : head + rest] = data[head + full * size :]
        whole[-1, head + rest :] = 0
    index = np.arange(count, dtype=np.uint32)
    at = seen.transport
    first = int.from_bytes(packet[at + 4 : at + 8], "big")
    _put(whole, at + 4, (np.uint32(first) + index * np.uint32(size)).astype(">u4"))
    if count > 1:
        flags = packet[at + 13]
        whole[0, at + 13] = flags & ~(FIN | PSH)
        whole[1:-1, at + 13] = flags & ~(FIN | PSH | CWR)
        whole[-1, at + 13] = flags & ~CWR
    lengths = np.full(count, head + size, np.uint32)
    lengths[-1] = head + rest
    if seen.version == 4:
        _finish_ipv4(whole, packet[:at], lengths, index)
    else:
        _put(whole, 4, (lengths - np.uint32(40)).astype(">u2"))
    return rows, head + rest


def _finish_ipv4(
    whole: Rows, head: bytes, lengths: npt.NDArray[np.uint32], index: npt.NDArray[np.uint32]
) -> None:
    numbers = (np.uint32(int.from_bytes(head[4:6], "big")) + index) & np.uint32(0xFFFF)
    fixed = ones_complement_sum(head[:2] + bytes(4) + head[6:10] + bytes(2) + head[12:])
    sums = np.uint32(fixed) + lengths + numbers
    for _ in range(2):
        sums = (sums & np.uint32(0xFFFF)) + (sums >> np.uint32(16))
    _put(whole, 2, lengths.astype(">u2"))
    _put(whole, 4, numbers.astype(">u2"))
    _put(whole, 10, (sums ^ np.uint32(0xFFFF)).astype(">u2"))


def _put(rows: Rows, at: int, values: npt.NDArray[np.generic]) -> None:
    """Write a number into each row, as its type says."""
    width = values.dtype.itemsize
    rows[:, at : at + width] = values.view(np.uint8).reshape(len(values), width)
