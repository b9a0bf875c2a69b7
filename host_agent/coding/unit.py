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

from host_agent.coding.codes import MAX_PACKET_BYTES, code_named
from host_agent.coding.redundancy import repairs_for
from protocol.datagram import NUMBER_MODULUS, RepairHead
from protocol.policy import CodingPolicy

PUSH_SHARE: Final = 0.25


class Repair(NamedTuple):
    """One repair to send: position of its unit's first source, its head, its coded symbol."""

    position: int
    head: RepairHead
    symbol: bytes


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
        self._first = 0
        self._packets: list[bytes] = []
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
    def open_packets(self) -> int:
        """Packets in the unit that is still open."""
        return len(self._packets)

    def add(self, position: int, packet: bytes, now: float, push: bool) -> list[Repair]:
        """Take in the source packet that leaves as *position* (modulo 2**32; +1 for each of the flow).

        Returns:
            The repairs to send after it: of the unit that this packet closes, and before those, of an older unit
            that had to close because *position* does not follow it.

        Raises:
            ValueError: the packet is empty or above 65535 B: such a packet cannot be coded.
        """
        if not 0 < len(packet) <= MAX_PACKET_BYTES:
            raise ValueError(f"cannot code a packet of {len(packet)} B: it must be 1..{MAX_PACKET_BYTES} B")
        repairs: list[Repair] = []
        if self._packets and (position - self._first) % NUMBER_MODULUS != len(self._packets):
            repairs = self._close()
        if not self._packets:
            self._first = position % NUMBER_MODULUS
        self._packets.append(bytes(packet))
        self._last = now
        self._pushed = push
        if (push and not self._windows) or len(self._packets) >= self._k:
            repairs += self._close()
        return repairs

    @property
    def room(self) -> int:
        """Packets that the unit still takes until it closes at its size."""
        return max(1, self._k - len(self._packets))

    def add_run(self, position: int, packets: list[bytes], now: float, push: bool) -> list[Repair]:
        """As `add`, of packets at consecutive positions, `room` at most; *push* is the last one's."""
        if not packets or len(packets) > self.room:
            raise ValueError(f"a unit with room for {self.room} packets cannot take {len(packets)}")
        repairs = self.add(position, packets[0], now, push and len(packets) == 1)
        if len(packets) == 1:
            return repairs
        self._packets += packets[1:-1]
        return repairs + self.add(position + len(packets) - 1, packets[-1], now, push)

    def deadline(self) -> float | None:
        """When `flush` has something to do; None while no unit is open."""
        if not self._packets:
            return None
        soon = PUSH_SHARE if self._pushed and self._windows else 1.0
        return self._last + soon * self._coding.flush_s

    def flush(self, now: float) -> list[Repair]:
        """Close the open unit if its deadline has come."""
        deadline = self.deadline()
        return self._close() if deadline is not None and now >= deadline else []

    def close(self) -> list[Repair]:
        """Close the open unit, whatever its deadline (end of flow, change of policy or class)."""
        return self._close()

    def _close(self) -> list[Repair]:
        packets, self._packets = self._packets, []
        if not packets:
            return []
        self.units += 1
        k = len(packets)
        r = repairs_for(self._coding, self._blocking_probability, k, self._sent_bytes, self._window)
        if r == 0:
            return []
        self.repairs += r
        seed = int(self._rng.integers(1 << 32))
        symbols = self._code.encode(packets, r, seed)
        return [
            Repair(self._first, RepairHead(code=self._code.id, k=k, r=r, index=index, seed=seed), symbol)
            for index, symbol in enumerate(symbols)
        ]
