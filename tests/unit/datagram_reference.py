"""The datagrams of `protocol.datagram` in plain Python: what the compiled ones are compared with."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from crc32c import crc32c

from capstan_client.errors import CapstanError
from protocol.datagram import HEADER_BYTES, CodeId
from protocol.underlay import TrafficClass

NUMBER_MODULUS: Final = 1 << 32
MAGIC: Final = 0xCA
VERSION: Final = 1
HEADER: Final = struct.Struct("!BBBBIIIIIII")
CRC_OFFSET: Final = 28
_CRC: Final = struct.Struct("!I")
_ZERO_CRC: Final = bytes(4)

FLAG_CODED: Final = 0x04
CLASS_MASK: Final = 0x03


@dataclass(frozen=True, slots=True)
class RepairHead:
    """Head of a REPAIR body: which unit it repairs and how (12 bytes, network byte order).

    ``k`` sources from the header's ``position`` on; this is repair ``index`` of ``r``; ``seed`` gives the
    coefficients (RLC) or the graph (LDPC).
    """

    code: CodeId
    k: int
    r: int
    index: int
    seed: int


class Kind(IntEnum):
    SOURCE = 1
    REPAIR = 2
    FEEDBACK = 3


_KINDS: Final[dict[int, Kind]] = {int(kind): kind for kind in Kind}
_CLASSES: Final = tuple(TrafficClass)


class DatagramError(CapstanError, ValueError):
    """A received datagram is not one of ours, is damaged or is malformed: drop and count it.

    ``reason`` is a short counter name: truncated, foreign, version, kind, crc or body.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Header:
    kind: Kind
    traffic_class: TrafficClass
    session: int
    number: int
    sent_us: int
    flow: int = 0
    position: int = 0
    coded: bool = False


def encode(header: Header, body: bytes | memoryview) -> bytes:
    """Return the datagram of *header* and *body*, with its CRC."""
    flags = header.traffic_class | (FLAG_CODED if header.coded else 0)
    return encode_fields(
        header.kind,
        flags,
        header.session,
        header.number,
        header.sent_us,
        header.flow,
        header.position,
        body,
    )


def encode_fields(
    kind: int,
    flags: int,
    session: int,
    number: int,
    sent_us: int,
    flow: int,
    position: int,
    body: bytes | memoryview,
) -> bytes:
    """Return what `encode` does, from plain numbers: for senders of many datagrams (`flags` as on the wire)."""
    head = HEADER.pack(
        MAGIC,
        VERSION << 4 | kind,
        flags,
        0,
        session,
        number % NUMBER_MODULUS,
        sent_us % NUMBER_MODULUS,
        flow,
        position % NUMBER_MODULUS,
        0,
        0,
    )
    crc = crc32c(body, crc32c(head))
    return b"".join((head[:CRC_OFFSET], _CRC.pack(crc), body))


def decode(datagram: bytes | memoryview) -> tuple[Header, memoryview]:
    """Return the header and body of a received datagram.

    Raises:
        DatagramError: whatever is wrong with it; nothing that a peer sends raises anything else.
    """
    kind, flags, session, number, sent, flow, position = decode_fields(datagram)
    header = Header(
        kind=_KINDS[kind],
        traffic_class=_CLASSES[flags & CLASS_MASK],
        session=session,
        number=number,
        sent_us=sent,
        flow=flow,
        position=position,
        coded=bool(flags & FLAG_CODED),
    )
    return header, memoryview(datagram)[HEADER_BYTES:]


def decode_fields(datagram: bytes | memoryview) -> tuple[int, int, int, int, int, int, int]:
    """Return what `decode` does, as plain numbers: kind, flags, session, number, sent_us, flow, position.

    The body is the rest of the datagram from HEADER_BYTES on.

    Raises:
        DatagramError: as `decode` does.
    """
    if len(datagram) < HEADER_BYTES:
        raise DatagramError(
            "truncated", f"datagram of {len(datagram)} B is shorter than its {HEADER_BYTES} B header"
        )
    (magic, version_kind, flags, _, session, number, sent, flow, position, _, crc) = HEADER.unpack_from(
        datagram
    )
    if magic != MAGIC:
        raise DatagramError("foreign", f"first byte is {magic:#x}, not {MAGIC:#x}")
    if version_kind >> 4 != VERSION:
        raise DatagramError("version", f"version {version_kind >> 4} is not {VERSION}")
    if crc != crc32c(datagram[HEADER_BYTES:], crc32c(_ZERO_CRC, crc32c(datagram[:CRC_OFFSET]))):
        raise DatagramError("crc", "CRC-32C does not match")
    kind = version_kind & 0x0F
    if kind not in _KINDS:
        raise DatagramError("kind", f"kind {kind} is not known")
    return kind, flags, session, number, sent, flow, position


_CODES: Final[dict[int, CodeId]] = {int(code): code for code in CodeId}
_REPAIR_HEAD: Final = struct.Struct("!BBBBII")


def encode_repair(head: RepairHead) -> bytes:
    """Return the head of a REPAIR body."""
    return _REPAIR_HEAD.pack(head.code, head.k, head.r, head.index, head.seed, 0)


