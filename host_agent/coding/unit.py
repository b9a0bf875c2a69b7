"""The sender's side of one flow's coding: packets go in as they leave, repairs come out when a unit closes.

Sources are sent at once by the caller (the codes are systematic); the encoder only keeps them until their unit
closes: at its size k, on a push (PSH or a drained queue), on a jump of positions, or when no packet came for
``flush_s``. The number of repairs is that of the unit's actual k.

A push does not close a unit that is a window, for TCP sets PSH at the end of every write, in the middle of windows;
such a unit closes when no packet follows the push for PUSH_SHARE of ``flush_s``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from host_agent.coding.codes import MAX_PACKET_BYTES, Code, code_named
from host_agent.coding.redundancy import repairs_for
from host_agent.wire import Rows
from protocol.datagram import NUMBER_MODULUS, SYMBOL_LENGTH_BYTES, RepairHead
from protocol.policy import CodingPolicy

PUSH_SHARE: Final = 0.25


class Repair(NamedTuple):
    """One repair to send: position of its unit's first source, its head, its coded symbol."""

    position: int
    head: RepairHead
    symbol: bytes


Piece = bytes | tuple[Rows, int, int, int, int]
"""A packet, or packets in rows: those, the first one's row, the row behind the last one's, the offset at which packets
begin in their rows, and the length of the last one."""


class ClosedUnit(NamedTuple):
    """A unit whose repairs are to be made."""

    position: int
    """Of its first source."""
    code: Code
    k: int
    r: int
    seed: int
    symbol_bytes: int
    pieces: list[Piece]

    def repairs(self) -> list[Repair]:
        """Its repairs, each by itself: what `capstan_native.seal_repairs` writes into datagrams."""
        packets: list[bytes] = []
        for piece in self.pieces:
            if isinstance(piece, bytes):
                packets.append(piece)
            else:
                rows, begin, end, front, last_bytes = piece
                packets += [row[front:].tobytes() for row in rows[begin:end]]
                packets[-1] = packets[-1][:last_bytes]
        symbols = self.code.encode(packets, self.r, self.seed)
        return [
            Repair(self.position, RepairHead(self.code.id, self.k, self.r, index, self.seed), symbol)
            for index, symbol in enumerate(symbols)
        ]


