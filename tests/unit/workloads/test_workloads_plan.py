from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrivals import ArrivalsError, busy_s, flow_rate, rate_at_load, start_times
from workloads.description import (
    MOST_LAB_FLOWS,
    MOST_LONG_FLOWS,
    Application,
    Arrivals,
    Endpoint,
    Flows,
    LongFlows,
    PatternName,
    Sizes,
    Workload,
)
from workloads.patterns import PatternError, pairs
from workloads.plan import PlanError, build_plan, offered_capacity_bps

PATTERNS: list[PatternName] = ["random", "permutation", "incast", "left-to-right"]


def hosts(leaves: int, each: int) -> list[Endpoint]:
    return [
        Endpoint(f"h{leaf * each + place + 1}", leaf + 1, f"10.128.{leaf + 1}.{place + 1}")
        for leaf in range(leaves)
        for place in range(each)
    ]


def workload(count: int | None = 30, duration_s: float | None = None, rate: float = 10.0) -> Workload:
    return Workload(
        Flows(
            Sizes("uniform", low_bytes=10_000, high_bytes=100_000),
            Arrivals(rate_per_s=rate),
            count=count,
            duration_s=duration_s,
        ),
        LongFlows(4),
    )


@pytest.mark.slow
@given(seed=st.integers(0, 2**31), repeat=st.integers(0, 50))
def test_the_same_seed_gives_the_same_plan_and_another_repeat_another(seed: int, repeat: int) -> None:
    plan, again, other = (
        build_plan(workload(), hosts(2, 4), seed=seed, repeat=index, warm_up_s=1.0, capacity_bps=None)
        for index in (repeat, repeat, repeat + 1)
    )
    assert plan == again
    assert plan.digest() == again.digest() != other.digest()


def test_a_plan_is_the_same_on_every_machine() -> None:
    assert (
        build_plan(workload(), hosts(2, 4), seed=1, repeat=0, warm_up_s=1.0, capacity_bps=None)
        .digest()
        .startswith("03fef1b8f526")
    )


@given(seed=st.integers(0, 1000))
def test_changing_the_sizes_leaves_times_pairs_and_ports(seed: int) -> None:
    small = workload()
    large = Workload(
        Flows(Sizes("fixed", bytes=200_000), small.flows.arrivals, count=small.flows.count), small.long_flows
    )
    one, two = (
        build_plan(w, hosts(2, 4), seed=seed, repeat=0, warm_up_s=1.0, capacity_bps=None)
        for w in (small, large)
    )
    for a, b in zip(one.flows, two.flows, strict=True):
        assert (a.start_s, a.source, a.destination, a.source_port) == (
            b.start_s,
            b.source,
            b.destination,
            b.source_port,
        )
    assert {flow.traffic_class for flow in one.sized} == {"short"}
    assert {flow.traffic_class for flow in two.sized} == {"long"}


def test_every_flow_of_the_largest_run_on_switches_has_a_port_for_its_copy() -> None:
    largest = replace(workload(MOST_LAB_FLOWS), long_flows=LongFlows(MOST_LONG_FLOWS))
    plan = build_plan(largest, hosts(2, 4), seed=1, repeat=0, warm_up_s=1.0, capacity_bps=None)
    assert len(plan.sized) == MOST_LAB_FLOWS
    ports = [flow.source_port for flow in plan.flows] + [flow.copy_port for flow in plan.sized]
    assert None not in ports
    assert len(set(ports)) == len(ports)


def test_a_plan_has_what_was_asked_for() -> None:
    plan = build_plan(workload(), hosts(2, 4), seed=3, repeat=0, warm_up_s=2.5, capacity_bps=None)
    assert len(plan.sized) == 30
    assert len(plan.background) == 4
    assert all(flow.start_s == 0 and flow.size_bytes is None for flow in plan.background)
    starts = [flow.start_s for flow in plan.sized]
    assert starts == sorted(starts)
    assert plan.window_s == (2.5, starts[-1])
    assert starts[0] > 2.5
    assert [flow.id for flow in plan.flows] == list(range(34))
    assert len({flow.source_port for flow in plan.flows}) == 34


