"""Packet <-> symbol: a 2-byte length (network byte order), the packet, zeros up to the unit's longest symbol.

Packets of one unit differ in length, so true lengths are part of what is coded. The zeros are checked when a
symbol is rebuilt: rebuilt garbage passes for a packet with a probability of about 2^-8 per byte of padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from host_agent.coding.gf256 import WORD_BYTES, Words
from protocol.datagram import SYMBOL_LENGTH_BYTES

MAX_PACKET_BYTES: Final = 0xFFFF
MAX_SYMBOL_BYTES: Final = SYMBOL_LENGTH_BYTES + MAX_PACKET_BYTES


class SymbolError(ValueError):
    """A rebuilt symbol is not a packet with its zeros: the unit's symbols contradict one another."""


def symbol_bytes(packet: bytes) -> int:
    """Length in bytes of *packet*'s own symbol, without zeros."""
    return SYMBOL_LENGTH_BYTES + len(packet)


def words_of(length: int) -> int:
    """64-bit words that hold *length* bytes."""
    return -(-length // WORD_BYTES)


def pack(packets: Sequence[bytes | None], length: int) -> Words:
    """Symbols of *packets* as rows of words, (len(packets), words_of(length)), read-only; None gives a zero row.

    Raises:
        ValueError: a packet does not fit a symbol of *length* bytes or is above 65535 B.
    """
    padded = words_of(length) * WORD_BYTES
    rows = []
    for packet in packets:
        if packet is None:
            rows.append(bytes(padded))
            continue
        size = len(packet)
        if size > MAX_PACKET_BYTES or size + SYMBOL_LENGTH_BYTES > length:
            raise ValueError(f"packet of {size} B does not fit a symbol of {length} B")
        rows.append((size.to_bytes(SYMBOL_LENGTH_BYTES, "big") + packet).ljust(padded, b"\0"))
    return np.frombuffer(b"".join(rows), dtype=np.uint64).reshape(len(rows), padded // WORD_BYTES)


def row_of(symbol: bytes | memoryview, length: int) -> Words:
    """One received symbol of *length* bytes as a row of words (words_of(length),), read-only."""
    padded = bytes(symbol).ljust(words_of(length) * WORD_BYTES, b"\0")
    return np.frombuffer(padded, dtype=np.uint64)


def symbol_of(row: Words, length: int) -> bytes:
    """The first *length* bytes of a row of words: what goes out as a repair's symbol."""
    return row.tobytes()[:length]


def unpack(row: Words, length: int) -> bytes:
    """The packet of a rebuilt symbol of *length* bytes.

    Raises:
        SymbolError: the coded length is above what fits, or the rest is not zeros.
    """
    data = row.tobytes()
    size = int.from_bytes(data[:SYMBOL_LENGTH_BYTES], "big")
    end = SYMBOL_LENGTH_BYTES + size
    if size == 0 or end > length:
        raise SymbolError(f"rebuilt length of {size} B does not fit a symbol of {length} B")
    if data.count(0, end) != len(data) - end:
        raise SymbolError(f"rebuilt packet of {size} B is not followed by zeros")
    return data[SYMBOL_LENGTH_BYTES:end]
