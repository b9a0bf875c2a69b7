"""Samples of simulated links hold what was delivered, of one run at a time, and are shown by the links' names."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import capstan_native
import pytest

from cli.specs import load_spec
from engine.simulated_fabric import links_view, simulated_fabric_view
from experiments.spec.spec import Spec
from simulation.batch import Case, prepare
from simulation.link_samples import EVERY_S, MOST_LINKS, LinkSample, LinkSampler, SampledRun
from simulation.spec_run import new_simulation
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import LongFlows, Sizes

FABRICS = {
    "leaf-spine": FabricSpec(
        "leaf-spine", leaves=3, spines=2, hosts_per_leaf=2, link=Link(5), access=Link(15)
    ),
    "fat-tree": FabricSpec(
        "fat-tree", k=4, link=Link(5), access=Link(15), overrides={"a1-c1": Link(2, buffer_packets=20)}
    ),
}
ONE_LEAF = FabricSpec("leaf-spine", leaves=1, spines=2, hosts_per_leaf=6, link=Link(5), access=Link(15))
LAST_S = 1e4


def case_of(scheme: str, fabric: FabricSpec, flows: int = 30) -> Case:
    spec = load_spec("small", (scheme,)).spec
    sized = replace(spec.workload.flows, count=flows, sizes=Sizes("fixed", bytes=300_000))
    workload = replace(spec.workload, flows=sized, long_flows=LongFlows(0))
    return prepare(replace(spec, fabric=fabric, workload=workload))


def begun(case: Case) -> capstan_native.Simulation:
    return new_simulation(case.setting, case.schemes[0][1], 0, case.spec.plan(0))


def sampled(case: Case, run: capstan_native.Simulation, sampler: LinkSampler, key: int = 0) -> None:
    sampler.look(SampledRun(key, case.spec.schemes[0].label, 0, case.spec, case.setting.fabric), run)


def samples_to_the_end(case: Case, run: capstan_native.Simulation) -> list[LinkSample]:
    """Return samples of a whole run, the last of its end."""
    samples: list[LinkSample] = []
    clock = count(0.0, EVERY_S)
    sampler = LinkSampler(samples.append, lambda: next(clock))
    while not run.run_until(5_000, round(LAST_S * 1e12)):
        sampled(case, run, sampler)
    sampled(case, run, sampler)
    return samples


@pytest.mark.parametrize("shape", FABRICS)
@pytest.mark.parametrize("scheme", ["ecmp", "caps"])
def test_samples_add_up_to_what_links_have_delivered(shape: str, scheme: str) -> None:
    case = case_of(scheme, FABRICS[shape])
    run = begun(case)
    samples = samples_to_the_end(case, run)
    assert len(samples) > 5
    assert samples[-1].at_s == pytest.approx(sum(sample.interval_s for sample in samples))
    fabric, links = simulated_fabric_view(case.spec), run.links()
    for index, link in enumerate(fabric.links):
        for side, number in enumerate(case.setting.fabric.links[link.name]):
            place, counted = 2 * index + side, links[number]
            assert sum(sample.delivered_bytes[place] for sample in samples) == counted["delivered_bytes"]
            assert sum(sample.delivered_packets[place] for sample in samples) == counted["delivered"]
            assert sum(sample.dropped_packets[place] for sample in samples) == counted["dropped"]
            assert max(sample.queued_packets[place] for sample in samples) <= counted["longest_queue_packets"]
    waited = [link["longest_queue_packets"] for link in links]
    seen = [max(sample.queued_packets[place] for sample in samples) for place in range(len(links))]
    assert max(seen) > max(waited) / 4, "a queue that lasts is seen"
    assert any(link["dropped"] for link in links)
    for sample in samples:
        view = links_view(fabric, sample, 1.0)
        assert view is not None
        for loaded in view["links"]:
            for load in (loaded["ab"], loaded["ba"]):
                assert load is not None
                assert load["share"] is not None
                assert 0 <= load["share"] < 1.0 + 2 * 1500 * 8 / (2e6 * sample.interval_s)


def test_the_links_of_a_lone_flow_are_those_of_its_path() -> None:
    case = case_of("ecmp", FABRICS["leaf-spine"], flows=1)
    run = begun(case)
    samples: list[LinkSample] = []
    sampler = LinkSampler(samples.append, lambda: 0.0)
    assert run.run_until(10**9, round(LAST_S * 1e12))
    sampled(case, run, sampler)
    (sample,) = samples
    view = links_view(simulated_fabric_view(case.spec), sample, 7.0)
    assert view is not None
    assert (view["at"], view["interval_s"]) == (7.0, sample.at_s)
    (flow,) = case.spec.plan(0).flows
    up, down = (
        {link["name"]: load["packets_per_s"] for link in view["links"] if (load := link[side])}
        for side in ("ab", "ba")
    )
    places = {place.name: f"l{place.leaf}" for place in case.spec.fabric.hosts()}
    source, destination = places[flow.source], places[flow.destination]
    (taken,) = [name for name, rate in up.items() if rate and name.startswith(f"{source}-")]
    spine = taken.rpartition("-")[2]
    assert up[f"{flow.source}-{source}"] == up[taken] > 100
    arrived = down[f"{destination}-{spine}"]
    assert down[f"{flow.destination}-{destination}"] <= arrived <= up[taken]
    assert arrived > 0.95 * up[taken], "all but what was under way at the end"
    assert not any(
        rate
        for name, rate in down.items()
        if name.startswith(f"{destination}-") and name != f"{destination}-{spine}"
    )


def test_one_run_is_sampled_at_a_time_and_every_half_second() -> None:
    case = case_of("rps", FABRICS["leaf-spine"])
    first, second = begun(case), begun(case)
    samples: list[LinkSample] = []
    now = [0.0]
    sampler = LinkSampler(samples.append, lambda: now[0])
    for run in (first, second):
        run.run_until(5_000, round(LAST_S * 1e12))
    sampled(case, first, sampler, key=1)
    assert len(samples) == 1
    now[0] = 10.0
    sampled(case, second, sampler, key=2)
    assert len(samples) == 1, "the run that began first goes on"
    first.run_until(5_000, round(LAST_S * 1e12))
    sampled(case, first, sampler, key=1)
    now[0] += EVERY_S / 2
    first.run_until(5_000, round(LAST_S * 1e12))
    sampled(case, first, sampler, key=1)
    assert len(samples) == 2, "too soon"
    sampler.end(2)
    now[0] += EVERY_S
    sampled(case, second, sampler, key=2)
    assert len(samples) == 2
    sampler.end(1)
    sampled(case, second, sampler, key=2)
    assert len(samples) == 3
    assert samples[-1].interval_s == samples[-1].at_s, "counted from its own begin"


def test_a_fabric_that_no_map_shows_is_not_sampled() -> None:
    case = case_of("ecmp", FABRICS["leaf-spine"])
    run = begun(case)
    run.run_until(5_000, round(LAST_S * 1e12))
    large = FabricSpec("leaf-spine", leaves=50, spines=50, hosts_per_leaf=1)
    assert len(large.link_names()) > MOST_LINKS
    samples: list[LinkSample] = []
    sampler = LinkSampler(samples.append, lambda: 1.0)
    spec: Spec = replace(case.spec, fabric=large)
    sampler.look(SampledRun(0, "ecmp", 0, spec, case.setting.fabric), run)
    assert samples == []


def test_a_fabric_is_shown_with_its_rates_its_links_down_and_a_labs_addresses() -> None:
    fabric = replace(FABRICS["fat-tree"], down=("a2-c3",))
    spec = replace(load_spec("small", ("ecmp",)).spec, fabric=fabric)
    shown = simulated_fabric_view(spec)
    assert [link.name for link in shown.links] == fabric.link_names()
    rates = {link["name"]: link["rate_kbps"] for link in shown.view["links"]}
    assert (rates["a1-c1"], rates["e1-a1"]) == (2_000, 5_000)
    assert {link["name"] for link in shown.view["links"] if not link["up"]} == {"a2-c3"}
    assert {link.name for link in shown.links if not link.up} == {"a2-c3"}
    assert {link.rate_kbps for link in shown.links if link.access} == {15_000}
    roles = {switch["name"][0]: switch["role"] for switch in shown.view["switches"]}
    assert roles == {"e": "leaf", "a": "aggregation", "c": "core"}
    places = {place.name: place for place in fabric.hosts()}
    for host in shown.view["hosts"]:
        assert host["underlay_ip"] == places[host["name"]].underlay
        assert host["link"] == f"{host['name']}-e{places[host['name']].leaf}"


def test_counts_of_another_fabric_are_not_shown() -> None:
    case = case_of("ecmp", FABRICS["leaf-spine"])
    shown = simulated_fabric_view(case.spec)
    right = [0] * (2 * len(shown.links))
    sample = LinkSample("ecmp", 1, 1.0, 1.0, right, right, right, right)
    assert links_view(shown, sample, 0.0) is not None
    for name in ("delivered_bytes", "delivered_packets", "dropped_packets", "queued_packets"):
        assert links_view(shown, replace(sample, **{name: right[1:]}), 0.0) is None


def test_the_links_of_one_leaf_to_its_spines_are_idle() -> None:
    spec = load_spec("small", ("ecmp",)).spec
    flows = replace(spec.workload.flows, count=30, pattern="random", sizes=Sizes("fixed", bytes=300_000))
    workload = replace(spec.workload, flows=flows, long_flows=LongFlows(0, pattern="random"))
    case = prepare(replace(spec, fabric=ONE_LEAF, workload=workload))
    run = begun(case)
    samples = samples_to_the_end(case, run)
    view = links_view(simulated_fabric_view(case.spec), samples[0], 7.0)
    assert view is not None
    packets = {
        link["name"]: sum(load["packets_per_s"] for side in ("ab", "ba") if (load := link[side]))
        for link in view["links"]
    }
    assert packets.pop("l1-s1") == packets.pop("l1-s2") == 0
    assert len(packets) == 6
    assert sum(packets.values()) > 0
