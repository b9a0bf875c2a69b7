"""LLDP frames that find links (IEEE 802.1AB-2016), signed so that no others are believed.

A frame says which port of which switch sent it, when, and carries a keyed hash (BLAKE2b) of just that in an
organisation's TLV. So frames of other LLDP speakers, of another controller (or of this one before its restart) and
forged ones are recognised, and replayed ones are too old. What no signature shows is a pair of
hosts that relay frames to each other at once.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from controller.fabric.graph import PortRef

ETH_LLDP: Final = 0x88CC
NEAREST_BRIDGE: Final = bytes.fromhex("0180c200000e")
CONTROLLER_MAC: Final = bytes.fromhex("02ca95000001")
"""Source address of every frame that the controller itself sends (locally administered)."""

MAX_AGE_S: Final = 10.0
"""A frame older than this is not believed; queues of the fabric hold less."""
TTL_S: Final = 10
_CHASSIS_ID, _PORT_ID, _TIME_TO_LIVE, _ORGANISATION = 1, 2, 3, 127
_LOCALLY_ASSIGNED: Final = 7
_ORGANISATION_ID: Final = bytes.fromhex("02ca95") + b"\x01"
_SIGNED: Final = struct.Struct("!QIQ")
"""dpid, port, time in milliseconds."""
_DIGEST_BYTES: Final = 16


def encode_lldp(sender: PortRef, now: float, key: bytes) -> bytes:
    """Return the frame that the controller sends out of port *sender* at *now* (seconds)."""
    signed = _SIGNED.pack(sender.dpid, sender.port, int(now * 1000))
    return b"".join(
        (
            NEAREST_BRIDGE,
            CONTROLLER_MAC,
            ETH_LLDP.to_bytes(2, "big"),
            _tlv(_CHASSIS_ID, bytes((_LOCALLY_ASSIGNED,)) + f"{sender.dpid:016x}".encode()),
            _tlv(_PORT_ID, bytes((_LOCALLY_ASSIGNED,)) + str(sender.port).encode()),
            _tlv(_TIME_TO_LIVE, TTL_S.to_bytes(2, "big")),
            _tlv(_ORGANISATION, _ORGANISATION_ID + signed + _digest(signed, key)),
            _tlv(0, b""),
        )
    )


def decode_lldp(frame: bytes, now: float, key: bytes) -> PortRef | None:
    """Return the port that sent *frame*; None if it is not a fresh frame of ours, whatever it is instead."""
    if len(frame) < 14 or int.from_bytes(frame[12:14], "big") != ETH_LLDP:
        return None
    offset = 14
    expected = len(_ORGANISATION_ID) + _SIGNED.size + _DIGEST_BYTES
    while offset + 2 <= len(frame):
        head = int.from_bytes(frame[offset : offset + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        value = frame[offset + 2 : offset + 2 + length]
        if kind == 0 or len(value) < length:
            return None
        if kind == _ORGANISATION and length == expected and value.startswith(_ORGANISATION_ID):
            signed, digest = value[len(_ORGANISATION_ID) : -_DIGEST_BYTES], value[-_DIGEST_BYTES:]
            if not hmac.compare_digest(digest, _digest(signed, key)):
                return None
            dpid, port, sent_ms = _SIGNED.unpack(signed)
            return PortRef(dpid, port) if -1 <= now - sent_ms / 1000 <= MAX_AGE_S else None
        offset += 2 + length
    return None


def _tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def _digest(signed: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(signed, key=key, digest_size=_DIGEST_BYTES, person=b"capstan-lldp").digest()