class UnitEncoder:
    """One sending flow. Times are in seconds and must not run backwards."""

    def __init__(self, coding: CodingPolicy, rng: np.random.Generator) -> None:
        self._coding = coding
        self._code = code_named(coding.code)
        self._rng = rng
        self._blocking_probability = 0.0
        self._sent_bytes = 0
        self._window: int | None = None
        self._k = coding.max_k
        self._aim = (0, 0.0)
        """Packets and pB of the unit that was closed last, and its repairs: the next one is mostly alike."""
        self._r = 0
        self._first = 0
        self._pieces: list[Piece] = []
        self._count = 0
        self._longest = 0
        self._last = 0.0
        self._pushed = False
        self._windows = coding.unit == "window"
        self.units = 0
        """Units closed so far."""
        self.repairs = 0
        """Repairs made so far."""

    def set_redundancy(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> None:
        """What the next units aim at: pB (0..1), and unit size k (cut to 1..max_k).

        *sent_bytes*: payload that the flow has sent before them. *window*: its congestion window in packets, if known.
        """
        self._blocking_probability = blocking_probability
        self._sent_bytes = sent_bytes
        self._window = window
        self._k = max(1, min(k, self._coding.max_k))

    @property
    def draws_nothing(self) -> bool:
        """Whether no random number is needed, for the code has no seeds."""
        return not self._code.seeded

    @property
    def open_packets(self) -> int:
        """Packets in the unit that is still open."""
        return self._count

    def add(self, position: int, packet: bytes, now: float, push: bool) -> list[Repair]:
        """`take`, with the repairs made."""
        return _repairs(self.take(position, packet, now, push))

    def take(self, position: int, packet: bytes, now: float, push: bool) -> list[ClosedUnit]:
        """Take in the source packet that leaves as *position* (modulo 2**32; +1 for each of the flow).

        Returns:
            The units that want repairs after it: the one that this packet closes, and before it, an older one that
            had to close because *position* does not follow it.

        Raises:
            ValueError: the packet is empty or above 65535 B: such a packet cannot be coded.
        """
        if not 0 < len(packet) <= MAX_PACKET_BYTES:
            raise ValueError(f"cannot code a packet of {len(packet)} B: it must be 1..{MAX_PACKET_BYTES} B")
        return self._take(position, bytes(packet), 1, len(packet), now, push)

    @property
    def room(self) -> int:
        """Packets that the unit still takes until it closes at its size."""
        return max(1, self._k - self._count)

    def take_rows(
        self,
        position: int,
        rows: Rows,
        begin: int,
        end: int,
        front: int,
        last_bytes: int,
        now: float,
        push: bool,
    ) -> list[ClosedUnit]:
        """As `take`, of packets at consecutive positions, `room` at most; *push* is the last one's.

        They lie in rows *begin* to *end* behind *front* bytes of each and stay there unchanged; the last one has
        *last_bytes*.
        """
        count, width = end - begin, rows.shape[1]
        if not 0 < count <= self.room or not 0 < last_bytes <= width - front <= MAX_PACKET_BYTES:
            raise ValueError(
                f"a unit with room for {self.room} packets cannot take {count} of {width - front} B, the last of "
                f"{last_bytes} B"
            )
        longest = width - front if count > 1 else last_bytes
        return self._take(position, (rows, begin, end, front, last_bytes), count, longest, now, push)

    def _take(
        self, position: int, piece: Piece, count: int, longest: int, now: float, push: bool
    ) -> list[ClosedUnit]:
        closed: list[ClosedUnit] = []
        if self._count and (position - self._first) % NUMBER_MODULUS != self._count:
            closed = self.end()
        if not self._count:
            self._first = position % NUMBER_MODULUS
        self._pieces.append(piece)
        self._count += count
        if longest > self._longest:
            self._longest = longest
        self._last = now
        self._pushed = push
        if (push and not self._windows) or self._count >= self._k:
            closed += self.end()
        return closed

    def deadline(self) -> float | None:
        """When `flush` has something to do; None while no unit is open."""
        if not self._count:
            return None
        soon = PUSH_SHARE if self._pushed and self._windows else 1.0
        return self._last + soon * self._coding.flush_s

    def flush(self, now: float) -> list[Repair]:
        """Close the open unit if its deadline has come."""
        deadline = self.deadline()
        return self.close() if deadline is not None and now >= deadline else []

    def close(self) -> list[Repair]:
        """`end`, with the repairs made."""
        return _repairs(self.end())

    def _repairs_for(self, k: int) -> int:
        aim = (k, self._blocking_probability)
        if aim != self._aim or self._coding.redundancy == "htpc":  # which asks for more than these
            self._aim = aim
            self._r = repairs_for(self._coding, aim[1], k, self._sent_bytes, self._window)
        return self._r

    def end(self) -> list[ClosedUnit]:
        """Close the open unit, whatever its deadline (end of flow, change of policy or class)."""
        k, pieces, longest = self._count, self._pieces, self._longest
        self._count, self._pieces, self._longest = 0, [], 0
        if not k:
            return []
        self.units += 1
        r = self._repairs_for(k)
        if r == 0:
            return []
        self.repairs += r
        seed = int(self._rng.integers(1 << 32)) if self._code.seeded else 0
        return [ClosedUnit(self._first, self._code, k, r, seed, SYMBOL_LENGTH_BYTES + longest, pieces)]


def _repairs(units: list[ClosedUnit]) -> list[Repair]:
    return [repair for unit in units for repair in unit.repairs()]
