"""The codes once more, slowly and by the definition: what the native kernels are compared with.

Nothing here is shared with native/: multiplication goes bit by bit, graphs are built with sets, decoding is a question
of ranks. Formulas: docs/coding.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def product(a: int, b: int) -> int:
    """Return a * b modulo x^8 + x^4 + x^3 + x^2 + 1, as on paper."""
    total = 0
    for bit in range(8):
        if b >> bit & 1:
            total ^= a << bit
    for degree in range(14, 7, -1):
        if total >> degree & 1:
            total ^= 0x11D << (degree - 8)
    return total


PRODUCT: Bytes = np.array([[product(a, b) for b in range(256)] for a in range(256)], dtype=np.uint8)
INVERSE = [0, *(int(np.flatnonzero(PRODUCT[a] == 1)[0]) for a in range(1, 256))]


def matrix_product(left: Bytes, right: Bytes) -> Bytes:
    """Return the product of matrices over GF(256)."""
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.uint8)
    for j in range(left.shape[1]):
        total ^= PRODUCT[left[:, j, None], right[None, j, :]]
    return total


def rank(matrix: Bytes) -> int:
    """Return the rank over GF(256), by elimination."""
    rows = [row.copy() for row in matrix]
    found = 0
    for column in range(matrix.shape[1]):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        found += 1
        rows = [row for row in rows if row is not pivot]
        scaled = PRODUCT[INVERSE[int(pivot[column])], pivot]
        for row in rows:
            row ^= PRODUCT[row[column], scaled]
    return found


def most_repairs(code: str, k: int) -> int:
    """Return the most repairs that k sources have use for: xor's further ones are of no source, mds has 256 symbols."""
    return {"xor": k, "mds": 256 - k}.get(code, 255)


def generator(code: str, k: int, r: int, seed: int) -> Bytes:
    """Return the coefficients (r, k) of the repairs."""
    if code == "xor":
        cells = [[int(i % r == j) for i in range(k)] for j in range(r)]
    elif code == "rlc":
        cells = [[random_coefficient(seed, j, i) for i in range(k)] for j in range(r)]
    elif code == "mds":
        cells = [[product(255 ^ i, INVERSE[(255 - j) ^ i]) for i in range(k)] for j in range(r)]
    else:
        cells = []
        sums = [0] * k
        for members in ldpc_rows(k, r, seed):
            sums = [value ^ (i in members) for i, value in enumerate(sums)]
            cells.append(sums)
    return np.array(cells, dtype=np.uint8).reshape(r, k)


def random_coefficient(seed: int, j: int, i: int) -> int:
    """Return c(seed, j, i) of rlc: splitmix64 at a counter, 1..255."""
    mask = (1 << 64) - 1
    state = ((seed << 32 ^ j << 8 ^ i) + 1) * 0x9E3779B97F4A7C15 & mask
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
    state = (state ^ state >> 27) * 0x94D049BB133111EB & mask
    return 1 + ((state ^ state >> 31) >> 32) % 255


class ParkMiller:
    """The generator of RFC 5170, section 5.7."""

    def __init__(self, seed: int) -> None:
        self._state = seed % 0x7FFFFFFE + 1

    def below(self, limit: int) -> int:
        self._state = self._state * 16807 % 0x7FFFFFFF
        return self._state * limit // 0x7FFFFFFF


@cache
def ldpc_rows(k: int, r: int, seed: int) -> tuple[frozenset[int], ...]:
    """Return the sources in each row of the parity check matrix: RFC 5170, section 5.4."""
    random = ParkMiller(seed)
    degree = min(3, max(1, r - 1))
    rows: list[set[int]] = [set() for _ in range(r)]
    choices = [index % r for index in range(degree * k)]
    for source in range(k):
        for _ in range(degree):
            if any(source not in rows[choice] for choice in choices):
                while source in rows[choices[place := random.below(len(choices))]]:
                    pass
                rows[choices[place]].add(source)
                choices[place] = choices[0]
                del choices[0]
            else:
                while source in rows[row := random.below(r)]:
                    pass
                rows[row].add(source)
    for members in rows:
        while len(members) < (2 if k > 2 else 1):
            members.add(random.below(k))
    return tuple(map(frozenset, rows))


def encode(code: str, packets: Sequence[bytes], r: int, seed: int) -> list[bytes]:
    """Return the repairs' symbols."""
    length = 2 + max(map(len, packets))
    symbols = [(len(packet).to_bytes(2, "big") + packet).ljust(length, b"\0") for packet in packets]
    sources = np.frombuffer(b"".join(symbols), dtype=np.uint8).reshape(len(packets), length)
    return [row.tobytes() for row in matrix_product(generator(code, len(packets), r, seed), sources)]


def determined(code: str, k: int, r: int, seed: int, lost: Sequence[int], got: Sequence[int]) -> set[int]:
    """Return the lost sources that the repairs *got* (indices) determine: their unit vectors are in the rows' span."""
    rows = generator(code, k, r, seed)[list(got)][:, list(lost)]
    before = rank(rows)
    units = np.eye(len(lost), dtype=np.uint8)
    return {i for place, i in enumerate(lost) if rank(np.vstack((rows, units[place]))) == before}
