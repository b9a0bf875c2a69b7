import socket
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.free_ports import free_port
from tests.unit.workloads.test_workloads_plan import hosts
from workloads.applications import ApplicationsError, describe, hosts_of, mean_bytes, parts
from workloads.description import (
    FIRST_SOURCE_PORT,
    LAST_SERVER_PORT,
    PORT_CHANGE,
    Application,
    Arrivals,
    Flows,
    Sizes,
    Workload,
)
from workloads.loop import Loop
from workloads.plan import Plan, PlanError, build_plan
from workloads.sink import Sink
from workloads.sizes import distribution

SMALL = Application("small", Sizes("fixed", bytes=10_000), 1.0, 6001)
LARGE = Application("large", Sizes("fixed", bytes=500_000), 3.0, 6002)


def plan(*applications: Application, duration_s: float | None = 60.0, **more: object) -> Plan:
    values = {"arrivals": Arrivals(load=0.5), "duration_s": duration_s, "applications": applications} | more
    workload = Workload(Flows(**values))  # type: ignore[arg-type]
    return build_plan(workload, hosts(2, 4), seed=3, repeat=0, warm_up_s=1.0, capacity_bps=40e6)


applications = st.lists(
    st.builds(
        Application,
        st.sampled_from("abcdefgh"),
        st.builds(Sizes, st.just("fixed"), bytes=st.integers(16, 10**6)),
        st.floats(0.1, 10),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda one: one.name,
).map(tuple)


@given(applications, st.floats(1, 1000))
def test_shares_of_flows_offer_the_shares_of_load(given_: tuple[Application, ...], rate: float) -> None:
    mix = parts(Flows(applications=given_))
    offered = [rate * part.share * part.sizes.mean() for part in mix]
    wanted = np.array([one.share for one in given_])
    assert np.array(offered) / sum(offered) == pytest.approx(wanted / wanted.sum())
    assert sum(offered) == pytest.approx(rate * mean_bytes(mix))


def test_an_application_changes_its_port_after_the_lead_in_and_nothing_else_changes() -> None:
    before, found = (
        plan(SMALL, LARGE, lead_in_s=20.0),
        plan(SMALL, LARGE, lead_in_s=20.0, changes_port="large"),
    )
    assert found.ports == [6001, 6002, 6102]
    for one, other in zip(before.flows, found.flows, strict=True):
        moved = one.application == "large" and one.counted
        assert other.port == (one.port or 0) + (PORT_CHANGE if moved else 0)
        assert replace(other, port=one.port) == one
    highest = replace(LARGE, port=LAST_SERVER_PORT)
    assert max(plan(highest, lead_in_s=20.0, changes_port="large").ports) < FIRST_SOURCE_PORT
    for wrong in ({"changes_port": "large"}, {"changes_port": "other", "lead_in_s": 1.0}):
        with pytest.raises(ApplicationsError, match="must be an application with a port"):
            plan(SMALL, LARGE, **wrong)


def test_a_plan_has_each_applications_sizes_ports_and_part_of_the_load() -> None:
    found = plan(SMALL, LARGE)
    starts = [flow.start_s for flow in found.flows]
    assert starts == sorted(starts)
    assert found.ports == [6001, 6002]
    sent = {"small": 0, "large": 0}
    for flow in found.flows:
        mine = SMALL if flow.application == "small" else LARGE
        assert (flow.size_bytes, flow.port) == (mine.sizes.bytes, mine.port)
        sent[mine.name] += flow.size_bytes or 0
    total = sum(sent.values())
    assert total * 8 / 60 == pytest.approx(0.5 * 40e6, rel=0.15), "225 large flows: 7 %"
    assert sent["large"] / total == pytest.approx(0.75, abs=0.04)


def test_an_application_leaves_the_others_as_they_are() -> None:
    one = plan(SMALL, LARGE)
    other = plan(SMALL, Application("large", Sizes("fixed", bytes=700_000), 3.0, 6003))

    def small(of: Plan) -> list[tuple[float, str, str]]:
        return [(f.start_s, f.source, f.destination) for f in of.flows if f.application == "small"]

    assert small(one) == small(other)
    rarer = [sum(f.application == "large" for f in of.flows) for of in (other, one)]
    assert rarer[0] < rarer[1], rarer


@settings(max_examples=20)
@given(st.integers(1, 300))
def test_of_a_number_of_flows_the_first_of_all_applications_are_sent(count: int) -> None:
    found = plan(SMALL, LARGE, duration_s=None, count=count)
    more = plan(SMALL, LARGE, duration_s=None, count=count + 50)
    assert len(found.flows) == count
    assert [f.start_s for f in found.flows] == [f.start_s for f in more.flows][:count]


def test_tenants_keep_to_their_hosts() -> None:
    mine = ("h1", "h2", "h5")
    found = plan(Application("mine", LARGE.sizes, hosts=mine), LARGE)
    for flow in found.flows:
        if flow.application == "mine":
            assert {flow.source, flow.destination} <= set(mine)
    assert {f.source for f in found.flows if f.application == "large"} == {"h1", "h2", "h3", "h4"}
    with pytest.raises(ApplicationsError, match="no h77"):
        hosts_of(Application("mine", LARGE.sizes, hosts=("h1", "h77")), hosts(2, 4))


def test_the_lead_in_is_sent_and_not_counted() -> None:
    found = plan(SMALL, LARGE, lead_in_s=20.0)
    assert all(flow.counted == (flow.start_s >= 21.0) for flow in found.flows)
    assert 0 < sum(flow.counted for flow in found.flows) < len(found.flows)
    with pytest.raises(PlanError, match="lead_in_s"):
        plan(SMALL, LARGE, lead_in_s=61.0)


@pytest.mark.parametrize(
    ("flows", "where", "words"),
    [
        (Flows(), (), "exactly one of sizes and applications"),
        (Flows(LARGE.sizes, applications=(SMALL,)), (), "exactly one of sizes and applications"),
        (Flows(applications=(SMALL, SMALL)), ("applications", 1, "name"), "there already"),
        (Flows(applications=(Application("a", Sizes("fixed")),)), ("applications", 0, "sizes"), "need bytes"),
        (Flows(applications=(Application("a", LARGE.sizes, 0.0),)), ("applications", 0, "share"), "above 0"),
        (Flows(Sizes("table", table="webserch")), ("sizes",), "did you mean 'websearch'"),
    ],
)
def test_what_cannot_be_is_said_where_it_is(flows: Flows, where: tuple[str | int, ...], words: str) -> None:
    with pytest.raises(ApplicationsError, match=words) as raised:
        parts(flows)
    assert raised.value.path == where


def test_a_run_records_how_each_application_was_scaled() -> None:
    sizes = Sizes("table", table="websearch", scale=0.02)
    recorded = describe(Flows(applications=(Application("web", sizes, 1.0, 6001), LARGE)))
    assert recorded["mean_bytes"] == pytest.approx(
        4 / (1 / distribution(sizes).mean() + 3 / 500_000), rel=1e-4
    )
    first, second = recorded["applications"]  # type: ignore[misc]
    assert (first["scale"], first["table"], first["share_of_load"], first["port"]) == (
        0.02,
        "websearch",
        0.25,
        6001,
    )
    assert first["share_of_flows"] + second["share_of_flows"] == pytest.approx(1.0, abs=1e-3)


def test_a_sink_listens_on_the_ports_of_a_run_and_no_others() -> None:
    loop = Loop()
    sink = Sink(loop, 0)
    one = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        sink.listen_also([one, sink.port])
        socket.create_connection(("127.0.0.1", one), 1).close()
        with pytest.raises(OSError, match=f"cannot listen on TCP port {busy}"):
            sink.listen_also([one, busy])
        sink.listen_also([])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", one), 1)
        socket.create_connection(("127.0.0.1", sink.port), 1).close()
