"""The function that tests wait by."""

from __future__ import annotations

import itertools

import pytest

from tests.waiting import eventually


def test_it_returns_the_first_thing_that_is_true() -> None:
    answers = iter([None, 0, "", "here", "later"])
    assert eventually(lambda: next(answers)) == "here"


def test_its_error_says_what_was_waited_for() -> None:
    with pytest.raises(AssertionError, match=r"^not within 0\.01 s: the moon is green$"):
        eventually(lambda: False, "the moon is green", 0.01)
    looks = itertools.count()
    with pytest.raises(AssertionError, match=r"^not within 0\.01 s: looked \d+ times$"):
        eventually(lambda: next(looks) < 0, lambda: f"looked {next(looks)} times", 0.01)
    with pytest.raises(AssertionError, match=r"test_waiting\.py:\d+: eventually\(lambda: 2 \+ 2 == 5"):
        eventually(lambda: 2 + 2 == 5, seconds=0.01)
