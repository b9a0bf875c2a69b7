"""Ranges of numbers that options take."""

from __future__ import annotations

import click
import pytest

from plain.finite_range import FiniteRange


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "-1", "x"])
def test_what_is_no_number_of_a_range_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        FiniteRange(0).convert(text, None, None)


def test_a_number_of_a_range_is_taken() -> None:
    assert FiniteRange(0, 1).convert("0.5", None, None) == 0.5
    assert FiniteRange(0).convert("1e300", None, None) == 1e300
