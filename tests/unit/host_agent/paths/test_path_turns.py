"""By turns and pauses: DRB is in turn, Presto changes path each 64 KB, LetFlow after a gap, and none anywhere else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.paths.base import Route
from protocol.underlay import TrafficClass, label_of
from tests.unit.compiled_paths import compiled


@dataclass(frozen=True)
class Inner:
    id: int
    hash: int


FLOW = Inner(1, 0xBEEF1234)
stamps_of_fabric = st.sets(st.integers(1, 4095), min_size=2, max_size=24)
calls = st.lists(
    st.tuples(st.integers(40, 1500), st.integers(1, 90), st.integers(40, 1500)), min_size=1, max_size=40
)
"""Packets of a size, how many at a time, and the size of the last."""


def route(stamps: set[int]) -> Route:
    return Route("b", TrafficClass.LONG, tuple(map(label_of, sorted(stamps))))


def digit_reversed(labels: tuple[int, ...]) -> list[int]:
    """Return *labels* in the order of their places' reversed binary digits, by the digits as text."""
    digits = len(f"{len(labels) - 1:b}")
    return sorted(labels, key=lambda label: f"{labels.index(label):0{digits}b}"[::-1])


def test_drb_reverses_the_digits() -> None:
    """Eight core switches, two below each of four aggregation switches: neighbours in time share none of them."""
    policy, way = compiled("round-robin"), route(set(range(1, 9)))
    ports = [policy.entropy(FLOW, way, 1000, 0.0) for _ in range(8)]
    begun = ports.index(way.labels[0])
    assert ports[begun:] + ports[:begun] == [way.labels[place] for place in (0, 4, 2, 6, 1, 5, 3, 7)]


@given(stamps=stamps_of_fabric, batches=st.lists(st.integers(1, 60), max_size=60), seed=st.integers(0, 99))
def test_drb_takes_all_paths_in_turn_whichever_way_it_is_asked(
    stamps: set[int], batches: list[int], seed: int
) -> None:
    policy, way = compiled("round-robin", seed), route(stamps)
    ports: list[int] = []
    for number, count in enumerate(batches):
        flow = Inner(number % 3, number)
        if count == 1:
            ports.append(policy.entropy(flow, way, 1000, 0.0))
        else:
            ports += policy.entropies(flow, way, 1000, count, 10, 0.0)
    order = digit_reversed(way.labels)
    assert sorted(order) == sorted(way.labels)
    for one, other in pairwise(ports):
        assert order[(order.index(one) + 1) % len(order)] == other
    shares = Counter(ports)
    assert max(shares.values(), default=0) - min((shares[label] for label in way.labels), default=0) <= 1


def expected_cells(sizes: list[int], limit: int) -> list[int]:
    """Return the cell number of each packet, computed anew: cells are filled as long as the next packet fits."""
    cells, used, cell = [], 0, 0
    for size in sizes:
        if used and used + size > limit:
            used, cell = 0, cell + 1
        used += size
        cells.append(cell)
    return cells


@given(stamps=stamps_of_fabric, batches=calls, limit=st.sampled_from([65536, 3000, 100]))
@settings(deadline=None)
def test_presto_changes_path_where_a_cell_is_full_and_nowhere_else(
    stamps: set[int], batches: list[tuple[int, int, int]], limit: int
) -> None:
    policy, way = compiled("flowcell", flowcell_bytes=limit), route(stamps)
    ports: list[int] = []
    sizes: list[int] = []
    for size, count, last in batches:
        if count == 1:
            ports.append(policy.entropy(FLOW, way, last, 0.0))
        else:
            ports += policy.entropies(FLOW, way, size, count, last, 0.0)
        sizes += [size] * (count - 1) + [last]
    start = way.labels.index(ports[0])
    cells = expected_cells(sizes, limit)
    assert ports == [way.labels[(start + cell) % len(way.labels)] for cell in cells]


def test_presto_goes_on_in_its_cell_when_other_paths_die_and_leaves_one_that_died() -> None:
    policy, way = compiled("flowcell"), route({1, 2, 3, 4})
    port = policy.entropy(FLOW, way, 1000, 0.0)
    way.labels = tuple(label for label in way.labels if label == port or label != way.labels[0])
    assert policy.entropy(FLOW, way, 1000, 0.0) == port
    way.labels = tuple(label for label in way.labels if label != port)
    assert policy.entropy(FLOW, way, 1000, 0.0) in way.labels


@given(
    stamps=stamps_of_fabric,
    pauses=st.lists(st.floats(0.0, 0.05), max_size=100),
    gap=st.floats(0.001, 0.04),
    seed=st.integers(0, 2**32 - 1),
)
def test_letflow_changes_path_only_after_a_gap(
    stamps: set[int], pauses: list[float], gap: float, seed: int
) -> None:
    policy, way = compiled("flowlet", seed, gap_s=gap), route(stamps)
    now, port = 0.0, policy.entropy(FLOW, way, 1000, 0.0)
    for pause in pauses:
        before, now = now, now + pause
        drawn = set(policy.entropies(FLOW, way, 1000, 3, 1000, now))
        assert len(drawn) == 1, "packets of one time are of one flowlet"
        if now - before <= gap:
            assert drawn == {port}
        port = drawn.pop()


def test_letflow_draws_evenly_after_gaps() -> None:
    policy, way = compiled("flowlet", 4, gap_s=0.01), route(set(range(1, 9)))
    drawn = Counter(policy.entropy(FLOW, way, 1000, turn * 0.02) for turn in range(4000))
    chi_square = sum((drawn[label] - 500) ** 2 / 500 for label in way.labels)
    assert chi_square < 29.9, "7 degrees of freedom: exceeded once in 10 000 seeds"


@pytest.mark.parametrize("kind", ["flowcell", "flowlet"])
def test_a_flow_that_is_forgotten_begins_anew(kind: str) -> None:
    policy = compiled("flowcell") if kind == "flowcell" else compiled("flowlet", gap_s=1.0)
    way = route({1, 2, 3})
    first = policy.entropies(FLOW, way, 1400, 30, 1400, 0.0)
    policy.forget(FLOW.id)
    again = policy.entropies(FLOW, way, 1400, 46, 1400, 0.0)
    if kind == "flowcell":
        assert again == first[:1] * 46, "a new cell of 64 KB from the flow's first path on"
    assert set(again) <= set(way.labels)
