"""The TCP segments of a super-packet that the kernel left to us to cut (TSO), all at once."""

from __future__ import annotations

import capstan_native
import numpy as np

from host_agent.inner_packet import InnerPacket
from host_agent.wire import Rows


def header_bytes(packet: bytes, seen: InnerPacket) -> int:
    """Length of all headers of a TCP packet."""
    return len(packet) - seen.payload


def tcp_segments(packet: bytes, seen: InnerPacket, size: int, headroom: int = 0) -> tuple[Rows, int]:
    """Cut TCP *packet* into segments of *size* bytes of payload, the last one with the rest.

    Sequence numbers, lengths, identifications and IPv4 checksums are each segment's own; PSH and FIN go with the last,
    CWR with the first. TCP checksums stay unfinished, as they are.

    Returns:
        Rows (segments, headroom + headers + size), contiguous, and the length of the last segment. The headroom is
        not filled in; zeros follow the last segment.
    """
    head = header_bytes(packet, seen)
    rows = np.empty((-(-seen.payload // size), headroom + head + size), np.uint8)
    return rows, capstan_native.cut_segments(packet, seen.transport, head, size, headroom, rows)
