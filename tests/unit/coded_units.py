"""Coding units as they can be seen on the wire, read without any code of the sender's."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import NamedTuple


class SeenUnit(NamedTuple):
    """k sources and r repairs; before: payload of the flow's packets before it, bytes; indices: of repairs seen."""

    flow: int
    position: int
    code: int
    k: int
    r: int
    before: int
    indices: frozenset[int]


class UnitWatch:
    """Takes every datagram of one sender (TCP over IPv4 inside), knows its units by what their repairs say."""

    def __init__(self) -> None:
        self._payload: dict[int, dict[int, int]] = defaultdict(dict)
        self._repairs: dict[tuple[int, int], list[tuple[int, int, int, int]]] = defaultdict(list)
        self.classes: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Of each flow (position, class) of sources."""
        self.ports: dict[int, tuple[int, int]] = {}

    def see(self, data: bytes) -> None:
        magic, kind, flags = data[0], data[1] & 15, data[2]
        assert magic == 0xCA
        flow, position = struct.unpack_from("!II", data, 16)
        if kind == 1 and flags & 3 in (1, 2):
            packet = data[32:]
            head = (packet[0] & 15) * 4
            self._payload[flow][position] = len(packet) - head - (packet[head + 12] >> 4) * 4
            self.classes[flow].append((position, flags & 3))
            self.ports[flow] = struct.unpack_from("!HH", packet, head)
        elif kind == 2:
            code, k, r, index = struct.unpack_from("!BBBB", data, 32)
            self._repairs[flow, position].append((code, k, r, index))

    def units(self, port: int | None = None, *, whole: bool = True) -> list[SeenUnit]:
        """Return all units that have repairs. *whole*: each must have all of them, each once.

        port: of flows to that one only.
        """
        seen = []
        for (flow, position), repairs in self._repairs.items():
            if port is not None and self.ports.get(flow, (0, 0))[1] != port:
                continue
            (code, k, r), *others = {repair[:3] for repair in repairs}
            assert not others, "repairs of one unit contradict one another"
            indices = [repair[3] for repair in repairs]
            if whole:
                assert sorted(indices) == list(range(r))
            payload = self._payload[flow]
            assert not whole or all(position + index in payload for index in range(k))
            before = sum(payload[one] for one in payload if one < position)
            seen.append(SeenUnit(flow, position, code, k, r, before, frozenset(indices)))
        return seen

    def sources(self, flow: int) -> int:
        return len(self._payload[flow])
