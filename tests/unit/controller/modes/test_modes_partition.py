"""Freeway's split of paths: by which loads, how much, how steadily; and on a fabric, with meters."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.modes.partition import LATE, LONG_UTILISATION, SLACK, PathPartition, highest_load
from controller.openflow.tables import LONG_METER, PUNT_METER, SHORT_METER
from controller.plane.effects import PartitionChanged, PathsChanged
from controller.schemes.loader import scheme_from_dict, scheme_to_dict
from controller.schemes.scheme import ClassScheme, PartitionRule, Scheme
from plain.reading import PlainError
from protocol.underlay import TrafficClass, label_of
from tests.unit.fabric_shapes import LABELS, datagram, fat_tree, leaf_spine, stamp_of
from tests.unit.simulated_fabric import Simulation

RULE = PartitionRule()
PACKET_S = 0.004
UPLINKS = 8
FREEWAY = Scheme("freeway", "Freeway", "", *(ClassScheme("label") for _ in range(3)), partition=RULE)
loads = st.floats(0.0, 1.0)


def measured(short: float, long: float, samples: int = 1, leaves: int = 1) -> PathPartition:
    """Return a split after *samples* samples of these loads, as shares of the uplinks."""
    made = PathPartition(RULE, PACKET_S)
    feed(made, [(short, long)] * samples, leaves=leaves)
    return made


def feed(
    made: PathPartition, shares: list[tuple[float, float]], leaves: int = 1, start: float = 0.0
) -> float:
    capacity = UPLINKS * 1500 / PACKET_S * made.sampling_time_s
    now, counts = start, [0.0, 0.0]
    for leaf in range(leaves):
        made.watch(leaf, UPLINKS, now)
        made.sample(leaf, 0, 0, now)
    for short, long in shares:
        now += made.sampling_time_s
        counts = [counts[0] + short * capacity, counts[1] + long * capacity]
        for leaf in range(leaves):
            made.sample(leaf, round(counts[0]), round(counts[1]), now)
    return now


@given(st.floats(1, 1e4), st.floats(0.1, 1e3))
def test_the_highest_load_is_where_one_in_a_hundred_is_late(deadline: float, burst: float) -> None:
    load = highest_load(deadline, burst)
    assert 0 <= load <= 1
    assert load * math.exp(-(1 - load) * deadline / burst) == pytest.approx(LATE, rel=1e-6)


def test_bursts_at_the_highest_load_wait_longer_than_the_deadline_once_in_a_hundred_times() -> None:
    """Lindley's recursion over a simulated queue: independent of the formula."""
    deadline, burst = 100.0, 10.0
    load = highest_load(deadline, burst)
    rng = np.random.default_rng(5)
    count = 2_000_000
    steps = rng.exponential(burst, count) - rng.exponential(burst / load, count)
    walk = np.concatenate(([0.0], np.cumsum(steps)))
    waits = walk - np.minimum.accumulate(walk)
    assert np.mean(waits > deadline) == pytest.approx(LATE, rel=0.1)


@given(loads, loads, st.integers(2, 40))
def test_every_path_is_for_one_kind_and_each_kind_has_one(short: float, long: float, paths: int) -> None:
    stamps = tuple(range(100, 100 + paths))
    split = measured(short, long).split([stamps])
    assert split.low_latency | split.throughput == set(stamps)
    assert not split.low_latency & split.throughput
    assert split.low_latency
    assert split.throughput
    needed = short / highest_load(RULE.deadline_packet_times, RULE.burst_packets)
    left = 1 - long / LONG_UTILISATION
    assert len(split.low_latency) == pytest.approx(
        max(1, min(paths - 1, max(needed, left) * paths)), abs=1.001
    )


@given(loads, loads, st.sets(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 4))
def test_sets_within_sets_are_all_split(short: float, long: float, kept: set[int], pods: int) -> None:
    """A fat tree: the pods' aggregations, all cores, and what is left of the cores after failures."""
    cores = tuple(range(1, 17))
    sets = [cores, tuple(sorted(set(cores) - kept))]
    sets += [tuple(range(100 * pod, 100 * pod + 4)) for pod in range(1, pods + 1)]
    split = measured(short, long).split(sets)
    assert split.low_latency.isdisjoint(split.throughput)
    assert split.low_latency | split.throughput == {stamp for one in sets for stamp in one}
    for one in sets:
        assert split.low_latency.intersection(one)
        assert split.throughput.intersection(one)


def test_a_single_path_is_for_both() -> None:
    split = measured(0.1, 0.9).split([(7,), ()])
    assert split.by_class([(7,)]) == {}
    assert split.low_latency | split.throughput == {7}


@given(st.lists(st.tuples(loads, loads), min_size=2, max_size=12), st.integers(2, 20))
def test_more_short_flows_never_have_fewer_paths(samples: list[tuple[float, float]], paths: int) -> None:
    stamps = [tuple(range(1, paths + 1))]
    for long in (0.0, 0.3, 1.0):
        counts = [
            len(measured(short, long).split(stamps).low_latency) for short in sorted(s for s, _ in samples)
        ]
        assert counts == sorted(counts)


