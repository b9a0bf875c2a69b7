"""What a few lines of input may cost: keys, aliases and problems without end are refused, or listed up to a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.spec.check import problems_of
from plain.field_path import path_text
from plain.reading import PlainError, build
from plain.shown import LONGEST_SHOWN
from plain.yaml_source import MOST_PROBLEMS, Source, read


def complex_key(levels: int) -> str:
    """Return a mapping whose key is a list that stands for 2 ** levels values."""
    lists = ["&a0 [x, x]", *(f"&a{level} [*a{level - 1}, *a{level - 1}]" for level in range(1, levels))]
    return f"? [{', '.join(lists)}]\n: 1\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (complex_key(40), "a key must be text, not a list"),
        ("? {a: 1}\n: 1\n", "a key must be text, not a mapping"),
        ("1: x\n", "a key must be text, not '1'"),
        (f"{'k' * 201}: 1\n", "a key has at most 200 characters, not 201"),
        (f"a: &x {'y' * 100_000}\nb: [{'*x, ' * 200}]\n", "has more than 16777216 characters in its values"),
        ("{" + "x: 1, " * 150_000 + "}", "has more than 100000 values"),
        (f"a: !!{'t' * 100_000} x\n", "tttt..."),
        (f"a: !!bool {'t' * 100_000}\n", "tttt..."),
    ],
)
def test_yaml_that_stands_for_more_than_it_says_is_one_short_problem(text: str, said: str) -> None:
    (problem,) = read(text, "x.yaml").problems
    assert said in problem.message
    assert len(str(problem)) < 3 * LONGEST_SHOWN


def test_of_many_problems_the_first_are_listed() -> None:
    source = read("{" + "x: 1, " * (2 * MOST_PROBLEMS) + "}", "x.yaml")
    assert len(source.problems) == MOST_PROBLEMS
    unknown = Source(data={"schemes": [{"a": 1}] * (3 * MOST_PROBLEMS)})
    assert len(problems_of(unknown, ["ecmp"])) == MOST_PROBLEMS


class Unprinted(str):
    """Text that is written out nowhere."""

    def __format__(self, spec: str) -> str:
        raise AssertionError("written out")

    def __str__(self) -> str:
        return self


class Counted(dict[str, Any]):
    """A mapping with a long key and many items below it."""

    def items(self) -> Any:  # type: ignore[override]
        def pairs() -> Iterator[tuple[str, Any]]:
            yield Unprinted("k" * 100_000), {str(number): 1 for number in range(1000)}

        return pairs()


def test_no_place_is_written_out_while_nothing_is_wrong() -> None:
    assert build(dict[str, dict[str, int]], Counted(k=None), "x")


@given(st.text(min_size=1), st.integers(0, 5))
def test_an_error_names_its_place_in_a_bounded_line(key: str, index: int) -> None:
    items: list[object] = [0.5] * index + ["no"]
    with pytest.raises(PlainError) as refused:
        build(dict[str, list[float]], {key * 50: items}, "values")
    assert str(refused.value).isprintable()
    assert len(refused.value.where) < LONGEST_SHOWN + 30
    assert refused.value.where.endswith(f"[{index}]")


def test_a_place_reads_as_it_did() -> None:
    assert path_text((((("body", "flows"), 3), "paths"), "2049")) == "body.flows[3].paths.2049"
