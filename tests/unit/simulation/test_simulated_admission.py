"""Schemes whose flows ask, simulated: what is granted, in which order, how long that takes, how fabrics are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import capstan_native
import pytest

from cli.specs import load_spec
from controller.capton.admission import StandingFlow
from controller.capton.topology_view import SnapshotReader
from experiments.results.document import json_text
from experiments.spec.simulated import Simulation
from experiments.spec.spec import Spec
from protocol.admission import AdmissionPolicy
from simulation.admission import SimulatedController, in_agents_time
from simulation.batch import prepare
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.seen_fabric import seen_fabric
from simulation.spec_run import new_controller, new_simulation
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import LongFlows, Sizes

ALL_ASK = {"admission.threshold_bytes": 0, "admission.threshold_by_load": [], "admission.load": None}
ADMITTED = ("capton", "capton-caps", "capton-tpfs", "hyline")
HEADERS = 52 + 74
"""Inside and round a packet of the host, bytes."""
PAYLOAD = 1374


def crowd(scheme: str, fabric: FabricSpec | None = None) -> Spec:
    """Return a spec in which all flows ask and several do at a time."""
    spec = load_spec("small", (scheme,)).spec
    flows = replace(spec.workload.flows, count=60)
    workload = replace(spec.workload, flows=flows, long_flows=LongFlows(2))
    over = replace(spec, workload=workload, fabric=fabric or spec.fabric)
    return replace(over, policy={**over.policy, **ALL_ASK})


def lone(scheme: str, size_bytes: int, **simulation: Any) -> Spec:
    """Return a spec of one flow, whose hosts need no handshake and acknowledge each packet."""
    spec = load_spec("small", (scheme,)).spec
    flows = replace(spec.workload.flows, count=1, sizes=Sizes("fixed", bytes=size_bytes))
    workload = replace(spec.workload, flows=flows, long_flows=LongFlows(0))
    tcp = Simulation(profile="ns2", **simulation)
    return replace(spec, workload=workload, policy={**spec.policy, **ALL_ASK}, simulation=tcp)


def fct_s(spec: Spec) -> float:
    _, (run,) = simulate_document(spec)
    (flow,) = run.flows
    assert flow.fct_s is not None
    return flow.fct_s


class Looked:
    """A run, step by step from message to message."""

    def __init__(self, spec: Spec) -> None:
        case = prepare(spec)
        ((_, scheme),) = case.schemes
        self.plan = spec.plan(0)
        self.simulation: capstan_native.Simulation = new_simulation(case.setting, scheme, 0, self.plan)
        controller = new_controller(spec, scheme)
        assert controller is not None
        self.controller: SimulatedController = controller

    def steps(self) -> Iterator[list[StandingFlow]]:
        """Yield all flows that have asked, in their order, whenever anything was decided."""
        while not self.simulation.run_until(10**9, 20 * 10**12):
            self.controller.serve(self.simulation)
            yield self.controller.control.standing(self.simulation.agents_now())
        self.simulation.stop()


@pytest.mark.parametrize("scheme", ["capton", "hyline"])
def test_no_link_and_no_path_is_granted_more_than_it_carries(scheme: str) -> None:
    run = Looked(crowd(scheme))
    most = waiting = 0
    for standing in run.steps():
        active = [one.active for one in standing]
        hosts, paths = Counter[str](), Counter[int]()
        for flow in active:
            hosts[f"from {flow.source}"] += flow.rate_bps
            hosts[f"to {flow.destination}"] += flow.rate_bps
            paths[flow.stamp] += flow.rate_bps
        assert all(rate <= 15_000_000 for rate in hosts.values())
        assert sum(paths.values()) <= 4 * 5_000_000, "of the core, which is over-subscribed"
        if scheme == "hyline":
            assert all(paths[stamp] <= 5_000_000 for stamp in paths)
            assert paths[0] == 0
        most = max(most, sum(paths.values()))
        waiting = max(waiting, sum(flow.rate_bps == 0 for flow in active))
    assert most >= 15_000_000
    assert waiting >= 2
    assert all(link["dropped"] == 0 for link in run.simulation.links())


def test_least_remaining_flows_send_first() -> None:
    stopped = 0
    before: dict[int, int] = {}
    run = Looked(crowd("capton"))
    for standing in run.steps():
        active = [one.active for one in standing]
        left = [flow.remaining_bytes for flow in active]
        assert left == sorted(left)
        room = Counter({"core": 20_000_000})
        for flow in active:  # the paper's rule, anew: Figure 6
            ends = f"from {flow.source}", f"to {flow.destination}"
            free = min(room["core"], *(15_000_000 - room[end] for end in ends))
            rate = 15_000_000 if free >= 15_000_000 else 0
            assert flow.rate_bps == rate
            room["core"] -= rate
            for end in ends:
                room[end] += rate
        stopped += sum(before.get(flow.flow, 0) > 0 and flow.rate_bps == 0 for flow in active)
        before = {flow.flow: flow.rate_bps for flow in active}
    assert stopped > 5, "smaller flows have displaced larger ones"


@pytest.mark.parametrize("scheme", ["capton", "hyline"])
@pytest.mark.parametrize("size_bytes", [1_000, 60_000])
def test_a_lone_flow_takes_its_time_at_its_rate_and_a_control_round_trip(
    scheme: str, size_bytes: int
) -> None:
    rate_bps = 15e6 if scheme == "capton" else 5e6
    packets = -(-size_bytes // PAYLOAD)
    soon = fct_s(lone(scheme, size_bytes, control_round_trip_us=2.0))
    late = fct_s(lone(scheme, size_bytes, control_round_trip_us=5_002.0))
    assert late - soon == pytest.approx(0.005, abs=1e-8)
    # Agents reckon with half an acknowledgement a packet (docs/capton.md).
    least_s = (size_bytes + packets * HEADERS) * 8 / rate_bps
    paced_s = (size_bytes + packets * HEADERS * 1.5) * 8 / rate_bps
    ends_s = 2 * (PAYLOAD + HEADERS) * 8 * (1 / 15e6 + 1 / 5e6) + HEADERS * 8 * (2 / 15e6 + 2 / 5e6)
    assert least_s < soon - 2e-6 < paced_s + ends_s


@pytest.mark.parametrize("scheme", ADMITTED)
def test_what_is_lost_of_the_control_channel_is_asked_for_again(scheme: str) -> None:
    spec = lone(scheme, 1_000, control_loss=0.3)
    at_once_s = fct_s(lone(scheme, 1_000))
    repeats = []
    for seed in range(12):
        more_s = fct_s(replace(spec, seed=seed)) - fct_s(replace(lone(scheme, 1_000), seed=seed))
        repeats.append(round(more_s / AdmissionPolicy().retry_s))
        assert more_s == pytest.approx(repeats[-1] * AdmissionPolicy().retry_s, abs=1e-7)
    assert at_once_s > 0
    assert min(repeats) == 0
    assert 0 < max(repeats) <= 5, "by then the fail-safe frees the flow"


def test_a_run_with_losses_of_the_control_channel_ends_and_can_be_repeated() -> None:
    spec = replace(crowd("capton"), simulation=Simulation(control_loss=0.2))
    document, (run,) = simulate_document(spec)
    assert not [flow for flow in run.flows if flow.state == "failed"]
    assert simulate_document(spec)[1] == [run]
    assert run.flows != simulate_document(crowd("capton"))[1][0].flows
    assert any("0.2 of these messages are lost" in notice for notice in document["notices"])


def test_a_request_is_answered_after_a_round_trip() -> None:
    _, (run,) = simulate_document(crowd("capton"))
    assert run.admitted is not None
    median_us, p99_us = run.admitted.median_us, run.admitted.p99_us
    assert median_us is not None
    assert p99_us is not None
    assert 100 <= median_us <= 100 * 2**0.25
    assert p99_us == median_us, "the scheduler takes no time"
    assert (run.admitted.scheduled, run.admitted.unscheduled_by_fail_safe) == (len(run.flows), 0)


@pytest.mark.parametrize("scheme", ADMITTED)
def test_the_same_seed_gives_the_same_bytes(scheme: str) -> None:
    def settled(spec: Spec) -> str:
        document, _ = simulate_document(spec)
        return json_text(
            {key: value for key, value in document.items() if key not in ("started", "duration_s")}
        )

    spec = crowd(scheme)
    assert settled(spec) == settled(spec)
    assert settled(replace(spec, seed=2)) != settled(spec)


def test_a_granted_path_is_the_one_that_is_taken() -> None:
    fabric = FabricSpec("fat-tree", k=4, link=Link(5), access=Link(15), down=("a1-c1",))
    run = Looked(crowd("hyline", fabric))
    granted: dict[tuple[str, str], set[int]] = {}
    for standing in run.steps():
        for one in standing:
            ends = one.active.source, one.active.destination
            granted.setdefault(ends, set()).add(one.active.stamp)
    checked = 0
    for row, planned in enumerate(run.plan.flows):
        record = run.simulation.counted(row)
        stamps = granted[planned.source, planned.destination] - {0}
        if record["packets"] > 20 and stamps:
            checked += 1
            others = sum(count for stamp, count in record["paths"].items() if stamp not in stamps)
            assert others <= 2, "its beginning at most leaves before it is granted a path"
            assert 3 not in record["paths"] or planned.source not in ("h1", "h2", "h3", "h4")
    assert checked > 20


def test_a_fabric_is_seen_as_a_controller_discovers_it() -> None:
    fabric = FabricSpec("fat-tree", k=4, link=Link(5), access=Link(15), overrides={"h3-e2": Link(8)})
    seen = seen_fabric(replace(fabric, down=("a1-c1", "a1-c2")), clock=2.0)
    view = SnapshotReader(seen.snapshot, seen.rates).topology()
    places = {host.name: host for host in view.hosts}
    assert {host.groups[1] for host in view.hosts} == {f"pod {number}" for number in range(1, 5)}
    assert places["h3"].access == (4_000_000, 4_000_000)
    assert view.groups[places["h5"].groups[1]] == (10_000_000, 10_000_000)
    assert view.groups[places["h1"].groups[1]] == (5_000_000, 5_000_000)
    assert view.addresses["0.0.0.4"] == "h5"
    whole = seen_fabric(fabric, clock=1.0)
    paths = SnapshotReader(whole.snapshot, whole.rates).single_paths()
    assert [sorted(path.stamp for path in paths[ends]) for ends in (("e1", "e2"), ("e1", "e3"))] == [
        [1, 2],
        [3, 4, 5, 6],
    ]


def test_only_times_of_the_control_channel_are_seconds() -> None:
    policy = AdmissionPolicy()
    slowed = in_agents_time(policy, 500.0)
    assert (slowed.retry_s, slowed.refresh_s, slowed.fail_safe_s) == (10.0, 125.0, 50.0)
    assert slowed.burst_s == policy.burst_s


def test_fast_links_are_granted_as_slow_ones() -> None:
    spec = crowd("capton")
    flows = replace(spec.workload.flows, arrivals=replace(spec.workload.flows.arrivals, rate_per_s=10_000))
    workload = replace(spec.workload, flows=flows, long_flows=LongFlows(0))
    fabric = replace(spec.fabric, link=Link(5_000), access=Link(15_000))
    _, (run,) = simulate_document(replace(spec, workload=workload, fabric=fabric))
    assert run.admitted is not None
    assert run.admitted.unscheduled_by_fail_safe == 0
    assert all(flow.retransmissions == 0 for flow in run.flows)
    assert all(flow.state in ("finished", "background") for flow in run.flows)


def test_a_channel_that_is_slower_than_repeated_requests_is_refused() -> None:
    spec = replace(crowd("capton"), simulation=Simulation(control_round_trip_us=20_000.0))
    with pytest.raises(
        SettingsError, match=r"^scheme capton: simulation.control_round_trip_us: .* admission.retry_s"
    ):
        prepare(spec)
