"""Simulated runs from Python: exact lone flows, books, repeatability, and what cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulation.fabrics import Fabric, LinkChange, SettingsError
from simulation.ideal import lone_ps
from simulation.runs import Result, run
from simulation.settings import Buffer, FixedWindow, PFabricHosts, Settings
from simulation.tcp import PROFILES, Profile, Tcp
from simulation.trace import Trace
from simulation.websearch import common_trace

ENDLESS = FixedWindow(window=1_000_000)
SMALL = Fabric(leaves=3, hosts_per_leaf=8, spines=4)
PFABRIC = Settings(SMALL, Buffer("pfabric", limit_bytes=36_864), PFabricHosts(), seed=3)


def flows(*rows: tuple[int, int, int, int], level: int = 0) -> Trace:
    columns = np.array(rows, dtype=np.int64).T
    return Trace(columns[0], columns[1], columns[2], columns[3], np.full(len(rows), level, dtype=np.int64))


def among(hosts: int, count: int) -> Trace:
    """Return the common trace's first flows, folded onto fewer hosts."""
    trace = common_trace().first(count)
    sources = trace.sources % hosts
    destinations = trace.destinations % hosts
    destinations = np.where(sources == destinations, (destinations + 1) % hosts, destinations)
    return replace(trace, sources=sources, destinations=destinations, sizes=np.minimum(trace.sizes, 200_000))


def fabrics() -> st.SearchStrategy[Fabric]:
    rates = st.sampled_from([1.0, 3.0, 10.0, 25.0, 40.0])
    leaf_spine = st.builds(
        Fabric, st.just("leaf-spine"), leaves=st.just(2), hosts_per_leaf=st.just(2), spines=st.integers(1, 3),
        host_gbps=rates, fabric_gbps=rates, delay_us=st.sampled_from([0.0, 0.2, 5.0]),
    )  # fmt: skip
    fat_tree = st.builds(Fabric, st.just("fat-tree"), k=st.just(4), host_gbps=rates, fabric_gbps=rates)
    return leaf_spine | fat_tree


ONE_SLOW = Fabric(
    "leaf-spine", leaves=2, hosts_per_leaf=2, spines=1, host_gbps=3.0, fabric_gbps=1.0, delay_us=0.0
)


@example(
    fabric=ONE_SLOW, size=4381, target=2, start=0
)  # its last acknowledgement waits for the one before it
@settings(max_examples=60, deadline=None)
@given(fabric=fabrics(), size=st.integers(1, 60_000), target=st.integers(1, 3), start=st.integers(0, 10**6))
def test_a_lone_flow_takes_what_arithmetic_says(fabric: Fabric, size: int, target: int, start: int) -> None:
    # In turn, packets that catch up with a shorter one on another spine may overtake; on one path none does.
    given = Settings(fabric, transport=ENDLESS, paths="hash")
    trace = flows((start, 0, target, size))
    assert run(given, trace).completed_ps.tolist() == lone_ps(given, trace).tolist()


def test_no_flow_is_faster_than_alone() -> None:
    trace = among(SMALL.hosts, 400)
    for chosen in (PFABRIC, Settings(SMALL, paths="hash")):
        assert (run(chosen, trace).completed_ps / lone_ps(chosen, trace)).min() >= 1


def test_drops_by_hop_are_all_drops() -> None:
    result = run(PFABRIC, among(SMALL.hosts, 400))
    totals = result.totals
    assert totals.packets_dropped == totals.data_packets_dropped + totals.acknowledgements_dropped
    assert sum(result.drops.values()) == totals.packets_dropped
    assert list(result.drops) == ["host to leaf", "leaf to spine", "spine to leaf", "leaf to host"]
    assert totals.data_packets_dropped > 0
    assert totals.data_packets_sent == result.sent.sum() > result.resent.sum() > 0


def results_of(result: Result) -> tuple[list[int], list[int], object]:
    return result.completed_ps.tolist(), result.sent.tolist(), result.links


