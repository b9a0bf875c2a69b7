"""Simulated runs of each pattern of sources and destinations, of bursts, and of a large fat tree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import median

import pytest

from cli.specs import load_spec
from experiments.results.document import Run
from experiments.results.outcome import FlowOutcome
from experiments.spec.spec import Spec
from simulation.batch import prepare, simulate
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import Application, Arrivals, PatternName, Sizes

GBIT = FabricSpec(leaves=3, spines=2, hosts_per_leaf=4, link=Link(1000), access=Link(1000))
ARRIVALS = Arrivals(rate_per_s=4000.0)


def spec_with(
    pattern: PatternName,
    fabric: FabricSpec = GBIT,
    count: int = 120,
    arrivals: Arrivals = ARRIVALS,
    scheme: str = "rps",
) -> Spec:
    spec = load_spec("small", (scheme,)).spec
    flows = replace(spec.workload.flows, count=count, pattern=pattern, arrivals=arrivals)
    workload = replace(spec.workload, flows=flows, long_flows=None)
    return replace(spec, fabric=fabric, workload=workload, warm_up_s=0.0, timeout_s=3.0)


def run_of(spec: Spec) -> Run:
    """Return the only run, all of whose flows have delivered all their bytes."""
    ((_, run),) = simulate([prepare(spec)])
    for flow in run.flows:
        assert (flow.state, flow.bytes_acked) == ("finished", flow.size_bytes)
        assert flow.started_s == pytest.approx(flow.planned_s, abs=1e-9)
    return run


def leaves(spec: Spec) -> dict[str, int]:
    return {end.host: end.leaf for end in spec.endpoints()}


def test_an_incast_ends_at_one_host_no_sooner_than_its_link_can_carry_it() -> None:
    run = run_of(spec_with("incast", arrivals=Arrivals(rate_per_s=1e6)))
    assert len({flow.destination for flow in run.flows}) == 1
    assert len({flow.source for flow in run.flows}) > 4
    total_bits = 8 * sum(flow.size_bytes or 0 for flow in run.flows)
    first = min(flow.planned_s for flow in run.flows)
    last = max((flow.started_s or 0.0) + (flow.fct_s or 0.0) for flow in run.flows)
    assert last - first > total_bits / 1e9
    assert sum((run.drops or {}).values()) > 0, "that many at once overflow the port to the receiver"


def test_a_permutation_has_one_destination_for_each_source() -> None:
    run = run_of(spec_with("permutation"))
    to: dict[str, set[str]] = defaultdict(set)
    of: dict[str, set[str]] = defaultdict(set)
    for flow in run.flows:
        to[flow.source].add(flow.destination)
        of[flow.destination].add(flow.source)
    assert len(to) == len(of) == 12
    assert all(len(ends) == 1 for ends in (*to.values(), *of.values()))


def test_all_to_all_goes_between_all_leaves_both_ways() -> None:
    spec = spec_with("random", count=200)
    leaf = leaves(spec)
    pairs = {(leaf[flow.source], leaf[flow.destination]) for flow in run_of(spec).flows}
    assert pairs == {(one, other) for one in (1, 2, 3) for other in (1, 2, 3) if one != other}


def test_left_to_right_goes_from_the_first_half_of_the_leaves_to_the_others() -> None:
    spec = spec_with("left-to-right")
    leaf = leaves(spec)
    pairs = {(leaf[flow.source], leaf[flow.destination]) for flow in run_of(spec).flows}
    assert pairs == {(1, 2), (1, 3)}


def test_bursts_start_in_their_on_periods_alone() -> None:
    on_s, off_s = 0.004, 0.006
    run = run_of(spec_with("random", arrivals=Arrivals("burst", 4000.0, None, on_s, off_s)))
    periods: dict[float, int] = defaultdict(int)
    for flow in run.flows:
        index, within = divmod(flow.planned_s, on_s + off_s)
        assert within <= on_s + 1e-6
        periods[index] += 1
    assert len(periods) >= 3
    assert sum(periods.values()) == 120


K = 16
HALF = K // 2
NEAR = tuple(f"h{number}" for number in (*range(1, HALF + 1), *range(1017, 1025)))
"""Hosts of the first edge switch, and of the last, in another pod."""


def cores_of(flow: FlowOutcome) -> set[int]:
    """Return the cores, from 1 on, by which a flow's data went; stamps of cores come behind those within a pod."""
    return {int(stamp) - HALF for stamp in flow.paths if int(stamp) > HALF}


@pytest.mark.slow
def test_a_fat_tree_of_1024_hosts_avoids_what_is_down_and_feels_what_is_slow_or_far() -> None:
    down, slow, far = "e1-a1", "e1-a2", "a3-c17"
    link = Link(10_000, delay_ms=0.001)
    overrides = {slow: Link(1000, delay_ms=0.001), far: Link(10_000, delay_ms=0.5)}
    fabric = FabricSpec("fat-tree", k=K, link=link, access=Link(10_000), down=(down,), overrides=overrides)
    spec = spec_with("random", fabric, 600, Arrivals(rate_per_s=200.0), "ecmp")
    sizes = Sizes("fixed", bytes=30_000)
    applications = (
        Application("near", sizes, port=5601, hosts=NEAR),
        Application("everywhere", sizes, port=5602),
    )
    flows = replace(spec.workload.flows, sizes=None, applications=applications)
    run = run_of(replace(spec, workload=replace(spec.workload, flows=flows)))
    assert len(run.flows) == 600
    near = [flow for flow in run.flows if flow.application == "near"]
    by_slow: list[float] = []
    by_far: list[float] = []
    others: list[float] = []
    for flow in near:
        (core,) = cores_of(flow)
        assert core > HALF, "cores 1 to 8 are those of aggregation switch 1, to which the link is down"
        (by_slow if core <= 2 * HALF else by_far if core == 17 else others).append(flow.fct_s or 0.0)
    assert min(len(by_slow), len(by_far), len(others)) > 0
    assert min(by_slow) > 30_000 * 8 / 1e9
    assert min(by_far) > 0.5e-3
    assert median(others) < 30_000 * 8 / 1e9
    everywhere = {flow.source for flow in run.flows if flow.application == "everywhere"}
    assert len(everywhere) > 200