def test_an_idle_fabric_is_low_latency_and_backlogged_long_flows_take_what_short_ones_need_not() -> None:
    stamps = tuple(range(1, 9))
    idle = measured(0.0, 0.0).split([stamps])
    assert (len(idle.low_latency), len(idle.throughput)) == (7, 1)
    made = PathPartition(RULE, PACKET_S)
    now, sizes = 0.0, []
    for _ in range(4):  # long flows fill the paths that they have
        have = len(made.split([stamps]).throughput)
        sizes.append(have)
        now = feed(made, [(0.05, have / 8)], start=now)
    kept = math.ceil(
        SLACK * 8 * 0.05 / made.highest_load
    )  # what short flows would need at SLACK times their load
    assert sizes == [1, 2, 4, 8 - kept]
    assert made.split([stamps]).low_latency == set(range(1, kept + 1))
    busy = measured(0.3, 1.0).split([stamps])
    assert len(busy.low_latency) == math.ceil(8 * 0.3 / made.highest_load)


def test_paths_are_gained_at_once_and_lost_slowly_and_few_change_sides() -> None:
    stamps = tuple(range(1, 9))
    made = PathPartition(RULE, PACKET_S)
    now = feed(made, [(0.1, 1.0)])
    before = made.split([stamps])
    now = feed(made, [(0.4, 1.0)], start=now)
    more = made.split([stamps])
    assert before.low_latency < more.low_latency
    counts = []
    for _ in range(RULE.samples + 2):
        now = feed(made, [(0.1, 1.0)], start=now)
        counts.append(len(made.split([stamps]).low_latency))
    assert counts[: RULE.samples - 1] == [len(more.low_latency)] * (RULE.samples - 1)
    assert counts[-1] == math.ceil(SLACK * 8 * 0.1 / made.highest_load) < len(more.low_latency)
    changes = sum(a != b for a, b in itertools.pairwise(counts))
    assert changes == 1


@pytest.mark.parametrize("long", [0.11, 0.2, 0.22, 0.25, 0.3, 0.34])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_load_with_noise_changes_the_split_seldom(long: float, seed: int) -> None:
    """At whole numbers of paths, where rounding is worst: 200 samples with 20 % of noise."""
    rng = np.random.default_rng(seed)
    made, stamps, counts = PathPartition(RULE, PACKET_S), [(1, 2, 3, 4)], []
    now = 0.0
    for _ in range(200):
        now = feed(made, [(0.02, max(0.0, long * (1 + 0.2 * rng.standard_normal())))], start=now)
        counts.append(len(made.split(stamps).low_latency))
    assert sum(a != b for a, b in itertools.pairwise(counts[20:])) <= 2


_LEAST = st.floats(0.005, 0.5)
_VARYING = st.lists(
    st.tuples(st.floats(1, 0.99 * SLACK), st.floats(1, 0.99 * SLACK)), min_size=2, max_size=60
)


@given(_LEAST, _LEAST, _VARYING, st.integers(2, 24))
def test_loads_within_the_dead_band_never_move_paths_to_and_fro(
    short: float, long: float, factors: list[tuple[float, float]], paths: int
) -> None:
    """Whatever the order of the loads: low-latency paths may be gained, and then lost, but not gained again."""
    made, stamps, counts, now = PathPartition(RULE, PACKET_S), [tuple(range(1, paths + 1))], [], 0.0
    for by_short, by_long in factors:
        now = feed(made, [(short * by_short, long * by_long)], start=now)
        counts.append(len(made.split(stamps).low_latency))
    steps = [after - before for before, after in itertools.pairwise(counts) if after != before]
    assert not any(before < 0 < after for before, after in itertools.pairwise(steps)), counts


def test_all_leaves_have_the_split_of_the_busiest() -> None:
    made = PathPartition(RULE, PACKET_S)
    for leaf, share in ((1, 0.05), (2, 0.4)):
        made.watch(leaf, UPLINKS, 0.0)
        made.sample(leaf, 0, 0, 0.0)
        capacity = UPLINKS * 1500 / PACKET_S
        made.sample(leaf, round(share * capacity), round(capacity), 1.0)
    assert made.low_latency_share() == pytest.approx(0.4 / made.highest_load, rel=1e-3)
    made.watch(2, 0, 1.0)
    assert made.low_latency_share() == pytest.approx(0.05 / made.highest_load, rel=1e-3)


def test_meters_are_read_once_a_sampling_time_and_again_when_an_answer_is_lost() -> None:
    made = PathPartition(RULE, PACKET_S)
    assert made.deadline() is None
    made.watch(5, 4, 10.0)
    assert made.due(10.0) == (5,)
    assert made.due(10.1) == ()
    made.sample(5, 1, 1, 10.2)
    assert made.deadline() == pytest.approx(10.2 + made.sampling_time_s)
    assert made.due(made.deadline() or 0) == (5,)
    assert made.due(made.deadline() or 0) == (5,)
    made.sample(5, 0, 0, 20.0)  # the switch was restarted
    assert made.low_latency_share() == 1.0
    made.sample(99, 5, 5, 20.0)
    assert made.due(20.0) == ()