def test_long_flows_are_dealt_out_over_all_hosts() -> None:
    plan = build_plan(workload(), hosts(2, 4), seed=3, repeat=0, warm_up_s=2.5, capacity_bps=None)
    assert len({flow.source for flow in plan.background}) == 4
    assert len({flow.destination for flow in plan.background}) == 4


def test_a_duration_too_short_for_a_flow_is_an_error() -> None:
    with pytest.raises(PlanError, match="no flow arrives"):
        build_plan(
            workload(count=None, duration_s=0.001, rate=0.01),
            hosts(2, 2),
            seed=1,
            repeat=0,
            warm_up_s=1.0,
            capacity_bps=None,
        )


def test_where_flows_are_more_than_ports_each_host_has_all_ports() -> None:
    flows = build_plan(
        workload(count=30_000), hosts(2, 2), seed=1, repeat=0, warm_up_s=1.0, capacity_bps=None
    ).flows
    assert len({(flow.source, flow.source_port) for flow in flows}) == len(flows) == 30_004
    assert all(flow.copy_port is None for flow in flows)


def test_more_flows_of_a_host_than_ports_is_an_error() -> None:
    with pytest.raises(PlanError, match=r"host h\d sends more than 22001 flows; use more repeats"):
        build_plan(workload(count=50_000), hosts(2, 2), seed=1, repeat=0, warm_up_s=1.0, capacity_bps=None)


@given(st.data(), st.sampled_from(PATTERNS), st.integers(2, 5), st.integers(1, 4), st.booleans())
def test_pairs_follow_the_pattern(
    data: st.DataObject, pattern: PatternName, leaves: int, each: int, spread: bool
) -> None:
    everyone = hosts(leaves, each)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    found = pairs(pattern, everyone, rng, n=40, spread=spread)
    assert len(found) == 40
    assert all(source != destination for source, destination in found)
    if pattern == "left-to-right":
        assert max(s.leaf for s, _ in found) <= leaves // 2 < min(d.leaf for _, d in found)
    else:
        assert pattern == "permutation" or all(s.leaf != d.leaf for s, d in found)
    if pattern == "incast":
        assert len({d for _, d in found}) == 1
    if pattern == "permutation":
        partner = dict(found)
        assert all(partner[s] == d for s, d in found)
        assert len(set(partner.values())) == len(partner)


def test_a_permutation_crosses_leaves_where_that_can_be() -> None:
    found = pairs("permutation", hosts(4, 1), np.random.default_rng(0), n=4, spread=True)
    assert all(source.leaf != destination.leaf for source, destination in found)


def test_patterns_need_hosts() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(PatternError, match="at least two leaves"):
        pairs("left-to-right", hosts(1, 4), rng, n=1)
    with pytest.raises(PatternError, match="at least two hosts"):
        pairs("random", hosts(1, 1), rng, n=1)
    assert pairs("random", hosts(1, 2), rng, n=3)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() -> None:
    times = start_times(Arrivals(), 12.0, np.random.default_rng(4), count=20_000, duration_s=None)
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(1 / 12, rel=0.03)
    assert gaps.std() == pytest.approx(1 / 12, rel=0.03)
    within = start_times(Arrivals(), 12.0, np.random.default_rng(5), count=None, duration_s=1000.0)
    assert len(within) == pytest.approx(12_000, rel=0.04)
    assert within.max() < 1000


@given(
    on=st.floats(0.1, 5),
    off=st.floats(0, 5),
    seed=st.integers(0, 99),
    limit=st.sampled_from([(200, None), (None, 30.0)]),
)
def test_bursts_are_silent_in_off_periods(
    on: float, off: float, seed: int, limit: tuple[int | None, float | None]
) -> None:
    arrivals = Arrivals("burst", on_s=on, off_s=off)
    times = start_times(arrivals, 20.0, np.random.default_rng(seed), count=limit[0], duration_s=limit[1])
    phase = times % (on + off)
    assert np.all((phase <= on + 1e-9) | (phase >= on + off - 1e-9))
    if limit[1] is not None:
        assert np.all(times <= limit[1])


