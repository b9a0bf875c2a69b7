"""A token bucket lets through a burst and its rate, never more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.token_bucket import TokenBucket


@given(st.lists(st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 20.0)), max_size=50))
def test_what_is_taken_while_it_is_there_stays_below_burst_and_rate(steps: list[tuple[float, float]]) -> None:
    bucket, now, taken = TokenBucket(burst=30.0, now=5.0), 5.0, 0.0
    for wait_s, tokens in steps:
        now += wait_s
        if bucket.level(per_s=2.0, now=now) >= tokens:
            bucket.spend(tokens)
            taken += tokens
    assert taken <= 30.0 + 2.0 * (now - 5.0) + 1e-6


def test_a_debt_is_worked_off_before_there_are_tokens_again() -> None:
    bucket = TokenBucket(burst=10.0, now=0.0)
    bucket.spend(16.0)
    assert bucket.level(per_s=4.0, now=1.0) == pytest.approx(-2.0)
    assert bucket.level(per_s=4.0, now=2.0) == pytest.approx(2.0)
    assert bucket.level(per_s=4.0, now=100.0) == pytest.approx(10.0)


def test_a_token_is_taken_only_where_there_is_one() -> None:
    bucket = TokenBucket(burst=2.0, now=0.0)
    assert [bucket.take(per_s=0.5, now=now) for now in (0.0, 0.0, 0.0, 1.0, 2.0, 2.0)] == [
        True, True, False, False, True, False,
    ]  # fmt: skip
