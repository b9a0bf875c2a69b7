"""Arithmetic of GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D), on symbols held as 64-bit words.

0x11D is the field of most storage and network codes (RFC 5510, ISA-L); its element 2 generates the group.
A row of symbols is an array of `uint64`: addition is XOR of words, and nothing here depends on byte order.

The product of a coefficient matrix with a matrix of symbols does not look up single bytes (numpy turns every
index into 8 bytes first). It is the "four Russians" method over bits instead: bit b of every coefficient selects
sources whose XOR is to be multiplied by 2^b; the 16 XORs of each group of four sources are made once and picked
by row; the eight bits are then joined by Horner's rule with the doubling of eight bytes at a time.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL: Final = 0x11D

Words: TypeAlias = NDArray[np.uint64]
"""Symbols as rows of 64-bit words."""
Coefficients: TypeAlias = NDArray[np.uint8]

WORD_BYTES: Final = 8


def _tables() -> tuple[Coefficients, Coefficients]:
    """The full multiplication table (256, 256) and the inverses (256,), the inverse of 0 being 0."""
    power = np.zeros(255, dtype=np.int64)
    logarithm = np.zeros(256, dtype=np.int64)
    value = 1
    for exponent in range(255):
        power[exponent] = value
        logarithm[value] = exponent
        value <<= 1
        if value & 0x100:
            value ^= POLYNOMIAL
    products = power[(logarithm[:, None] + logarithm[None, :]) % 255]
    products[0, :] = 0
    products[:, 0] = 0
    inverses = power[-logarithm % 255]
    inverses[0] = 0
    return products.astype(np.uint8), inverses.astype(np.uint8)


PRODUCT, INVERSE = _tables()
PRODUCT.setflags(write=False)
INVERSE.setflags(write=False)

_LOW_SEVEN: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_TOP: Final = np.uint64(0x0101010101010101)
_ONE: Final = np.uint64(1)
_SEVEN: Final = np.uint64(7)
_REDUCE: Final = np.uint64(POLYNOMIAL & 0xFF)
_BITS: Final = np.arange(8, dtype=np.uint8)[:, None, None]
_GROUP: Final = 4
_NIBBLE: Final = np.array([1, 2, 4, 8], dtype=np.int64)


def _double(words: Words) -> None:
    """Multiply every byte by 2, in place."""
    carry = words >> _SEVEN
    carry &= _TOP
    carry *= _REDUCE  # each byte of `carry` is 0 or 1, so no product leaves its byte
    words &= _LOW_SEVEN
    words <<= _ONE
    words ^= carry


def multiply(coefficients: Coefficients, symbols: Words) -> Words:
    """Matrix product over GF(256).

    Args:
        coefficients: (rows, k), uint8.
        symbols: (k, words), uint64.

    Returns:
        (rows, words), uint64: row i is the sum over j of ``coefficients[i, j] * symbols[j]``.

    Raises:
        ValueError: the shapes do not fit.
    """
    rows, k = coefficients.shape
    if symbols.shape[0] != k:
        raise ValueError(f"{rows}x{k} coefficients do not fit {symbols.shape[0]} symbols")
    width = symbols.shape[1]
    if rows == 0 or k == 0:
        return np.zeros((rows, width), dtype=np.uint64)
    groups = -(-k // _GROUP)
    if groups * _GROUP != k:
        padded = np.zeros((rows, groups * _GROUP), dtype=np.uint8)
        padded[:, :k] = coefficients
        coefficients = padded
        more = np.zeros((groups * _GROUP, width), dtype=np.uint64)
        more[:k] = symbols
        symbols = more
    grouped = symbols.reshape(groups, _GROUP, width)
    sums = np.zeros((groups, 1 << _GROUP, width), dtype=np.uint64)
    for bit in range(_GROUP):
        size = 1 << bit
        np.bitwise_xor(sums[:, :size], grouped[:, bit : bit + 1], out=sums[:, size : 2 * size])
    # selection[g, 7 - b, row]: which of the 16 sums of group g bit b of that row's coefficients asks for
    bits = (coefficients[None, :, :] >> _BITS) & np.uint8(1)
    selection = bits[::-1].reshape(8 * rows, groups, _GROUP) @ _NIBBLE
    total = sums[0].take(selection[:, 0], axis=0)
    picked = np.empty_like(total)
    for group in range(1, groups):
        sums[group].take(selection[:, group], axis=0, out=picked, mode="clip")
        total ^= picked
    planes = total.reshape(8, rows, width)
    result: Words = planes[0].copy()
    for plane in planes[1:]:
        _double(result)
        result ^= plane
    return result


def reduce(matrix: Coefficients) -> tuple[Coefficients, Coefficients, list[int]]:
    """Gauss-Jordan elimination of a small matrix (losses x repairs: at most a few dozen rows).

    Args:
        matrix: (m, e), uint8; not changed.

    Returns:
        The reduced row echelon form R (m, e), the transform T (m, m) with ``R = T * matrix``, and the pivot
        columns in order of their rows: ``len(pivots)`` is the rank, rows from there on are zero in R.
    """
    m, e = matrix.shape
    work = np.concatenate((matrix, np.eye(m, dtype=np.uint8)), axis=1)
    pivots: list[int] = []
    for column in range(e):
        row = len(pivots)
        if row == m:
            break
        candidates = np.flatnonzero(work[row:, column])
        if candidates.size == 0:
            continue
        chosen = row + int(candidates[0])
        if chosen != row:
            work[[row, chosen]] = work[[chosen, row]]
        work[row] = PRODUCT[INVERSE[work[row, column]], work[row]]
        factors = work[:, column].copy()
        factors[row] = 0
        work ^= PRODUCT[factors[:, None], work[row][None, :]]
        pivots.append(column)
    return work[:, :e].copy(), work[:, e:].copy(), pivots
