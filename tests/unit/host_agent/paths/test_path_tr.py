"""TR: Algorithm 1 rule by rule, and the order that it keeps in a simulated fabric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.paths import CompiledPathPolicy
from host_agent.paths.base import Load, PathPolicy, Report, Route
from protocol.policy import PathSettings
from protocol.underlay import TrafficClass, label_of
from tests.unit.compiled_paths import PACKET_TIME_S, compiled
from tests.unit.path_simulation import Fabric


@dataclass(frozen=True)
class Inner:
    id: int
    hash: int


def route(paths: int, kind: TrafficClass = TrafficClass.SHORT) -> Route:
    return Route("b", kind, tuple(map(label_of, range(1, paths + 1))))


def probe(
    policy: CompiledPathPolicy, way: Route, delays: list[float], now: float, round_trip_s: float = 0.002
) -> None:
    """Feed reports of some other host's flow, one of each path.

    What was sent a round-trip time ago had these delays (s).
    """
    for stamp, delay in enumerate(delays, 1):
        policy.reported(Report(999, way.leaf, label_of(stamp), stamp, delay, now - round_trip_s), now)


def test_a_short_flow_begins_on_the_fastest_path() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(4)
    probe(policy, way, [0.02, 0.01, 0.004, 0.03], 1.0)
    assert policy.entropy(Inner(1, 7), way, 1000, 1.0) == label_of(3)


def test_a_long_flow_begins_where_the_fewest_short_flows_are_and_ties_go_to_the_fastest() -> None:
    policy, long = compiled("tr", packet_time_s=PACKET_TIME_S), route(4, TrafficClass.LONG)
    probe(policy, long, [0.02, 0.01, 0.03, 0.04], 1.0, round_trip_s=0.5)
    for number, stamp in enumerate((1, 1, 2), 1):
        only = Route("b", TrafficClass.SHORT, (label_of(stamp),))
        policy.entropy(Inner(number, number), only, 1000, 1.0)
    assert policy.load(1.0).short_flows == {1: 2, 2: 1}
    policy.set_load(Load({2: 3}, {}), 1.0)
    probe(policy, long, [0.02, 0.01, 0.03, 0.04], 1.001)
    assert policy.entropy(Inner(9, 9), long, 1000, 1.001) == label_of(3), "3 and 4 have none, 3 is faster"
    policy.set_load(Load({2: 3, 3: 1}, {}), 1.001)
    assert policy.entropy(Inner(10, 9), long, 1000, 1.001) == label_of(4)


def test_short_flows_are_inactive_after_a_round_trip_time_without_a_packet() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(2)
    probe(policy, way, [0.0, 0.0], 1.0, round_trip_s=0.1)
    policy.entropy(Inner(1, 1), way, 1000, 1.0)
    policy.entropy(Inner(2, 2), way, 1000, 1.05)
    assert sum(policy.load(1.09).short_flows.values()) == 2
    assert sum(policy.load(1.11).short_flows.values()) == 1
    assert policy.load(1.2).short_flows == {}
    policy.entropy(Inner(2, 2), way, 1000, 1.3)
    policy.entropy(Inner(2, 2), route(2, TrafficClass.LONG), 1000, 1.31)
    assert policy.load(1.31).short_flows == {}, "it has grown long"


@settings(max_examples=200)
@given(
    delays=st.lists(st.floats(0.0, 0.05), min_size=2, max_size=8),
    later=st.lists(st.floats(0.0, 0.05), min_size=8, max_size=8),
    pause=st.floats(0.0, 0.06),
    kind=st.sampled_from([TrafficClass.SHORT, TrafficClass.LONG]),
    hashed=st.integers(0, 2**32 - 1),
)
def test_no_packet_takes_a_path_on_which_it_may_overtake_the_one_before(
    delays: list[float], later: list[float], pause: float, kind: TrafficClass, hashed: int
) -> None:
    """With queues as reported at both times: c_TNL >= p_TNL holds of the true delays."""
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(len(delays), kind)
    flow = Inner(1, hashed)
    probe(policy, way, delays, 1.0, round_trip_s=0.0)
    first = policy.entropy(flow, way, 1426, 1.0)
    arrives = 1.0 + delays[first - label_of(1)]
    now = 1.0 + pause
    probe(policy, way, later[: len(delays)], now, round_trip_s=0.0)
    second = policy.entropy(flow, way, 1426, now)
    if second != first:
        assert now + later[second - label_of(1)] >= arrives


def test_a_flow_whose_packets_have_all_arrived_is_free() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(2)
    flow, here, there = Inner(1, 1), label_of(1), label_of(2)
    probe(policy, way, [0.05, 0.5], 1.0, round_trip_s=0.0)
    assert policy.entropies(flow, way, 1426, 3, 1426, 1.0) == [here] * 3
    probe(policy, way, [0.05, 0.0], 1.01)
    for _ in range(2):
        policy.reported(Report(1, "b", here, 1, 0.01, 1.0), 1.01)
    assert policy.entropy(Inner(2, 2), way, 1426, 1.01) == there, "a flow that is free goes there"
    assert policy.entropy(flow, way, 1426, 1.01) == here, "the third may still be on its way"
    probe(policy, way, [0.4, 0.0], 1.02)
    policy.reported(Report(1, "b", here, 1, 0.01, 1.01), 1.02)
    assert policy.entropy(flow, way, 1426, 1.02) == there


def test_a_path_where_packets_are_overdue_is_taken_to_be_as_slow_as_they_are_late() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(2)
    probe(policy, way, [0.0, 0.02], 1.0)
    first = Inner(1, 1)
    assert policy.entropy(first, way, 1426, 1.0) == label_of(1)
    assert policy.entropy(Inner(2, 2), way, 1426, 1.2) == label_of(2), "nothing came back in 0.2 s"
    assert policy.entropy(first, way, 1426, 1.2) == label_of(1), (
        "its packet is still on its way: order comes first"
    )
    assert policy.load(1.2).delays_s["b"][1] >= 0.1
    policy.reported(Report(1, "b", label_of(1), 1, 0.0, 1.2), 1.201)
    assert policy.entropy(first, way, 1426, 1.202) in way.labels
    assert 1 not in policy.load(1.202).delays_s.get("b", {})


def test_a_path_that_lost_packets_is_tried_again() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(2)
    for number in range(20):
        policy.entropy(Inner(number, number * 7919), way, 1426, 1.0)  # without any feedback
    used = {policy.entropy(Inner(number, number * 7919), way, 1426, 3.0) for number in range(20, 60)}
    assert used == set(way.labels)
    assert policy.load(3.0).delays_s == {}


def test_our_own_feedback_is_never_overdue() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(1)
    for turn in range(100):
        policy.entropy(Inner(-5, 3), way, 60, turn * 0.01)
    assert policy.load(1.0) == Load({}, {})


def test_what_other_agents_wait_for_counts_until_they_say_otherwise_or_it_is_old() -> None:
    policy, way = compiled("tr", packet_time_s=PACKET_TIME_S), route(3)
    policy.set_load(Load({}, {"b": {1: 0.3, 2: 0.1}}), 1.0)
    assert {policy.entropy(Inner(number, number * 77), way, 100, 1.0) for number in range(9)} == {label_of(3)}
    policy.set_load(Load({}, {"b": {2: 0.1, 3: 0.4}}), 2.0)
    assert policy.entropy(Inner(20, 5), way, 100, 2.0) == label_of(1)
    policy = compiled("tr", packet_time_s=PACKET_TIME_S)
    policy.set_load(Load({}, {"b": {1: 0.3, 2: 0.1}}), 2.0)
    used = {policy.entropy(Inner(number, number * 7919), way, 100, 9.0) for number in range(30, 90)}
    assert used == set(way.labels), "7 s and 2048 packet times later"


@pytest.mark.slow
def test_short_flows_of_other_hosts_keep_off_the_paths_that_long_flows_fill() -> None:
    """Eight hosts, four with a long flow that fills its path's queue: of 16 paths 12 are free, if agents say so."""

    def mean(share: bool) -> float:
        rng = np.random.default_rng(1)
        policies: list[PathPolicy] = [compiled("tr", packet_time_s=0.005) for _ in range(8)]
        fabric = Fabric(policies, [200.0] * 16, rng, share)
        for agent in range(4):
            fabric.start(0.01 * agent, agent, 10**6, 200)
        when = 1.0
        while (when := when + float(rng.exponential(1 / 20))) < 6.0:
            fabric.start(when, int(rng.integers(4, 8)), int(rng.integers(7, 70)), 10)
        fabric.run(16.0)
        assert fabric.reordering() < 0.005
        return float(np.mean([(flow.finished or 16.0) - flow.began for flow in fabric.flows[4:]]))

    assert mean(share=True) < 0.7 * mean(share=False)


