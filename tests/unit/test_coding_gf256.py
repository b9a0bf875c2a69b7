"""GF(256) against an independent computation: polynomial multiplication bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.coding.gf256 import INVERSE, PRODUCT, multiply, reduce


def product(a: int, b: int) -> int:
    """a * b modulo x^8 + x^4 + x^3 + x^2 + 1, as on paper."""
    total = 0
    for bit in range(8):
        if b >> bit & 1:
            total ^= a << bit
    for degree in range(14, 7, -1):
        if total >> degree & 1:
            total ^= 0x11D << (degree - 8)
    return total


def test_the_table_is_polynomial_multiplication() -> None:
    expected = [[product(a, b) for b in range(256)] for a in range(256)]
    assert np.array_equal(PRODUCT, expected)


def test_every_element_but_zero_has_its_inverse() -> None:
    assert all(product(a, int(INVERSE[a])) == 1 for a in range(1, 256))


@given(rows=st.integers(0, 9), k=st.integers(0, 70), words=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_matrix_product_equals_the_sum_of_single_products(rows: int, k: int, words: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients = rng.integers(0, 256, (rows, k), dtype=np.uint8)
    symbols = rng.integers(0, 1 << 64, (k, words), dtype=np.uint64)
    before = symbols.copy()
    single = PRODUCT[coefficients[:, :, None], symbols.view(np.uint8)[None, :, :]]
    expected = np.bitwise_xor.reduce(single, axis=1)
    assert np.array_equal(multiply(coefficients, symbols).view(np.uint8), expected.reshape(rows, 8 * words))
    assert np.array_equal(symbols, before)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        multiply(np.ones((2, 3), dtype=np.uint8), np.ones((4, 1), dtype=np.uint64))


@given(m=st.integers(1, 8), e=st.integers(1, 8), rank=st.integers(0, 8), seed=st.integers(0, 2**32))
def test_elimination_gives_the_echelon_form_and_how_to_get_it(m: int, e: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left = rng.integers(0, 256, (m, rank), dtype=np.uint8)
    right = rng.integers(0, 256, (rank, e), dtype=np.uint8)
    matrix = _small_product(left, right)
    echelon, transform, pivots = reduce(matrix)
    assert len(pivots) <= min(m, e, rank)
    assert np.array_equal(_small_product(transform, matrix), echelon)
    assert pivots == sorted(pivots)
    assert not echelon[len(pivots) :].any()
    for row, column in enumerate(pivots):
        assert not echelon[row, :column].any()
        assert echelon[:, column].tolist() == [int(i == row) for i in range(m)]
    # the transform loses nothing: it can be undone
    assert len(reduce(transform)[2]) == m


def _small_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.bitwise_xor.reduce(PRODUCT[left[:, :, None], right[None, :, :]], axis=1)
