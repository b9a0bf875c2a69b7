"""ECN across a tunnel: RFC 6040, normal mode. Field values: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE."""

from __future__ import annotations

from typing import Final

from host_agent.checksums import adjusted

NOT_ECT: Final = 0
ECT1: Final = 1
ECT0: Final = 2
CE: Final = 3

_DROP: Final = -1
_DECAPSULATED: Final = (
    # outer:  Not-ECT  ECT(1)   ECT(0)   CE
    (NOT_ECT, NOT_ECT, NOT_ECT, _DROP),  # inner Not-ECT
    (ECT1, ECT1, ECT1, CE),  # inner ECT(1)
    (ECT0, ECT1, ECT0, CE),  # inner ECT(0)
    (CE, CE, CE, CE),  # inner CE
)
"""RFC 6040, figure 4."""


def inner_ecn(packet: bytes) -> int:
    """ECN field of an inner IPv4 or IPv6 packet: what the outer header starts with."""
    return packet[1] & 3 if packet[0] >> 4 == 4 else packet[1] >> 4 & 3


def decapsulated(packet: bytes, outer: int) -> bytes | None:
    """*packet* as it leaves the tunnel, having travelled with the *outer* ECN field; None: it must be dropped."""
    inner = inner_ecn(packet)
    field = _DECAPSULATED[inner][outer]
    if field == inner:
        return packet
    return None if field == _DROP else with_ecn(packet, field)


def with_ecn(packet: bytes, field: int) -> bytes:
    """*packet* with that ECN field, and the IPv4 header checksum to match."""
    if packet[0] >> 4 == 6:
        return packet[:1] + bytes((packet[1] & 0xCF | field << 4,)) + packet[2:]
    old = packet[0] << 8 | packet[1]
    new = old & 0xFFFC | field
    check = adjusted(packet[10] << 8 | packet[11], old, new)
    return packet[:1] + bytes((new & 0xFF,)) + packet[2:10] + check.to_bytes(2, "big") + packet[12:]
