"""How flows use paths: spreads against numpy's, and unused paths against what each ON period says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.results.outcome import FlowOutcome
from experiments.results.path_use import Paths, paths_of, spread, unused_while_on
from tests.unit.experiments.results.test_experiments_statistics import flow
from topologies.fabric_spec import FabricSpec

PATHS = Paths(4, {"h1": "l1", "h2": "l1", "h3": "l2"})


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_the_spread_is_the_standard_deviation_over_all_paths(carried: list[int]) -> None:
    flows = [
        flow(index, 1.0, 200_000, paths={str(index + 1): count, "0": 5})
        for index, count in enumerate(carried)
    ]
    deviation, mean = spread(flows, len(carried))
    assert mean == pytest.approx(np.mean(carried))
    assert deviation == pytest.approx(np.std(carried))


def mode(at_s: float, leaf: str, mode: str) -> dict[str, Any]:
    return {"at_s": at_s, "leaf": leaf, "mode": mode}


def short(start_s: float, fct_s: float | None, *stamps: int, source: str = "h1") -> FlowOutcome:
    return flow(1, fct_s, source=source, started_s=start_s, paths={str(stamp): 3 for stamp in stamps})


def test_paths_are_unused_that_no_short_flow_of_the_leaf_takes_in_an_on_period() -> None:
    changes = [mode(1, "l1", "on"), mode(2, "l1", "off"), mode(5, "l1", "on"), mode(5.5, "l2", "on")]
    flows = [
        short(0.9, 0.3, 1, 2),  # begins before the period
        short(1.5, 0.1, 2, 3, source="h2"),
        short(1.5, 0.1, 4, source="h3"),  # below another leaf
        flow(9, 9.0, 200_000, started_s=0.0, paths={"4": 100}),  # long
        short(3.0, 0.5, 4),  # while the leaf is OFF
        short(6.0, None, 1, source="h3"),  # not finished
    ]
    assert unused_while_on(flows, changes[:2], PATHS) == (1, 4)
    assert unused_while_on(flows, changes, PATHS) == (1 + 3, 8), "no flow in the second period of l1"
    assert unused_while_on(flows, (), PATHS) == (0, 0)


def test_paths_are_those_of_a_leaf_spine_fabric() -> None:
    assert paths_of(FabricSpec(leaves=2, spines=3, hosts_per_leaf=1)) == Paths(3, {"h1": "l1", "h2": "l2"})
    assert paths_of(FabricSpec("fat-tree", k=4)) is None
