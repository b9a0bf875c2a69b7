"""LDPC-staircase code (RFC 5170; RFC 6816), the CAPS paper's code, with left degree N1 = 3.

The parity check matrix of k sources and r repairs has r rows. The left part puts each source into 3 rows, evenly, by
the construction of RFC 5170 section 5.4 with its Park-Miller generator (RFC 5170 section 5.7); rows with fewer than
two sources get more. Where there are only r <= 3 rows, which the RFC does not mean, each source is in max(1, r - 1)
of them: were all sources in all rows, every second repair would be zeros. The right part is the staircase: row j holds
repairs j and j - 1, so ``repair j = repair j-1 + sum of row j's sources``.

Decoding peels (a row with one unknown gives it) and, when peeling stops, eliminates over GF(2). Small graphs are
weak: with k = 32, r = 8 peeling alone fails for 13.8 % of all patterns of 4 missing sources (docs/coding.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from host_agent.coding.code import Code, ContradictionError
from host_agent.coding.gf256 import Words
from protocol.datagram import CodeId

LEFT_DEGREE: Final = 3
_PARK_MILLER_FACTOR: Final = 16807
_PARK_MILLER_MODULUS: Final = 0x7FFFFFFF


class ParkMiller:
    """The "minimal standard" generator, scaled as in RFC 5170 section 5.7; seeds are 1 .. 2^31 - 2."""

    def __init__(self, seed: int) -> None:
        self._state = seed % (_PARK_MILLER_MODULUS - 1) + 1

    def below(self, limit: int) -> int:
        """The next number in 0 .. limit - 1."""
        self._state = self._state * _PARK_MILLER_FACTOR % _PARK_MILLER_MODULUS
        return self._state * limit // _PARK_MILLER_MODULUS


@lru_cache(maxsize=512)
def rows_of(k: int, r: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The sources in each of the r rows of the parity check matrix, ascending."""
    random = ParkMiller(seed)
    degree = min(LEFT_DEGREE, max(1, r - 1))
    rows: list[set[int]] = [set() for _ in range(r)]
    choices = [index % r for index in range(degree * k)]
    first = 0
    for source in range(k):
        for _ in range(degree):
            if any(source not in rows[choices[index]] for index in range(first, len(choices))):
                while source in rows[choices[place := first + random.below(len(choices) - first)]]:
                    pass
                rows[choices[place]].add(source)
                choices[place] = choices[first]
                first += 1
            else:
                while source in rows[row := random.below(r)]:
                    pass
                rows[row].add(source)
    least = 2 if k > 2 else 1  # two sources in every row would make every second repair zeros
    for members in rows:
        while len(members) < least:
            members.add(random.below(k))
    return tuple(tuple(sorted(members)) for members in rows)


class Ldpc(Code):
    name = "ldpc"
    id = CodeId.LDPC

    def most_repairs(self, k: int) -> int:
        return 255

    def encode(self, sources: Words, r: int, seed: int) -> Words:
        repairs = np.empty((r, sources.shape[1]), dtype=np.uint64)
        for j, members in enumerate(rows_of(len(sources), r, seed)):
            np.bitwise_xor.reduce(sources[list(members)], axis=0, out=repairs[j])
            if j:
                repairs[j] ^= repairs[j - 1]
        return repairs

    def worth_trying(self, missing: int, repairs: int) -> bool:
        return repairs > 0

    def decode(
        self, sources: Words, missing: Sequence[int], repairs: Mapping[int, Words], r: int, seed: int
    ) -> dict[int, Words]:
        system = System(len(sources), r, seed, missing, repairs)
        values = system.values(sources, repairs)
        found = system.peel(values)
        found.update(system.eliminate(values))
        return {unknown: value for unknown, value in found.items() if unknown < len(sources)}


class System:
    """The rows of one unit's parity check matrix with what is still unknown in each.

    Unknowns are numbered as columns of the matrix: source i is i, repair j is k + j.
    """

    def __init__(
        self, k: int, r: int, seed: int, missing: Sequence[int], repairs: Mapping[int, Words]
    ) -> None:
        self._k = k
        self._rows = rows_of(k, r, seed)
        absent = set(missing)
        absent.update(k + j for j in range(r) if j not in repairs)
        self.unknown: list[set[int]] = []
        self._uses: dict[int, list[int]] = {column: [] for column in absent}
        for j, members in enumerate(self._rows):
            columns = {*members, k + j, *((k + j - 1,) if j else ())} & absent
            self.unknown.append(columns)
            for column in columns:
                self._uses[column].append(j)

    def values(self, sources: Words, repairs: Mapping[int, Words]) -> list[Words]:
        """Each row's sum of what is known; missing sources' rows must be zeros."""
        values: list[Words] = []
        for j, members in enumerate(self._rows):
            value: Words = np.bitwise_xor.reduce(sources[list(members)], axis=0)
            for repair in (j, j - 1):
                if repair in repairs:
                    value ^= repairs[repair]
            values.append(value)
        return values

    def peel(self, values: list[Words]) -> dict[int, Words]:
        """Solve rows with one unknown until there is none; *values* is kept in step.

        Raises:
            ContradictionError: a row without unknowns is not zero.
        """
        found: dict[int, Words] = {}
        ready = [j for j, columns in enumerate(self.unknown) if len(columns) == 1]
        while ready:
            row = ready.pop()
            if not self.unknown[row]:
                continue
            (column,) = self.unknown[row]
            value = values[row].copy()
            found[column] = value
            for other in self._uses[column]:
                values[other] ^= value
                self.unknown[other].discard(column)
                if len(self.unknown[other]) == 1:
                    ready.append(other)
        for columns, value in zip(self.unknown, values, strict=True):
            if not columns and value.any():
                raise ContradictionError("parity checks do not agree with the unit's symbols")
        return found

    def eliminate(self, values: list[Words]) -> dict[int, Words]:
        """Gauss-Jordan elimination over GF(2) of the rows that peeling left.

        Raises:
            ContradictionError: the rows do not agree.
        """
        rows = [
            (sum(1 << column for column in columns), value.copy())
            for columns, value in zip(self.unknown, values, strict=True)
            if columns
        ]
        solved: list[tuple[int, Words]] = []
        while rows:
            mask, value = rows.pop()
            if not mask:
                if value.any():
                    raise ContradictionError("parity checks do not agree with the unit's symbols")
                continue
            pivot = mask & -mask
            rows = [_cleared(row, pivot, mask, value) for row in rows]
            solved = [_cleared(row, pivot, mask, value) for row in solved]
            solved.append((mask, value))
        return {mask.bit_length() - 1: value for mask, value in solved if mask & (mask - 1) == 0}


def _cleared(row: tuple[int, Words], pivot: int, mask: int, value: Words) -> tuple[int, Words]:
    return (row[0] ^ mask, row[1] ^ value) if row[0] & pivot else row
