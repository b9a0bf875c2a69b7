"""Parity code: repair j is the XOR of the sources i with ``i mod r == j``, so bursts spread over the repairs.

With r = 1 it is the code of Corrective (one XOR per window). Each repair heals one loss among its own sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from host_agent.coding.code import Code, ContradictionError
from host_agent.coding.gf256 import Words
from protocol.datagram import CodeId


class Xor(Code):
    name = "xor"
    id = CodeId.XOR

    def most_repairs(self, k: int) -> int:
        return k

    def encode(self, sources: Words, r: int, seed: int) -> Words:
        return np.stack([np.bitwise_xor.reduce(sources[j::r], axis=0) for j in range(r)])

    def worth_trying(self, missing: int, repairs: int) -> bool:
        return repairs > 0

    def decode(
        self, sources: Words, missing: Sequence[int], repairs: Mapping[int, Words], r: int, seed: int
    ) -> dict[int, Words]:
        lost: dict[int, list[int]] = {}
        for index in missing:
            lost.setdefault(index % r, []).append(index)
        found: dict[int, Words] = {}
        for j, repair in repairs.items():
            absent = lost.get(j, [])
            if len(absent) > 1:
                continue
            rest = repair ^ np.bitwise_xor.reduce(sources[j::r], axis=0)
            if absent:
                found[absent[0]] = rest
            elif rest.any():
                raise ContradictionError(f"parity {j} does not agree with its sources")
        return found
