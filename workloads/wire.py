"""What a generated flow carries: a header, then bytes that mean nothing, then one byte back.

The header (16 bytes, network byte order: magic, flow id, size) is the first part of the flow's payload.
"""

from __future__ import annotations

import struct
from typing import Final

from workloads.description import HEADER_BYTES

SINK_PORT: Final = 5501
ACKNOWLEDGEMENT: Final = b"\x06"
ENDLESS: Final = (1 << 64) - 1
_HEADER: Final = struct.Struct("!IIQ")
_MAGIC: Final = 0xCA9517A1
assert _HEADER.size == HEADER_BYTES


def encode_header(flow: int, size_bytes: int | None) -> bytes:
    """Header of flow number *flow*; None is a flow without an end."""
    return _HEADER.pack(_MAGIC, flow, ENDLESS if size_bytes is None else size_bytes)


def decode_header(data: bytes) -> tuple[int, int] | None:
    """(flow, size in bytes or ENDLESS), or None if these bytes do not come from a generator."""
    magic, flow, size = _HEADER.unpack(data)
    return (flow, size) if magic == _MAGIC and size >= HEADER_BYTES else None
