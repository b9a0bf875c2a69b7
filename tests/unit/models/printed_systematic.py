"""HTPC's Eq. 6-8: its systematic code as matrices over GF(256), as agents have it (polynomial 0x11D).

Rows are coefficients of sources, columns packets: [c_1 .. c_m] = [s_1 .. s_k] x G with G = [I | g], so the first k
packets are the sources. Any k packets whose columns are independent give the sources back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import xor
from typing import Final

Matrix = tuple[tuple[int, ...], ...]
"""Rows of elements 0..255."""
POLYNOMIAL: Final = 0x11D


class SingularError(ValueError):
    """The columns of the received packets are not independent: they do not determine the sources."""


def product(a: int, b: int) -> int:
    """Return a b in GF(256)."""
    total = 0
    while b:
        if b & 1:
            total ^= a
        a <<= 1
        if a & 0x100:
            a ^= POLYNOMIAL
        b >>= 1
    return total


def inverse(a: int) -> int:
    """Return 1 / a: a^254, for the group has 255 elements. Raise ZeroDivisionError for 0."""
    if a == 0:
        raise ZeroDivisionError("0 has no inverse in GF(256)")
    result = 1
    for _ in range(254):
        result = product(result, a)
    return result


def generator(coefficients: Matrix) -> Matrix:
    """Return Eq. 7: [I | g] of the k rows of *coefficients*, each of r = m - k elements g_(i,j)."""
    k = len(coefficients)
    return tuple((*(int(i == j) for j in range(k)), *row) for i, row in enumerate(coefficients))


def encoded(sources: Matrix, matrix: Matrix) -> Matrix:
    """Return Eq. 6: c = s G; *sources* are k packets of as many symbols each, the result m packets."""
    length = len(sources[0])
    columns = list(zip(*matrix, strict=True))
    return tuple(
        tuple(
            _sum(product(source[offset], g) for source, g in zip(sources, column, strict=True))
            for offset in range(length)
        )
        for column in columns
    )


def decoded(received: Sequence[tuple[int, tuple[int, ...]]], matrix: Matrix) -> Matrix:
    """Return Eq. 8: the k sources of any k packets, each with its number a_j of 0 .. m - 1.

    The print multiplies the received packets with the chosen columns; it takes their inverse, here by elimination.
    Raises SingularError where the columns are dependent, ValueError for another number of packets than k.
    """
    k = len(matrix)
    if len(received) != k:
        raise ValueError(f"{len(received)} packets for {k} sources: give as many")
    # one equation a packet: sum over i of g_(i,a) s_i = c_a
    rows = [[matrix[i][a] for i in range(k)] for a, _ in received]
    sides = [list(packet) for _, packet in received]
    for column in range(k):
        pivot = next((row for row in range(column, k) if rows[row][column]), None)
        if pivot is None:
            raise SingularError(
                f"packets {', '.join(str(a) for a, _ in received)} determine no source {column}"
            )
        for table in (rows, sides):
            table[column], table[pivot] = table[pivot], table[column]
        scale = inverse(rows[column][column])
        for table in (rows, sides):
            table[column] = [product(scale, value) for value in table[column]]
        for row in range(k):
            factor = rows[row][column]
            if row != column and factor:
                for table in (rows, sides):
                    table[row] = [
                        a ^ product(factor, b) for a, b in zip(table[row], table[column], strict=True)
                    ]
    return tuple(tuple(side) for side in sides)


def _sum(values: Iterable[int]) -> int:
    return reduce(xor, values, 0)
