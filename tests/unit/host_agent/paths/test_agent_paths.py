"""Path policies over random fabrics and traffic: only live paths, no starvation, the same again for a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.paths import PathPolicy, Report, Route
from protocol.policy import PathKind
from protocol.underlay import EV_FIRST, EV_LAST, TrafficClass, label_of
from tests.unit.compiled_paths import compiled

KINDS: tuple[PathKind, ...] = get_args(PathKind)
NAMING = ("label-hash", "round-robin", "flowcell", "flowlet", "tr", "granted", "unblocked")
"""Kinds that name paths."""


@dataclass(frozen=True)
class Inner:
    id: int
    hash: int


def make(kind: PathKind, seed: int = 1) -> PathPolicy:
    return compiled("spray" if kind == "file" else kind, seed)


def route(*stamps: int, kind: TrafficClass = TrafficClass.SHORT, leaf: str = "b") -> Route:
    return Route(leaf, kind, tuple(map(label_of, sorted(stamps))))


def flows(count: int, seed: int = 2) -> list[Inner]:
    hashes = np.random.default_rng(seed).integers(2**32, size=count).tolist()
    return [Inner(number + 1, hashed) for number, hashed in enumerate(hashes)]


stamps_of_fabric = st.sets(st.integers(1, 4095), min_size=1, max_size=24)
one_packet = st.tuples(
    st.integers(0, 7),  # flow
    st.sampled_from([TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL]),
    st.integers(40, 1426),  # bytes
    st.integers(1, 60),  # packets at a time
    st.sampled_from([0.0, 1e-5, 1e-3, 0.03, 0.3]),  # seconds since the one before
    st.sampled_from(["", "report", "loss", "forget"]),
)


def run(
    policy: PathPolicy, stamps: set[int], traffic: list[tuple[int, TrafficClass, int, int, float, str]]
) -> list[int]:
    """Return source ports of a run of traffic; half-way the path with the largest stamp dies, if there are two."""
    now, ports = 1.0, []
    known = flows(8)
    kinds = (TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL)
    routes = {kind: route(*stamps, kind=kind) for kind in kinds}
    for place, (number, kind, size, count, pause, event) in enumerate(traffic):
        if place == len(traffic) // 2 and len(stamps) > 1:
            for one in routes.values():
                one.labels = one.labels[:-1]
        now += pause
        flow, way = known[number], routes[kind]
        if count == 1:
            drawn = [policy.entropy(flow, way, size, now)]
        else:
            drawn = policy.entropies(flow, way, size, count, max(40, size // 2), now)
        assert len(drawn) == count
        allowed = set(way.labels)
        assert all(port in allowed or EV_FIRST <= port <= EV_LAST for port in drawn)
        ports += drawn
        if event == "report":
            policy.reported(Report(flow.id, way.leaf, drawn[-1], min(stamps), pause, now), now + 0.002)
        elif event == "loss":
            policy.lost(flow.id, way.leaf, drawn[0], now)
        elif event == "forget":
            policy.forget(flow.id)
    return ports


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(stamps=stamps_of_fabric, traffic=st.lists(one_packet, max_size=60), seed=st.integers(0, 2**32 - 1))
def test_only_live_paths_and_the_same_again_for_a_seed(
    kind: PathKind,
    stamps: set[int],
    traffic: list[tuple[int, TrafficClass, int, int, float, str]],
    seed: int,
) -> None:
    ports = run(make(kind, seed), stamps, traffic)
    assert run(make(kind, seed), stamps, traffic) == ports
    if kind in NAMING:
        assert all(port < EV_FIRST for port in ports), "it has names, and uses them"
    else:
        assert all(port >= EV_FIRST for port in ports)


@pytest.mark.parametrize("kind", KINDS)
@given(hashed=st.integers(0, 2**32 - 1), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_without_names_of_paths_all_are_entropy_values(kind: PathKind, hashed: int, seed: int) -> None:
    policy, nowhere = make(kind, seed), route()
    drawn = [policy.entropy(Inner(1, hashed), nowhere, 1426, time / 100) for time in range(50)]
    drawn += policy.entropies(Inner(1, hashed), nowhere, 1426, 50, 40, 1.0)
    assert all(EV_FIRST <= port <= EV_LAST for port in drawn)


@pytest.mark.parametrize("kind", NAMING)
@settings(max_examples=10, deadline=None)
@given(stamps=st.sets(st.integers(1, 4095), min_size=1, max_size=16), seed=st.integers(0, 2**32 - 1))
def test_no_path_starves(kind: PathKind, stamps: set[int], seed: int) -> None:
    """Many flows of 100 kB, a packet each 2 ms: every path gets its share of the packets, at least the half of it."""
    policy, way = make(kind, seed), route(*stamps)
    used: Counter[int] = Counter()
    now = 0.0
    for flow in flows(80 * len(stamps), seed):
        for _ in range(3):
            now += 0.05
            used.update(policy.entropies(flow, way, 1426, 23, 1426, now))
        policy.forget(flow.id)
    assert set(used) == set(way.labels)
    assert min(used.values()) >= sum(used.values()) / len(stamps) / 2


@pytest.mark.parametrize("kind", ["flow-hash", "label-hash"])
@given(st.integers(0, 2**32 - 1))
def test_a_hash_keeps_a_flow_on_its_path(kind: PathKind, hashed: int) -> None:
    policy, way = make(kind), route(1, 2, 3, 4, 5)
    ports = {policy.entropy(Inner(1, hashed), way, size, size / 7) for size in range(40, 1400, 50)}
    assert len(ports) == 1


def test_flow_hash_distinguishes_flows() -> None:
    policy = make("flow-hash")
    assert len({policy.entropy(flow, route(), 100, 0.0) for flow in flows(500)}) > 480


@given(stamps=st.sets(st.integers(1, 4095), min_size=2, max_size=20), data=st.data())
@settings(max_examples=30)
def test_only_the_flows_of_a_path_that_dies_are_hashed_anew(stamps: set[int], data: st.DataObject) -> None:
    policy, way = make("label-hash"), route(*stamps)
    before = {flow: policy.entropy(flow, way, 100, 0.0) for flow in flows(60)}
    dead = label_of(data.draw(st.sampled_from(sorted(stamps))))
    way.labels = tuple(label for label in way.labels if label != dead)
    for flow, port in before.items():
        now = policy.entropy(flow, way, 100, 1.0)
        assert now == port or port == dead


def test_spray_is_even() -> None:
    policy = make("spray", 3)
    drawn = np.array([policy.entropy(Inner(1, 1), route(), 1426, 0.0) for _ in range(32_000)])
    counts = np.histogram(drawn, bins=16, range=(EV_FIRST, EV_LAST + 1))[0]
    chi_square = float(((counts - 2000.0) ** 2 / 2000.0).sum())
    assert chi_square < 44.3, "15 degrees of freedom: exceeded once in 10 000 seeds"
    assert len(set(drawn.tolist())) > 20_000
