"""What an error shows of a value that does not fit: the beginning of its form in Python, for bounded work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain.reading import PlainError, build
from plain.shown import LONGEST_SHOWN

FAR = 10 * LONGEST_SHOWN
scalars = st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=30,
)


@dataclass(frozen=True)
class Numbered:
    number: int = 0
    choice: Literal["a"] = "a"


def shown(data: object) -> str:
    with pytest.raises(PlainError) as refused:
        build(Numbered, {"number": data}, "x")
    return refused.value.what.removeprefix("expected int, got ")


@pytest.mark.slow
@given(values.filter(lambda value: not isinstance(value, int | float)))
def test_a_value_is_shown_as_python_writes_it_up_to_a_length(data: object) -> None:
    whole = repr(data)
    if len(whole) <= LONGEST_SHOWN:
        assert shown(data) == whole
    else:
        assert shown(data) == f"{whole[:LONGEST_SHOWN]}..."


class Watched(list[Any]):
    """A list that cannot be written as a whole, nor looked at beyond a few items."""

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            assert index < FAR, "more is looked at than is shown"
            yield self[index]

    def __repr__(self) -> str:
        raise AssertionError("written as a whole")


class Text(str):
    """Text that cannot be written as a whole."""

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        assert not isinstance(key, slice) or key.stop <= FAR
        return super().__getitem__(key)

    def __repr__(self) -> str:
        raise AssertionError("written as a whole")


@pytest.mark.parametrize(
    "data",
    [
        Watched([1] * 100_000),
        {"x": Watched([0.5] * 100_000)},
        [Text("x" * 100_000)],
        {Text("x" * 100_000): 1},
    ],
)
def test_no_more_is_looked_at_than_is_shown(data: object) -> None:
    assert shown(data).endswith("...")
    with pytest.raises(PlainError):
        build(Numbered, {"choice": data}, "x")


def test_nested_values_need_no_deep_stack() -> None:
    data: list[Any] = []
    for _ in range(100_000):
        data = [data]
    assert shown(data) == "[" * LONGEST_SHOWN + "..."


def test_a_number_of_many_digits_is_shown_by_its_length() -> None:
    with pytest.raises(PlainError, match="a whole number of 100001 bits is not known"):
        build(Numbered, {"choice": 1 << 100_000}, "x")
