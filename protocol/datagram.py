"""The datagrams that two host agents exchange over the fabric: UDP payloads.

Every datagram begins with the same 32-byte header, network byte order::

    offset  size  field
    0       1     MAGIC (0xCA)
    1       1     version (high nibble) and kind (low nibble)
    2       1     flags: bits 0-1 traffic class, bit 2 coded (source of a coding unit), bit 3 authenticated
    3       1     reserved, 0 (authenticated: number of the key)
    4       4     session: random number of the sending agent's start, sent to peers by the controller
    8       4     number: per (sender, receiver), +1 for every datagram; it shows replays and losses
    12      4     sent: sender's clock in microseconds, modulo 2**32
    16      4     flow: the sender's number of the inner flow and direction (0: none)
    20      4     position: SOURCE: number of this packet within the flow (SHORT and LONG packets only count);
                  REPAIR: position of the unit's first source
    24      4     reserved, 0
    28      4     CRC-32C of the whole datagram with this field as 0

Kinds and their bodies:

- SOURCE: one inner IP packet, as it is.
- REPAIR: a head of 12 bytes, then one coded symbol. The head: code (`CodeId`), k, r and index, 1 byte each, seed, 4
  bytes, and 4 bytes of 0. It says that this is repair index of r for the k sources from position on, and from which
  seed the coefficients (RLC) or the graph (LDPC) follow. A symbol is a 2-byte length, the inner packet, and zeros up
  to the longest symbol of the unit: true lengths are part of what is coded.
- FEEDBACK: what the sender of the feedback received from its peer: its receipts, each with the path's
  stamp and whether a switch had marked it (CE), and losses (`native/datapath/src/feedback.rs`).

The CRC is needed because packets that a TUN device hands over with ``IFF_VNET_HDR`` carry no valid inner
checksum. A datagram whose CRC is wrong counts as lost.

Where the controller gives agents keys (`DatagramKeys` in `protocol/control.py`), datagrams are authenticated: bytes 24
to 31 hold SipHash-2-4 of bytes 0 to 23 and of the body, by the key of the pair, big-endian. It takes the place of the
CRC, and nothing in a datagram is believed before it. `native/datapath/src/mac.rs` computes it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

HEADER_BYTES: Final = 32
OUTER_BYTES: Final = 20 + 8 + HEADER_BYTES
"""IPv4, UDP and our header: what a tunnelled packet grows by."""


class CodeId(IntEnum):
    """Erasure code of a REPAIR, as on the wire."""

    XOR = 1
    RLC = 2
    LDPC = 3
    MDS = 4


REPAIR_HEAD_BYTES: Final = 12
SYMBOL_LENGTH_BYTES: Final = 2
OVERLAY_OVERHEAD_BYTES: Final = OUTER_BYTES + REPAIR_HEAD_BYTES + SYMBOL_LENGTH_BYTES
"""Overlay MTU = underlay MTU - this: a repair of a full packet must fit too (1500 -> 1426)."""
