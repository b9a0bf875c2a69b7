"""The switch's end of an OpenFlow 1.5 connection, without a socket: it answers, and says what it was asked for."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

VERSION: Final = 6
HEADER: Final = struct.Struct("!BBHI")
_MULTIPART: Final = struct.Struct("!HHxxxx")
_PORT: Final = struct.Struct("!IHxx6sxx16sII")
_ETHERNET: Final = struct.Struct("!HHxxxxIIIIII")
_METER: Final = struct.Struct("!IHxxxxxxIQQQII")
_PART_HEAD: Final = 16
"""Of a message in a bundle: header, bundle number, padding, flags."""
_LIVE: Final = 4
_SPEED_KBPS: Final = 10_000_000
_CONTENT_BYTES: Final = 60_000
"""Of a multipart reply; the length of a message has 16 bits."""
_MORE: Final = 1
_COOKIE_RULE: Final = 0xFF


class Kind(IntEnum):
    """Types of messages."""

    HELLO = 0
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    PACKET_IN = 10
    PACKET_OUT = 13
    FLOW_MOD = 14
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    BUNDLE_CONTROL = 33
    BUNDLE_ADD = 34


_METERS, _PORTS = 9, 13
_COMMIT: Final = 4


@dataclass(frozen=True, slots=True)
class FrameOut:
    """The controller has a frame sent out of a port."""

    port: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class Committed:
    """An update is whole. rules: the lowest cookie byte of each flow entry that it changed."""

    rules: frozenset[int]


def message(kind: Kind, xid: int, body: bytes = b"") -> bytes:
    """Return a message as it goes on the wire."""
    return HEADER.pack(VERSION, kind, HEADER.size + len(body), xid) + body


def hello() -> bytes:
    """Return what a switch says first: OpenFlow 1.5 alone."""
    return message(Kind.HELLO, 1, struct.pack("!HHI", 1, 8, 1 << VERSION))


def packet_in(port: int, cookie: int, frame: bytes) -> bytes:
    """Return a packet that an entry with *cookie* sent up."""
    match = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, port)
    head = struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), 1, 2, cookie)
    return message(Kind.PACKET_IN, 0, head + match + b"\0\0" + frame)


class OpenFlowPeer:
    """One switch. dpid: its datapath id; ports: their numbers, all of them up."""

    def __init__(self, dpid: int, ports: Sequence[int]) -> None:
        self.dpid = dpid
        self._ports = ports
        self._received = bytearray()
        self._out = [hello()]
        self._rules: set[int] = set()

    def data_to_send(self) -> bytes:
        """Return all that is to be sent, once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive(self, data: bytes) -> Iterator[FrameOut | Committed]:
        """Yield what the controller has the switch do; answers are in `data_to_send` then."""
        self._received += data
        begin = 0
        while len(self._received) - begin >= HEADER.size:
            _, kind, length, xid = HEADER.unpack_from(self._received, begin)
            if len(self._received) - begin < length:
                break
            yield from self._take(kind, xid, bytes(self._received[begin : begin + length]))
            begin += length
        del self._received[:begin]

    def _take(self, kind: int, xid: int, whole: bytes) -> Iterator[FrameOut | Committed]:
        match kind:
            case Kind.FEATURES_REQUEST:
                self._answer(
                    Kind.FEATURES_REPLY, xid, struct.pack("!QIBBxxII", self.dpid, 0, 254, 0, 0x4F, 0)
                )
            case Kind.ECHO_REQUEST:
                self._answer(Kind.ECHO_REPLY, xid, whole[HEADER.size :])
            case Kind.BARRIER_REQUEST:
                self._answer(Kind.BARRIER_REPLY, xid)
            case Kind.MULTIPART_REQUEST:
                self._answer_multipart(xid, whole)
            case Kind.BUNDLE_ADD if whole[_PART_HEAD + 1] == Kind.FLOW_MOD:
                self._rules.add(whole[_PART_HEAD + HEADER.size + 7] & _COOKIE_RULE)
            case Kind.BUNDLE_CONTROL if struct.unpack_from("!H", whole, 12)[0] == _COMMIT:
                rules, self._rules = frozenset(self._rules), set()
                yield Committed(rules)
            case Kind.PACKET_OUT:
                yield _frame_out(whole)

    def _answer(self, kind: Kind, xid: int, body: bytes = b"") -> None:
        self._out.append(message(kind, xid, body))

    def _answer_multipart(self, xid: int, whole: bytes) -> None:
        (kind,) = struct.unpack_from("!H", whole, HEADER.size)
        body = b""
        if kind == _PORTS:
            body = b"".join(map(_port, self._ports))
        elif kind == _METERS and (meter := struct.unpack_from("!I", whole, 16)[0]) < 1 << 16:
            body = _METER.pack(meter, _METER.size, 1, 0, 0, 0, 0, 0)
        entry = _PORT.size + _ETHERNET.size if kind == _PORTS else max(1, len(body))
        step = max(entry, _CONTENT_BYTES // entry * entry)
        for begin in range(0, max(1, len(body)), step):
            more = _MORE if begin + step < len(body) else 0
            self._answer(Kind.MULTIPART_REPLY, xid, _MULTIPART.pack(kind, more) + body[begin : begin + step])


def _port(number: int) -> bytes:
    mac = b"\x02\0" + number.to_bytes(4)
    head = _PORT.pack(number, _PORT.size + _ETHERNET.size, mac, b"p%d" % number, 0, _LIVE)
    return head + _ETHERNET.pack(0, _ETHERNET.size, 0, 0, 0, 0, _SPEED_KBPS, 0)


def _frame_out(whole: bytes) -> FrameOut:
    """Return the frame of a packet-out whose one action is an output."""
    (actions_bytes,) = struct.unpack_from("!H", whole, 12)
    (match_bytes,) = struct.unpack_from("!H", whole, 18)
    actions = 16 + -(-match_bytes // 8) * 8
    (port,) = struct.unpack_from("!I", whole, actions + 4)
    return FrameOut(port, whole[actions + actions_bytes :])