@given(on=st.floats(0.5, 5), off=st.floats(0, 5), duration=st.floats(1, 30), seed=st.integers(0, 99))
def test_bursts_have_as_many_flows_as_their_on_periods_are_long(
    on: float, off: float, duration: float, seed: int
) -> None:
    arrivals = Arrivals("burst", on_s=on, off_s=off)
    expected = 200.0 * busy_s(arrivals, duration)
    times = start_times(arrivals, 200.0, np.random.default_rng(seed), count=None, duration_s=duration)
    assert abs(len(times) - expected) <= 6 * expected**0.5 + 1
    assert busy_s(Arrivals(), duration) == pytest.approx(duration)


def test_a_load_offers_that_share_of_the_capacity() -> None:
    rate = flow_rate(Arrivals(load=0.4), 48e6, 55_000)
    assert rate * 55_000 * 8 == pytest.approx(0.4 * 48e6)
    assert rate == rate_at_load(0.4, 48e6, 55_000)


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        (Arrivals(), "exactly one of rate_per_s and load"),
        (Arrivals(rate_per_s=1, load=0.5), "exactly one of rate_per_s and load"),
        (Arrivals(rate_per_s=0), "above 0 flows/s"),
        (Arrivals(load=-1), "load must be above 0"),
        (Arrivals(load=0.5), "load needs links with a rate"),
    ],
)
def test_rates_that_cannot_be_are_refused(arrivals: Arrivals, message: str) -> None:
    with pytest.raises(ArrivalsError, match=message):
        flow_rate(arrivals, None, 1000)


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        (Arrivals("burst", on_s=1), "need on_s and off_s"),
        (Arrivals("burst", on_s=0, off_s=1), "on_s must be above 0"),
        (Arrivals("poisson", on_s=1), "belong to arrivals of kind 'burst'"),
    ],
)
def test_periods_that_cannot_be_are_refused(arrivals: Arrivals, message: str) -> None:
    with pytest.raises(ArrivalsError, match=message):
        start_times(arrivals, 1.0, np.random.default_rng(0), count=5, duration_s=None)


def test_capacity_is_the_smaller_of_uplinks_and_access() -> None:
    both = workload()
    assert offered_capacity_bps(both, hosts(2, 4), 48e6, 15e6) == 48e6
    assert offered_capacity_bps(both, hosts(2, 2), 48e6, 15e6) == 30e6
    assert offered_capacity_bps(both, hosts(4, 4), 48e6, None) == 96e6
    assert offered_capacity_bps(both, hosts(2, 4), None, None) is None
    spread = Workload(Flows(both.flows.sizes, both.flows.arrivals, "random", 10), None)
    assert offered_capacity_bps(spread, hosts(2, 4), 48e6, 15e6) == 96e6


def test_a_host_that_runs_no_application_has_no_part_in_the_capacity() -> None:
    one = workload()
    sizes = one.flows.sizes
    assert sizes is not None

    def tenants(pattern: PatternName, *given: tuple[str, ...]) -> Workload:
        applications = tuple(
            Application(f"tenant {number}", sizes, hosts=own) for number, own in enumerate(given)
        )
        return replace(one, flows=replace(one.flows, sizes=None, applications=applications, pattern=pattern))

    four = ("h1", "h2", "h3", "h4")
    assert offered_capacity_bps(tenants("random", four), hosts(2, 4), 48e6, 15e6) == 48e6
    two = tenants("left-to-right", ("h1", "h5"), ("h2", "h6", "h7"))
    assert offered_capacity_bps(two, hosts(2, 4), 48e6, 15e6) == 30e6