# On a fabric


def running(sim: Simulation, scheme: Scheme = FREEWAY) -> Simulation:
    sim.set_scheme(scheme, PACKET_S)
    sim.start()
    sim.run_until(sim.plane.ready, 5)
    sim.run(1)
    return sim


def partitions(sim: Simulation) -> list[PartitionChanged]:
    return [event for event in sim.events if isinstance(event, PartitionChanged)]


def load(sim: Simulation, leaf: int, short: float, long: float, seconds: float) -> None:
    """Run for *seconds* while the meters of *leaf* count as at these shares of four uplinks."""
    counts = sim.fabric.switches[leaf].meter_counts
    for _ in range(round(seconds / 0.05)):
        for meter, share in ((SHORT_METER, short), (LONG_METER, long)):
            counts[meter] = counts.get(meter, 0) + round(share * 4 * 0.05 / PACKET_S)
        sim.run(0.05)


def test_the_split_follows_the_meters_and_agents_are_informed() -> None:
    sim = running(Simulation(leaf_spine(2, 4, 1)))
    h1, h2 = sim.shape.hosts
    leaf = h1.place.dpid
    stamps = tuple(stamp_of(sim.shape, 0x20000 + spine) for spine in range(1, 5))
    assert partitions(sim)[-1].low_latency == stamps[:3]
    load(sim, leaf, 0.05, 1.0, 3.0)
    last = partitions(sim)[-1]
    assert (last.low_latency, last.throughput) == (stamps[:1], stamps[1:])
    for event in sim.events:
        if isinstance(event, PathsChanged) and event.by_class:
            assert set(event.by_class["short"]).isdisjoint(event.by_class["long"])
            assert {*event.by_class["short"], *event.by_class["long"]} == set(stamps)
    announced = {event.leaf: event.by_class for event in sim.events if isinstance(event, PathsChanged)}
    assert announced[leaf] == {"short": stamps[:1], "long": stamps[1:], "control": stamps[:1]}
    count = len(partitions(sim))
    load(sim, leaf, 0.05, 1.0, 3.0)
    assert len(partitions(sim)) == count, "a steady load changes nothing"
    # what agents name is where packets go
    for stamp in stamps:
        [trace] = sim.fabric.traces(datagram(h1, h2, TrafficClass.LONG, label_of(stamp)), h1.place)
        assert trace.packet.udp_src == stamp
    # a dead path leaves both kinds with some
    sim.cut(next(link for link in sim.shape.links if {link.a.dpid, link.b.dpid} == {leaf, 0x20001}))
    sim.run(0.1)
    announced = {event.leaf: event.by_class for event in sim.events if isinstance(event, PathsChanged)}
    assert announced[leaf]["short"]
    assert announced[leaf]["long"]
    assert {*announced[leaf]["short"], *announced[leaf]["long"]} == set(stamps[1:])
    # and another scheme has no split
    sim.set_scheme(LABELS)
    sim.run(0.1)
    announced = {event.leaf: event.by_class for event in sim.events if isinstance(event, PathsChanged)}
    assert set(map(bool, announced.values())) == {False}
    assert not any(min(switch.state.meters) < PUNT_METER for switch in sim.fabric.switches.values())


def test_both_classes_are_counted_at_the_leaf_and_nothing_is_copied() -> None:
    sim = running(Simulation(fat_tree(4, 1)))
    h1, far = sim.shape.hosts[0], sim.shape.hosts[-1]
    for kind, count in ((TrafficClass.SHORT, 3), (TrafficClass.LONG, 5), (TrafficClass.CONTROL, 7)):
        for _ in range(count):
            sim.send(datagram(h1, far, kind), h1)
    assert sim.fabric.punted == []
    counts = {
        dpid: {meter: count for meter, count in one.meter_counts.items() if meter < PUNT_METER}
        for dpid, one in sim.fabric.switches.items()
    }
    assert {dpid: counted for dpid, counted in counts.items() if counted} == {
        h1.place.dpid: {SHORT_METER: 3, LONG_METER: 5}
    }


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"mode": {}, "control": {"by_mode": {"on": "hash", "off": "spray"}}},
            "cannot be together with a mode",
        ),
        ({"long": {"group": "spray"}}, "give long `group: label`"),
        ({"partition": {"burst_packets": 0}}, "partition.burst_packets: must be above 0"),
        ({"partition": {"samples": 0}}, r"must be 1\.\.1000"),
        ({"partition": {"sample": 1}}, "did you mean 'samples'"),
    ],
)
def test_rules_that_cannot_be_are_refused(change: dict[str, object], text: str) -> None:
    with pytest.raises(PlainError, match=text):
        scheme_from_dict(scheme_to_dict(FREEWAY) | change)
    assert scheme_from_dict(scheme_to_dict(FREEWAY)) == FREEWAY
