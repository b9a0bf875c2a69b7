"""PIAS thresholds against brute force, a Monte Carlo of the model, and what must hold of any optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.queues.pias import PUBLISHED
from tests.unit.controller.queues.pias_model import (
    CumulativeTable,
    ThresholdsError,
    mean_stay,
    pias_thresholds,
)
from workloads.sizes import TABLES, table_names


def _published(name: str) -> CumulativeTable:
    rows = [
        [float(cell) for cell in line.split(",")]
        for line in (TABLES / f"{name}.csv").read_text().splitlines()
        if line[:1].isdigit()
    ]
    return CumulativeTable([size for size, _ in rows], [share for _, share in rows])


@st.composite
def _tables(draw: st.DrawFn) -> CumulativeTable:
    sizes = sorted(draw(st.sets(st.integers(1, 10**7), min_size=2, max_size=8)))
    weights = draw(st.lists(st.integers(0, 20), min_size=len(sizes) - 1, max_size=len(sizes) - 1))
    cumulative = np.cumsum([draw(st.integers(0, 10)), *weights[:-1], weights[-1] + 1], dtype=float)
    return CumulativeTable(sizes, cumulative / cumulative[-1])


@given(table=_tables(), at=st.floats(0, 2e7))
def test_the_share_of_bytes_within_a_size_is_that_of_drawn_flows(table: CumulativeTable, at: float) -> None:
    shares = np.linspace(0, 1, 200_001)
    drawn = np.interp(shares, table.cdf, table.sizes)
    expected = np.minimum(drawn, at).mean() / drawn.mean()
    assert table.within(np.array([at]))[0] == pytest.approx(expected, abs=2e-3)
    assert table.above(np.array([at]))[0] == pytest.approx((drawn > at).mean(), abs=2e-3)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(table=_tables(), load=st.floats(0.1, 0.95), queues=st.integers(2, 4))
def test_no_thresholds_of_a_coarse_grid_are_better(table: CumulativeTable, load: float, queues: int) -> None:
    found = pias_thresholds(table, load, queues)
    assert list(found) == sorted(found)
    assert len(found) == queues - 1
    grid = np.concatenate(
        (
            np.geomspace(table.smallest(), table.largest(), 14),
            np.linspace(table.smallest(), table.largest(), 14),
        )
    )
    best = min(mean_stay(table, load, tried) for tried in itertools.combinations(sorted(grid), queues - 1))
    assert mean_stay(table, load, found) <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", table_names())
@pytest.mark.parametrize("load", [0.2, 0.8])
def test_moving_a_threshold_of_a_published_table_does_not_help(name: str, load: float) -> None:
    table = _published(name)
    found = pias_thresholds(table, load, 8)
    best = mean_stay(table, load, found)
    for index, factor in itertools.product(range(7), (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)):
        moved = sorted(value * (factor if place == index else 1) for place, value in enumerate(found))
        assert mean_stay(table, load, moved) >= best * (1 - 1e-6), (index, factor)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(table=_tables(), load=st.floats(0.1, 0.9), factor=st.floats(0.001, 1000))
def test_thresholds_scale_with_the_sizes(table: CumulativeTable, load: float, factor: float) -> None:
    scaled = CumulativeTable(table.sizes * factor, table.cdf)
    one, other = pias_thresholds(table, load, 4), pias_thresholds(scaled, load, 4)
    assert mean_stay(scaled, load, other) == pytest.approx(mean_stay(table, load, one), rel=1e-4)


def test_more_queues_are_never_worse() -> None:
    table = _published("websearch")
    stays = [mean_stay(table, 0.8, pias_thresholds(table, 0.8, queues)) for queues in range(1, 9)]
    assert stays[0] == pytest.approx(1 / (1 - 0.8))
    assert all(b <= a * (1 + 1e-4) for a, b in itertools.pairwise(stays))
    assert stays[1] < 0.9 * stays[0]


@pytest.mark.parametrize(
    ("load", "queues", "text"),
    [(0.0, 8, "load"), (1.0, 8, "load"), (0.5, 0, "queues"), (0.5, 65, "queues")],
)
def test_arguments_out_of_range_are_named(load: float, queues: int, text: str) -> None:
    with pytest.raises(ThresholdsError, match=text):
        pias_thresholds(CumulativeTable([1, 2], [0, 1]), load, queues)


@pytest.mark.parametrize(
    ("sizes", "cdf", "text"),
    [
        ([1, 2], [1], "as many"),
        ([2, 1], [0, 1], "grow"),
        ([1, 2], [0.5, 0.4], "fall"),
        ([1, 2], [0, 0.9], "end at 1"),
        ([0], [1], "empty"),
        ([1, float("nan")], [0, 1], "finite"),
    ],
)
def test_broken_tables_are_refused(sizes: list[float], cdf: list[float], text: str) -> None:
    with pytest.raises(ThresholdsError, match=text):
        CumulativeTable(sizes, cdf)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_thresholds_are_not_the_optimum_of_the_model(name: str) -> None:
    for load, thresholds in PUBLISHED[name].items():
        assert list(thresholds) == sorted(thresholds)
        assert len(thresholds) == 7
        table = _published(name)
        best = mean_stay(table, load, pias_thresholds(table, load, 8))
        assert 1.3 < mean_stay(table, load, thresholds) / best < 1.9
