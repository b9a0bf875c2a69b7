"""Holding, pacing and stopping a TCP sender by the window that it is told. Pure.

The agent sees every acknowledgement before its host does. By its window field it says how far the host may send: to an
*edge* that stands while the flow waits and moves on at the granted rate. The edge is never behind what the host has
sent: whatever has left is acknowledged as usual, so nothing times out and nothing is sent twice; the host finds a
window that closes, as from a receiver that reads slowly (RFC 9293, 3.8.6). When the edge moves and no acknowledgement
comes to tell it, the last one is given to the host again with the new window.

Windows are scaled (RFC 7323) by what the SYNs say, or, where those were not seen, the kernel (`Valve.join`).
"""

from __future__ import annotations

import math
from typing import Final

from host_agent.checksum import checksum, pseudo_sum
from host_agent.inner_packet import ACK, FIN, RST, SYN, InnerPacket
from protocol.datagram import NUMBER_MODULUS, serial_difference

_MOST_SCALE: Final = 14
_TIMESTAMPS: Final = 8
_TIMESTAMPS_BYTES: Final = 12
_WINDOW_SCALE: Final = 3
_SEGMENT: Final = 2
_DEFAULT_SEGMENT_BYTES: Final = 536
_LEAST_GRAINS: Final = 2


class Valve:
    """The sending side of one TCP connection of the host.

    Args:
        burst_s: how far the edge may be ahead of what was sent, in seconds of the granted rate; at least two segments,
            or two steps of the window.
    """

    def __init__(self, burst_s: float) -> None:
        self._burst_s: Final = burst_s
        self._scale: int | None = None
        """Of the windows that the peer tells; None: not known."""
        self._offered: int | None = None
        """Our host's own; -1: its SYN had none."""
        self._highest: int | None = None
        """Sequence number behind all that the host has sent."""
        self.sent_bytes = 0
        """Payload that has left, each byte once."""
        self.segment_bytes = _DEFAULT_SEGMENT_BYTES
        """Most payload of a packet."""
        self._most_segment_bytes = 0
        """The same where the peer's windows have room for two; 0: the same."""
        self._stamped = False
        self._rate = math.inf
        self._edge = 0
        self._part = 0.0
        """Bytes that are not whole yet, of the edge."""
        self._at = 0.0
        self._told: int | None = None
        """Sequence number up to which the host was last told that it may send."""
        self._last: tuple[bytes, InnerPacket, int, int] | None = None
        """The newest packet of the peer, its ACK, and its window in bytes."""

    @property
    def known(self) -> bool:
        """Whether both SYNs were seen, or the kernel was asked, so that the connection can be held."""
        return self._scale is not None and self._highest is not None

    def join(self, scale: int, segment_bytes: int, most_segment_bytes: int = 0) -> None:
        """What the SYNs of an open connection agreed, and its segments now. After the first `left`.

        most_segment_bytes: of its segments once its peer tells windows with room for two of them. A host that
        waits for the room of a whole segment must not be told less, again and again.
        """
        self._scale = min(scale, _MOST_SCALE)
        self.segment_bytes = segment_bytes
        self._most_segment_bytes = most_segment_bytes

    def left(self, packet: bytes, seen: InnerPacket) -> None:
        """The host has sent a packet, or a super-packet."""
        at = seen.transport
        flags, start = packet[at + 13], _number(packet, at + 4)
        if flags & SYN:
            self._offered = _option(packet, at, _WINDOW_SCALE, -1)
            self._stamped = _option(packet, at, _TIMESTAMPS, -1) >= 0
            self.segment_bytes = _option(packet, at, _SEGMENT, _DEFAULT_SEGMENT_BYTES)
            self._highest = start
            self._edge, self._part = (start + 1) % NUMBER_MODULUS, 0.0
            self._told = self._last = None
        extra = bool(flags & SYN) + bool(flags & FIN)
        end = (start + seen.payload + extra) % NUMBER_MODULUS
        if self._highest is None:
            self._highest = start
        new = serial_difference(end, self._highest)
        if new > 0:
            self._highest = end
            self.sent_bytes += max(0, new - extra)

    def set_rate(self, bytes_per_s: float, now: float) -> None:
        """From now on the host may send so much payload per second; 0: nothing, inf: whatever TCP lets it."""
        self._advance(now)
        if math.isinf(self._rate) and self._highest is not None:
            self._edge = self._highest
            self._part = 0.0
        elif self._rate == 0 < bytes_per_s and self._highest is not None:
            self._edge = (self._highest + self._grain) % NUMBER_MODULUS  # a segment may go at once
        self._rate = bytes_per_s

    def arrived(self, packet: bytes, seen: InnerPacket, now: float) -> bytes:
        """A packet of the peer, as the host is to get it."""
        at = seen.transport
        flags = packet[at + 13]
        if flags & SYN:
            scale = _option(packet, at, _WINDOW_SCALE, -1)
            theirs = _option(packet, at, _SEGMENT, _DEFAULT_SEGMENT_BYTES)
            stamped = self._stamped and _option(packet, at, _TIMESTAMPS, -1) >= 0
            self.segment_bytes = max(1, min(self.segment_bytes, theirs) - stamped * _TIMESTAMPS_BYTES)
            if self._offered is not None:
                self._scale = min(scale, _MOST_SCALE) if min(scale, self._offered) >= 0 else 0
        if not flags & ACK or flags & RST or not self.known:
            return packet
        scale = 0 if flags & SYN else self._scale or 0
        ack, window = _number(packet, at + 8), int.from_bytes(packet[at + 14 : at + 16], "big") << scale
        assert self._highest is not None
        if window >= 2 * self._most_segment_bytes:
            self.segment_bytes = max(self.segment_bytes, self._most_segment_bytes)
        if serial_difference(ack, self._highest) > 0:
            self._highest = ack  # sent before we knew of it
        if self._overtaken(packet, at, ack):
            told = self._told
            packet = self._limited(packet, at, ack, window, scale, now)
            self._told = told
            return packet
        self._last = (packet, seen, ack, window)
        return self._limited(packet, at, ack, window, scale, now)

    def update(self, now: float) -> bytes | None:
        """A packet that tells the host a window that no acknowledgement has told it yet; None if there is no need."""
        if self._last is None or self._told is None:
            return None
        packet, seen, ack, window = self._last
        if serial_difference(self._limit(ack, window, now), self._told) < self._grain:
            return None
        bare = _bare_ack(packet, seen)
        at = seen.transport
        return self._limited(bare, at, ack, window, self._scale or 0, now)

    def deadline(self) -> float | None:
        """When `update` may have something to tell, if nothing comes of the peer by then."""
        if not 0 < self._rate < math.inf or self._last is None or self._told is None:
            return None
        _, _, ack, window = self._last
        assert self._highest is not None
        if serial_difference(self._told, self._highest) >= self.segment_bytes:
            return None  # it has not used what it was told
        if serial_difference(ack + window, self._told) < self._grain:
            return None  # nor has the peer room for more
        missing = max(0, serial_difference(self._told, self._edge) + self._grain + 1)
        return self._at + missing / self._rate

    @property
    def _grain(self) -> int:
        """Bytes that can be told at least: a segment, or a step of the window."""
        return max(self.segment_bytes, 1 << (self._scale or 0))

    def _overtaken(self, packet: bytes, at: int, ack: int) -> bool:
        """Whether a newer packet of the peer was faster on another path: the host takes no window from an old one
        (RFC 9293, 3.10.7.4; RFC 7323, 5)."""
        if self._last is None:
            return False
        newest, seen, acked, _ = self._last
        ahead = serial_difference(ack, acked)
        if ahead or not self._stamped:
            return ahead < 0
        stamps = _option(packet, at, _TIMESTAMPS, 0), _option(newest, seen.transport, _TIMESTAMPS, 0)
        return serial_difference(stamps[0] >> 32, stamps[1] >> 32) < 0

    def _advance(self, now: float) -> None:
        """Move the edge to where it is by now."""
        if self._highest is None:
            self._at = now
            return
        if 0 < self._rate < math.inf:
            moved = self._part + self._rate * max(0.0, now - self._at)
            self._edge = (self._edge + int(moved)) % NUMBER_MODULUS
            self._part = moved - int(moved)
            most = max(_LEAST_GRAINS * self._grain, int(self._rate * self._burst_s))
            if serial_difference(self._edge, self._highest) > most:
                self._edge, self._part = (self._highest + most) % NUMBER_MODULUS, 0.0
        if serial_difference(self._edge, self._highest) < 0:
            self._edge = self._highest
        self._at = max(self._at, now)

    def _limit(self, ack: int, window: int, now: float) -> int:
        """Sequence number up to which the host may send: the peer's, or the edge if that is nearer."""
        self._advance(now)
        end = (ack + window) % NUMBER_MODULUS
        if math.isinf(self._rate) or serial_difference(end, self._edge) <= 0:
            return end
        return self._edge

    def _limited(self, packet: bytes, at: int, ack: int, window: int, scale: int, now: float) -> bytes:
        limit, step = self._limit(ack, window, now), 1 << scale
        assert self._highest is not None
        segments = max(0, serial_difference(limit, self._highest)) // self.segment_bytes
        if limit == (ack + window) % NUMBER_MODULUS:
            field = window >> scale
        elif step > self.segment_bytes:
            field = max(0, serial_difference(limit, ack)) // step
        else:
            # Whole segments: Linux sends a piece of one where a window ends amid it, and pieces wait for delayed ACKs.
            room = serial_difference(self._highest, ack) + segments * self.segment_bytes
            field = max(0, -(-room // step) if segments else room // step)
        field = min(field, window >> scale)
        self._told = (ack + (field << scale)) % NUMBER_MODULUS
        return _with_window(packet, at, field)


def _number(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 4], "big")


def _with_window(packet: bytes, at: int, field: int) -> bytes:
    """The packet with another window and a checksum that fits as the old one did (RFC 1624, Eq. 3)."""
    old = int.from_bytes(packet[at + 14 : at + 16], "big")
    if old == field:
        return packet
    total = (0xFFFF - int.from_bytes(packet[at + 16 : at + 18], "big")) + (0xFFFF - old) + field
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    data = bytearray(packet)
    data[at + 14 : at + 16] = field.to_bytes(2, "big")
    data[at + 16 : at + 18] = (0xFFFF - total).to_bytes(2, "big")
    return bytes(data)


def _option(packet: bytes, at: int, kind: int, default: int) -> int:
    """The value of a TCP option, as one number; *default* where there is none."""
    here, end = at + 20, at + (packet[at + 12] >> 4) * 4
    while here < end and packet[here] != 0:
        if packet[here] == 1:
            here += 1
            continue
        size = packet[here + 1] if here + 1 < end else 0
        if size < 2 or here + size > end:
            break
        if packet[here] == kind:
            return int.from_bytes(packet[here + 2 : here + size], "big")
        here += size
    return default


def _bare_ack(packet: bytes, seen: InnerPacket) -> bytes:
    """A pure ACK that says what *packet* said: without its payload, and of its options with the timestamps only."""
    at = seen.transport
    flags = packet[at + 13]
    sequence = (
        _number(packet, at + 4) + seen.payload + bool(flags & SYN) + bool(flags & FIN)
    ) % NUMBER_MODULUS
    stamps = _option(packet, at, _TIMESTAMPS, -1)
    options = b"" if stamps < 0 else b"\x01\x01\x08\x0a" + stamps.to_bytes(8, "big")
    segment = bytearray(packet[at : at + 4] + sequence.to_bytes(4, "big") + packet[at + 8 : at + 12])
    segment += bytes(((20 + len(options)) // 4 << 4, ACK)) + packet[at + 14 : at + 16] + bytes(4) + options
    segment[16:18] = checksum(segment, pseudo_sum(seen.flow[1:-4], seen.protocol, len(segment))).to_bytes(
        2, "big"
    )
    head = bytearray(packet[:at])
    if seen.version == 4:
        head[2:4] = (at + len(segment)).to_bytes(2, "big")
        head[10:12] = b"\0\0"
        head[10:12] = checksum(head).to_bytes(2, "big")
    else:
        head[4:6] = (at - 40 + len(segment)).to_bytes(2, "big")
    return bytes(head + segment)
