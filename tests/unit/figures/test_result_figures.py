"""Figures out of flow records: what they group, and how."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from figures.results import SIZE_GROUPS, completion_times, size_groups
from figures.style import applied


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 10.0, 1000.0]) | st.floats(0.1, 1e6), min_size=24, max_size=200)
)
def test_each_flow_is_in_one_group_of_its_size(sizes: list[float]) -> None:
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, SIZE_GROUPS + 1)))
    if len(edges) < 2:
        return
    groups = size_groups([(size, float(number)) for number, size in enumerate(sizes)], edges)
    assert sorted(number for group in groups for _, number in group) == list(range(len(sizes)))
    for (low, high), group in zip(pairwise(edges), groups, strict=True):
        assert all(low <= size <= high for size, _ in group)
        assert all(size < high for size, _ in group) or high == edges[-1]


def test_flows_that_failed_are_among_those_whose_shares_are_drawn() -> None:
    records = [
        {"traffic_class": kind, "scheme": "ecmp", "fct_s": fct_s, "size_bytes": size, "paths": ""}
        for kind, fct_s, size in (
            ("short", "0.1", "9000"),
            ("short", "0.2", "9000"),
            ("short", "", "9000"),
            ("short", "", "9000"),
            ("long", "0.5", "900000"),
            ("long", "", ""),
        )
    ]
    with applied():
        figure = completion_times({"schemes": {"ecmp": {"scheme": "ecmp"}}}, records)
    assert figure is not None
    shares = [np.asarray(axes.lines[0].get_ydata()).tolist() for axes in figure.axes]
    assert shares == [[0.25, 0.5], [1.0]], "one without an end is no flow that could be done"
