"""Shares of ON time against a count of instants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.results.on_share import mean_share, on_share

changes = st.lists(
    st.tuples(st.integers(0, 100), st.sampled_from(["l1", "l2"]), st.sampled_from(["on", "off"])), max_size=20
).map(sorted)


@given(changes, st.integers(0, 40), st.integers(60, 100))
def test_the_share_is_that_of_the_instants(drawn: list[tuple[int, str, str]], begin: int, end: int) -> None:
    by_leaf: dict[str, list[bool]] = {}
    for leaf in {leaf for _, leaf, _ in drawn}:
        mine = [(at, mode) for at, one, mode in drawn if one == leaf]
        by_leaf[leaf] = [
            ([mode for at, mode in mine if at <= instant] or ["off"])[-1] == "on"
            for instant in range(begin, end)
        ]
    share = on_share([{"at_s": at, "leaf": leaf, "mode": mode} for at, leaf, mode in drawn], begin, end)
    if not by_leaf:
        assert share is None
        return
    expected = sum(sum(instants) for instants in by_leaf.values()) / len(by_leaf) / (end - begin)
    assert share == pytest.approx(expected)


def test_runs_without_modes_have_no_share() -> None:
    assert mean_share([None, None]) is None
    assert mean_share([0.5, None, 1.0]) == 0.75