def decode_repair(body: memoryview) -> tuple[RepairHead, memoryview]:
    """Return the head and coded symbol of a REPAIR body; DatagramError ("body") if it cannot be one."""
    if len(body) < _REPAIR_HEAD.size + 2:
        raise DatagramError("body", f"repair body of {len(body)} B is too short")
    code, k, r, index, seed, _ = _REPAIR_HEAD.unpack_from(body)
    if code not in _CODES:
        raise DatagramError("body", f"code {code} is not known")
    if k == 0 or index >= r:
        raise DatagramError("body", f"repair {index} of k={k}, r={r} cannot be")
    return RepairHead(_CODES[code], k, r, index, seed), body[_REPAIR_HEAD.size :]


@dataclass(frozen=True, slots=True)
class Receipt:
    """One datagram that arrived: its number, path stamp (0: no top tier), delay and how it was marked.

    ``delay_us`` is receiver's clock minus sender's, modulo 2**32: only differences between paths count
    when the clocks are two machines'.
    """

    number: int
    stamp: int
    delay_us: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """What arrived at, and what is missing for good at, the sender of this feedback."""

    receipts: tuple[Receipt, ...]
    lost: tuple[tuple[int, int], ...]
    """Ranges (first number, count) that the receiver gave up."""
    recovered: int = 0
    """Source packets rebuilt from repairs since the last feedback."""

    MAX_RECEIPTS = 128
    MAX_LOST = 32

    def encode(self) -> bytes:
        """Return the body of a FEEDBACK; receipts must lie within 65535 numbers of the first one.

        Raises:
            ValueError: too many receipts or losses for one datagram, or numbers too far apart.
        """
        return encode_feedback(
            [receipt.number for receipt in self.receipts],
            [receipt.stamp for receipt in self.receipts],
            [receipt.delay_us % NUMBER_MODULUS for receipt in self.receipts],
            self.lost,
            self.recovered,
        )

    @classmethod
    def decode(cls, body: memoryview) -> Feedback:
        """Return *body* decoded; raise DatagramError ("body") unless it is exactly one feedback."""
        numbers, stamps, delays, lost, recovered = decode_feedback(body)
        return cls(tuple(map(Receipt, numbers, stamps, delays)), tuple(lost), recovered)


MAX_RECEIPTS: Final = Feedback.MAX_RECEIPTS
MAX_LOST: Final = Feedback.MAX_LOST
_FEEDBACK_HEAD: Final = struct.Struct("!BBHI")
_LOSS: Final = struct.Struct("!II")
_RECEIPTS: Final = tuple(struct.Struct("!" + "HHI" * count) for count in range(MAX_RECEIPTS + 1))


def encode_feedback(
    numbers: Sequence[int],
    stamps: Sequence[int],
    delays_us: Sequence[int],
    lost: Sequence[tuple[int, int]],
    recovered: int,
) -> bytes:
    """Return what `Feedback.encode` does, from columns: entry i of the first three is one receipt (all below 2**32)."""
    if len(numbers) > MAX_RECEIPTS or len(lost) > MAX_LOST:
        raise ValueError(f"{len(numbers)} receipts and {len(lost)} losses do not fit one feedback")
    first = numbers[0] if numbers else 0
    flat = [0] * (3 * len(numbers))
    offsets = [(number - first + 32768) % NUMBER_MODULUS for number in numbers]
    if offsets and max(offsets) > 0xFFFF:
        raise ValueError(f"receipts from {first} on are too far apart for one feedback")
    flat[0::3] = offsets
    flat[1::3] = stamps
    flat[2::3] = delays_us
    return b"".join(
        (
            _FEEDBACK_HEAD.pack(len(numbers), len(lost), min(recovered, 0xFFFF), first),
            _RECEIPTS[len(numbers)].pack(*flat),
            *(_LOSS.pack(number, count) for number, count in lost),
        )
    )


def decode_feedback(
    body: bytes | memoryview,
) -> tuple[list[int], list[int], list[int], list[tuple[int, int]], int]:
    """Return what `Feedback.decode` does, as columns: numbers, stamps, delays in us; then losses, and recovered."""
    if len(body) < _FEEDBACK_HEAD.size:
        raise DatagramError("body", f"feedback body of {len(body)} B is too short")
    receipts, losses, recovered, first = _FEEDBACK_HEAD.unpack_from(body)
    if receipts > MAX_RECEIPTS or losses > MAX_LOST:
        raise DatagramError("body", f"feedback of {receipts} receipts and {losses} losses cannot be")
    middle = _FEEDBACK_HEAD.size + _RECEIPTS[receipts].size
    expected = middle + losses * _LOSS.size
    if len(body) != expected:
        raise DatagramError("body", f"feedback body is {len(body)} B, not {expected} B")
    flat = _RECEIPTS[receipts].unpack_from(body, _FEEDBACK_HEAD.size)
    base = first - 32768
    return (
        [(base + offset) % NUMBER_MODULUS for offset in flat[0::3]],
        list(flat[1::3]),
        list(flat[2::3]),
        list(_LOSS.iter_unpack(body[middle:])),
        recovered,
    )