def test_the_same_seed_gives_the_same_result() -> None:
    trace = among(SMALL.hosts, 300)
    assert results_of(run(PFABRIC, trace)) == results_of(run(PFABRIC, trace))
    assert results_of(run(PFABRIC, trace)) != results_of(run(replace(PFABRIC, seed=4), trace))


def test_a_link_that_is_down_carries_nothing_and_a_slow_one_less() -> None:
    trace = among(SMALL.hosts, 300)
    changes = (LinkChange.parse("0-1=0"), LinkChange.parse("2-3=1@4.5"))
    result = run(Settings(replace(SMALL, changes=changes)), trace)
    changed = [link for link in result.links if link["bps"] != 10 * 10**9]
    assert [(link["bps"], link["delay_ps"]) for link in changed] == [
        (0, 200_000),
        (10**9, 4_500_000),
        (0, 200_000),
        (10**9, 4_500_000),
    ]
    assert [link["offered"] > 0 for link in changed] == [False, True, False, True]


def test_strict_queues_serve_low_levels_first() -> None:
    # Seven hosts send at once to the eighth; the one of level 0 ends first, whichever it is.
    for first in range(7):
        rows = flows(*((0, host, 7, 60_000) for host in range(7)), level=1)
        rows.levels[first] = 0
        completed = run(Settings(SMALL, Buffer("strict")), rows).completed_ps
        assert completed.argmin() == first


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Settings(Fabric(host_gbps=0)), "0 bit/s"),
        (Settings(Fabric(host_gbps=-1)), "give 0 to 10000"),
        (Settings(Fabric(spines=0)), "at least 1"),
        (Settings(Fabric("fat-tree", k=5)), "k is even"),
        (Settings(replace(SMALL, changes=(LinkChange(3, 0, 1.0),))), "no link 3-0"),
        (Settings(replace(SMALL, changes=tuple(LinkChange(0, s, 0) for s in range(4)))), "no path is left"),
        (Settings(SMALL, Buffer(limit_bytes=1000)), "holds no packet of 1500 B"),
        (Settings(SMALL, Buffer(limit_bytes=10_000, limit_packets=10)), "not in both"),
        (Settings(SMALL, Buffer(limit_packets=2)), "flows never ended"),
        (Settings(SMALL, transport=FixedWindow(0)), "at least 1 packet"),
        (Settings(SMALL, transport=Tcp(sack=False, rack=True)), "need SACK"),
        (Settings(SMALL, transport=Tcp(delayed_packets=2)), "need a time"),
        (Settings(SMALL, seed=-1), "seed -1"),
    ],
)
def test_settings_that_cannot_be_say_why(given: Settings, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        run(given, flows((0, 0, 9, 60_000), (0, 1, 9, 60_000)))


@pytest.mark.parametrize("profile", get_args(Profile))
def test_every_profile_ends_all_flows_and_repeats_what_is_lost(profile: Profile) -> None:
    small = Buffer(limit_packets=20, mark_from_packets=8)
    given = Settings(SMALL, small, PROFILES[profile], paths="random")
    result = run(given, among(SMALL.hosts, 300))
    totals = result.totals
    assert result.resent.sum() >= totals.data_packets_dropped > 0
    assert (result.completed_ps >= result.delivered_ps).all()
    assert sum(link["marked"] for link in result.links) > 0 or not PROFILES[profile].marks


@pytest.mark.parametrize("rows", [(0, 0, 24, 1), (0, 5, 5, 1), (0, 0, 1, 0), (0, 0, 1, 2**43)])
def test_flows_that_cannot_be_are_errors(rows: tuple[int, int, int, int]) -> None:
    with pytest.raises(SettingsError, match="flow 0"):
        run(Settings(SMALL), flows(rows))


@pytest.mark.parametrize("text", ["0-1", "0-1=", "a-b=1", "0-1=1@", "0-1=-1", "0-1=1 "])
def test_a_link_that_is_written_wrongly_is_an_error(text: str) -> None:
    with pytest.raises(SettingsError, match="LEAF-SPINE"):
        LinkChange.parse(text)
