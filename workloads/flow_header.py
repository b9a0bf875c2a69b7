"""What a generated flow carries: a header, then bytes that mean nothing, then one byte back.

The header (16 bytes, network byte order: magic, copy and flow id, size) is the first part of the flow's payload.
The top bit of the id is set in the second copy of a replicated flow.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

SINK_PORT: Final = 5501
ACKNOWLEDGEMENT: Final = b"\x06"
ENDLESS: Final = (1 << 64) - 1
_HEADER: Final = struct.Struct("!IIQ")
HEADER_BYTES: Final = _HEADER.size
"""It is the first part of a flow's payload, so no flow is smaller than this."""
_MAGIC: Final = 0xCA9517A1
_COPY: Final = 1 << 31


class FlowHeader(NamedTuple):
    """Which flow it is, its size in bytes (or ENDLESS), and which of its copies (0, or 1 if replicated)."""

    flow: int
    size: int
    copy: int = 0


def encode_header(flow: int, size_bytes: int | None, copy: int = 0) -> bytes:
    """Return the header of flow number *flow* (below 2^31); a size of None is a flow without an end."""
    return _HEADER.pack(_MAGIC, flow | (_COPY if copy else 0), ENDLESS if size_bytes is None else size_bytes)


def decode_header(data: bytes) -> FlowHeader | None:
    """Return what a header says, or None if these bytes do not come from a generator."""
    magic, flow, size = _HEADER.unpack(data)
    if magic != _MAGIC or size < HEADER_BYTES:
        return None
    return FlowHeader(flow & ~_COPY, size, int(bool(flow & _COPY)))
