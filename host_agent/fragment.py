"""Fragments of inner IPv4 packets that are too large for the tunnel and may be fragmented (RFC 791)."""

from __future__ import annotations

from typing import Final

from host_agent.checksums import checksum

_DONT_FRAGMENT: Final = 0x4000
_MORE: Final = 0x2000
_COPIED: Final = 0x80
_END_OF_OPTIONS: Final = 0
_NO_OPERATION: Final = 1


def may_fragment(packet: bytes) -> bool:
    """Whether *packet* is IPv4 without "don't fragment"."""
    return packet[0] >> 4 == 4 and not packet[6] & 0x40


def fragments(packet: bytes, mtu: int) -> list[bytes]:
    """*packet* (IPv4, checksums finished) as fragments of at most *mtu* bytes each; at least 68."""
    header = (packet[0] & 0x0F) * 4
    word = int.from_bytes(packet[6:8], "big")
    offset, more = word & 0x1FFF, word & _MORE
    data = packet[header:]
    first = packet[:header]
    others = first[:20] + _copied_options(first[20:])
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        head = first if at == 0 else others
        room = (mtu - len(head)) // 8 * 8
        part = data[at : at + room]
        last = at + len(part) == len(data)
        flags = more if last else _MORE
        parts.append(_with_fields(head, len(part), flags | offset + at // 8) + part)
        at += len(part)
    return parts


def _with_fields(head: bytes, payload: int, word: int) -> bytes:
    head = (
        bytes((0x40 | len(head) // 4,))
        + head[1:2]
        + (len(head) + payload).to_bytes(2, "big")
        + head[4:6]
        + word.to_bytes(2, "big")
        + head[8:10]
        + bytes(2)
        + head[12:]
    )
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]


def _copied_options(options: bytes) -> bytes:
    """Options that every fragment must carry, padded to 4 bytes."""
    kept = b""
    while options and options[0] != _END_OF_OPTIONS:
        if options[0] == _NO_OPERATION:
            options = options[1:]
            continue
        length = options[1] if len(options) > 1 else 0
        if not 2 <= length <= len(options):
            break
        if options[0] & _COPIED:
            kept += options[:length]
        options = options[length:]
    return kept.ljust(-(-len(kept) // 4) * 4, b"\0")
