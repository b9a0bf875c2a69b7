"""Internet checksums (RFC 1071)."""

from __future__ import annotations

import struct


def ones_complement_sum(data: bytes | bytearray | memoryview, start: int = 0) -> int:
    """Return the 16-bit one's complement sum, not inverted; odd lengths are padded with a zero."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total: int = start + sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes | bytearray | memoryview) -> int:
    """Return the checksum field's value for *data* (with that field as 0)."""
    return 0xFFFF - ones_complement_sum(data)