def simulate(
    make: Callable[[np.random.Generator, float], PathPolicy], slow: float, seed: int
) -> tuple[Fabric, float]:
    """Simulate four hosts with a long flow each and 40 short flows/s on 8 paths of 1000 packets/s, two of them slower.

    Return the fabric and the mean completion time of its short flows, seconds.
    """
    rng = np.random.default_rng(seed)
    rates = [1000.0 / slow] * 2 + [1000.0] * 6
    fabric = Fabric([make(rng, slow / 1000.0) for _ in range(4)], rates, rng)
    for agent in range(4):
        fabric.start(0.01 * agent, agent, 10**6, 40)
    when = 0.0
    while (when := when + float(rng.exponential(1 / 40))) < 4.0:
        fabric.start(when, int(rng.integers(4)), int(rng.integers(7, 70)), 10)
    fabric.run(8.0)
    times = [flow.finished - flow.began for flow in fabric.flows[4:] if flow.finished is not None]
    assert len(times) == len(fabric.flows) - 4
    return fabric, float(np.mean(times))


@pytest.mark.slow
@pytest.mark.parametrize("slow", [1.0, 1.5, 2.5, 3.5])
def test_reordering_stays_below_half_a_percent_on_symmetric_and_asymmetric_fabrics(slow: float) -> None:
    fabric, mean = simulate(lambda _, packet_time: compiled("tr", packet_time_s=packet_time), slow, 1)
    assert fabric.reordering() < 0.005
    assert len({path for flow in fabric.flows for path in flow.paths}) == 8
    flowlets, _ = simulate(
        lambda rng, packet_time: CompiledPathPolicy(
            PathSettings("flowlet", gap_s=41.7 * packet_time), packet_time, rng
        ),
        slow,
        1,
    )
    assert flowlets.reordering() > fabric.reordering()
    turns, in_turn = simulate(
        lambda rng, packet_time: CompiledPathPolicy(PathSettings("round-robin"), packet_time, rng), slow, 1
    )
    assert turns.reordering() > 0.2
    if slow >= 1.5:
        assert mean < in_turn
        assert goodput(fabric) > goodput(flowlets)


def goodput(fabric: Fabric) -> int:
    """Count the packets of the long flows that arrived."""
    return sum(flow.arrived for flow in fabric.flows[:4])
