"""The TCP segments of a super-packet that the kernel left to us to cut (TSO), all at once."""

from __future__ import annotations

import capstan_native

from host_agent.inner_packet import InnerPacket


def tcp_segments(packet: bytes, seen: InnerPacket, size: int) -> list[bytes]:
    """Cut TCP *packet* into segments of *size* bytes of payload, the last one with the rest.

    Sequence numbers, lengths, identifications and IPv4 checksums are each segment's own; PSH and FIN go with the last,
    CWR with the first. TCP checksums stay unfinished, as they are.

    Raises:
        ValueError: it cannot be cut so.
    """
    return capstan_native.cut_segments(packet, seen.transport, len(packet) - seen.payload, size)
