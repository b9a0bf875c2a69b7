"""CAPTON on the agents' channel: the fabric as the scheduler sees it, requests answered, failures."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from controller.capton.fabric import HostPlace, Rates, VirtualLink
from controller.capton.resent import MOST_EVENTS
from controller.capton.rules import scheduler_of
from controller.capton.service import AdmissionService, CaptonCapacity
from controller.capton.single_path import SinglePath
from controller.capton.topology_view import SnapshotReader, TopologyView
from controller.fabric.graph import PortRef
from controller.plane.snapshot import FabricSnapshot, HostInfo, LinkInfo, SwitchInfo
from controller.schemes.scheme import Admission
from protocol.admission import Finished, Grant, Request, Stop
from protocol.control import Ping, Pong
from protocol.sent_again import Resent, SentAgain
from tests.unit.admission_agent import AdmittingAgent
from tests.unit.agents_channel import RawAgent, Served, served
from tests.unit.inner_packets import tcp
from tests.waiting import eventually

RATE = 15_000_000
CORE = 5_000_000
RULE = Admission()


def snapshot(spines: int = 4, down: frozenset[int] = frozenset(), leaves: int = 2) -> FabricSnapshot:
    """Build leaves l1.. with two hosts each at ports 1 and 2, and a link each to all spines."""
    switches = [SwitchInfo(leaf, f"l{leaf}", True, 0, leaf) for leaf in range(1, leaves + 1)]
    switches += [SwitchInfo(100 + spine, f"s{spine}", True, 1, 10 + spine) for spine in range(1, spines + 1)]
    links = [
        LinkInfo(PortRef(leaf, 2 + spine), PortRef(100 + spine, leaf), leaf > 1 or spine not in down, 0)
        for leaf in range(1, leaves + 1)
        for spine in range(1, spines + 1)
    ]
    hosts = [
        HostInfo(f"h{2 * leaf - 2 + port}", f"10.0.{leaf}.{port}", "", True, PortRef(leaf, port))
        for leaf in range(1, leaves + 1)
        for port in (1, 2)
    ]
    return FabricSnapshot(tuple(switches), tuple(links), tuple(hosts), (), "", True)


def rates(seen: FabricSnapshot) -> dict[tuple[int, int], int]:
    found = {(end.dpid, end.port): CORE for link in seen.links for end in (link.a, link.b)}
    places = [host.place for host in seen.hosts if host.place is not None]
    return found | {(place.dpid, place.port): RATE for place in places}


def read(seen: FabricSnapshot) -> TopologyView:
    return SnapshotReader(seen, rates(seen)).topology()


def test_the_links_above_a_leaf_are_one_of_their_sum() -> None:
    seen = read(snapshot())
    assert seen.hosts[0] == HostPlace("h1", Rates(RATE, RATE), ("l1",))
    assert seen.groups == {"l1": Rates(4 * CORE, 4 * CORE), "l2": Rates(4 * CORE, 4 * CORE)}
    assert seen.addresses["10.0.2.1"] == "h3"
    failed = read(snapshot(down=frozenset({1, 3})))
    assert failed.groups == {"l1": Rates(2 * CORE, 2 * CORE), "l2": Rates(4 * CORE, 4 * CORE)}
    assert failed.shape == seen.shape


def test_packets_in_turn_fill_parallel_links_as_far_as_the_slowest() -> None:
    fabric = snapshot()
    slow = rates(fabric) | {(1, 3): CORE // 5}
    assert SnapshotReader(fabric, slow).topology().groups["l1"] == Rates(4 * CORE // 5, 4 * CORE)


def test_three_tiers_have_pods() -> None:
    """A fat tree of four: a pod is what its aggregation switches hold together, also while their links are down."""
    switches = [SwitchInfo(10 * pod + i, f"e{pod}{i}", True, 0, 0) for pod in range(4) for i in (1, 2)]
    switches += [SwitchInfo(10 * pod + i, f"a{pod}{i}", True, 1, 0) for pod in range(4) for i in (3, 4)]
    switches += [SwitchInfo(100 + core, f"c{core}", True, 2, 50 + core) for core in range(4)]
    links = [
        LinkInfo(PortRef(10 * pod + i, j), PortRef(10 * pod + j, i), True, 1000)
        for pod in range(4)
        for i in (1, 2)
        for j in (3, 4)
    ]
    links += [
        LinkInfo(PortRef(10 * pod + 3 + core // 2, 5 + core % 2), PortRef(100 + core, pod + 1), True, 1000)
        for pod in range(4)
        for core in range(4)
    ]
    hosts = [
        HostInfo(f"h{pod}{i}", f"10.0.{pod}.{i}", "", True, PortRef(10 * pod + i, 9))
        for pod in range(4)
        for i in (1, 2)
    ]
    fabric = FabricSnapshot(tuple(switches), tuple(links), tuple(hosts), (), "", True)
    seen = SnapshotReader(fabric, {}).topology()
    assert [host.groups for host in seen.hosts[:3]] == [("e01", "pod 1"), ("e02", "pod 1"), ("e11", "pod 2")]
    assert seen.groups["e01"] == Rates(2_000_000, 2_000_000)
    assert seen.groups["pod 3"] == Rates(4_000_000, 4_000_000)
    cut = replace(fabric, links=(replace(links[0], up=False), *links[1:]))
    without = SnapshotReader(cut, {}).topology()
    assert without.shape == seen.shape
    assert without.groups["e01"] == Rates(1_000_000, 1_000_000)
    # a03 loses one of its two links to the core: of three paths, two lead through a04
    cut = replace(fabric, links=tuple(replace(one, up=one.a != PortRef(3, 5)) for one in links))
    without = SnapshotReader(cut, {}).topology()
    assert without.groups["e01"] == Rates(1_500_000, 1_500_000)
    assert without.groups["pod 1"] == Rates(3_000_000, 3_000_000)
    assert without.groups["e11"] == Rates(2_000_000, 2_000_000)
    paths = SnapshotReader(fabric, {}).single_paths()
    assert sorted(path.stamp for path in paths["e01", "e11"]) == [50, 51, 52, 53]


def test_single_paths_are_named_and_have_their_links() -> None:
    fabric = snapshot(down=frozenset({2}))
    paths = SnapshotReader(fabric, rates(fabric)).single_paths()["l1", "l2"]
    assert [path.stamp for path in paths] == [11, 13, 14]
    assert paths[0] == SinglePath(11, (("l1-s1:3", CORE), ("s1-l2:2", CORE)))


def test_leaves_whose_bridges_have_one_name_are_two() -> None:
    named = snapshot()
    alike = replace(named, switches=tuple(replace(switch, name="br0") for switch in named.switches))
    seen = read(alike)
    assert [host.groups for host in seen.hosts] == [("0x1",), ("0x1",), ("0x2",), ("0x2",)]
    assert list(seen.groups.values()) == list(read(named).groups.values())
    assert len(SnapshotReader(alike, rates(alike)).single_paths()["0x1", "0x2"]) == 4


def test_a_host_may_have_the_name_of_its_leaf() -> None:
    named = snapshot()
    alike = replace(named, hosts=(replace(named.hosts[0], name="l1"), *named.hosts[1:]))
    seen = read(alike)
    assert seen.hosts[-1] == HostPlace("l1", Rates(RATE, RATE), ("0x1",))
    scheduler = scheduler_of(RULE, seen, {})
    assert [decision.rate_bps for decision in scheduler.request(1, "l1", "h3", 1000, now=1.0)] == [RATE]


class World:
    """A desk on a channel that runs, with raw agents."""

    def __init__(self, channel: Served, rule: Admission = RULE) -> None:
        self.channel = channel
        self.events: list[Any] = []
        self.desk = AdmissionService(channel.server, self.events.append)
        self.see(snapshot())
        self.desk.set_rule(rule)

    def see(self, fabric: FabricSnapshot) -> None:
        reader = SnapshotReader(fabric, rates(fabric))
        self.desk.set_topology(reader.topology(), reader.single_paths())

    def agent(self, number: int) -> RawAgent:
        leaf = (number + 1) // 2
        return RawAgent.joined(self.channel.socket_path, number, underlay_ip=f"10.0.{leaf}.{2 - number % 2}")

    def remaining(self) -> dict[str, int]:
        standing = self.desk.standing()
        assert standing is not None
        return {flow.active.source: flow.active.rate_bps for flow in standing.flows}


def test_a_request_is_granted_and_the_smaller_one_stops_it(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel)
        h1, h2 = world.agent(1), world.agent(2)
        h1.send(Request(1, 7, "10.0.2.1", 1_000_000))
        assert h1.next(Grant) == Grant(1, 7, 1, RATE)
        h2.send(Request(1, 9, "10.0.2.1", 1000))
        assert h2.next(Grant).rate_bps == RATE
        assert h1.next(Stop).flow == 7
        h2.send(Finished(2, 9))
        assert h1.next(Grant).rate_bps == RATE
        links = world.desk.standing()
        assert links is not None
        assert links.links[VirtualLink("l1", "up")] == (4 * CORE, RATE)
        assert links.kinds == {
            "h1": "host",
            "h2": "host",
            "h3": "host",
            "h4": "host",
            "l1": "leaf",
            "l2": "leaf",
        }


def test_an_agent_that_dies_gives_its_grant_back_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel)
        h1, h2 = world.agent(1), world.agent(2)
        h1.send(Request(1, 7, "10.0.2.1", 1000))
        h1.next(Grant)
        h2.send(Request(1, 9, "10.0.2.1", 1_000_000))
        h2.next(Stop)
        h1.connection.close()
        assert h2.next(Grant).rate_bps == RATE
        again = world.agent(1)  # its numbers begin anew
        again.send(Request(1, 7, "10.0.2.2", 500))
        assert again.next(Grant).flow == 7


@pytest.mark.slow
def test_a_host_that_lies_loses_its_grant_by_the_time_out(tmp_path: Path) -> None:
    """It says that little is left, and goes on: its flow is stopped, and others get the capacity."""
    with served(tmp_path) as channel:
        world = World(channel, replace(RULE, finish_timeout_s=1.5))
        h1, h2 = world.agent(1), world.agent(2)
        began = time.monotonic()
        h1.send(Request(1, 7, "10.0.2.1", 10))
        h1.next(Grant)
        h2.send(Request(1, 9, "10.0.2.1", 1_000_000))
        h2.next(Stop)
        assert h2.next(Grant).rate_bps == RATE
        assert time.monotonic() - began >= 1.5
        assert h1.next(Stop).flow == 7
        standing = world.desk.standing()
        assert standing is not None
        assert standing.counters["flows_expired"] == 1


def test_failed_links_lower_the_capacity_at_once_and_are_reported(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        h1.send(Request(1, 7, "10.0.2.1", 1_000_000))
        assert h1.next(Grant).rate_bps == RATE
        world.see(snapshot(down=frozenset({1, 2})))
        assert h1.next(Grant).rate_bps == 2 * CORE
        eventually(lambda: len(world.events) == 2, "events")
        assert {(event.link, event.capacity_bps) for event in world.events} == {
            ("l1 up", 2 * CORE),
            ("l1 down", 2 * CORE),
        }
        assert isinstance(world.events[0], CaptonCapacity)
        world.see(snapshot(spines=4, leaves=3))  # another leaf: another scheduler, and the flow goes on
        assert h1.next(Grant).rate_bps == RATE
        assert world.remaining() == {"h1": RATE}


def test_a_host_whose_link_is_down_delays_no_other(tmp_path: Path) -> None:
    def unplugged(name: str) -> FabricSnapshot:
        seen = snapshot()
        return replace(seen, hosts=tuple(replace(host, up=host.name != name) for host in seen.hosts))

    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        h1.send(Request(1, 7, "10.0.2.1", 1000))
        assert h1.next(Grant).rate_bps == RATE
        h1.send(Request(2, 8, "10.0.2.2", 1_000_000))
        assert h1.next(Stop).flow == 8
        world.see(unplugged("h3"))
        assert h1.next(Stop).flow == 7
        granted = h1.next(Grant)
        assert (granted.flow, granted.rate_bps) == (8, RATE)
        eventually(lambda: len(world.events) == 2, "events")
        assert {(event.link, event.capacity_bps) for event in world.events} == {("h3 up", 0), ("h3 down", 0)}
        world.see(snapshot())
        assert h1.next(Stop).flow == 8
        assert h1.next(Grant).flow == 7


def test_a_spine_that_is_gone_takes_its_links_and_one_of_parallel_links_only_itself() -> None:
    fabric = snapshot()
    dead = replace(
        fabric, switches=tuple(replace(one, connected=one.name != "s2") for one in fabric.switches)
    )
    assert set(read(dead).groups.values()) == {Rates(3 * CORE, 3 * CORE)}
    twin = LinkInfo(PortRef(1, 20), PortRef(101, 20), True, 0)
    double = replace(fabric, links=(*fabric.links, twin))
    assert read(double).groups == {"l1": Rates(5 * CORE, 5 * CORE), "l2": Rates(4 * CORE, 4 * CORE)}
    single = replace(fabric, links=(*fabric.links, replace(twin, up=False)))
    assert read(single).groups == read(fabric).groups


def test_a_link_that_failed_elsewhere_lowers_what_leads_there_only() -> None:
    """docs/capton.md: the first leaf may still be promised all of its links, of which three lead to the second."""
    fabric = snapshot(leaves=3)
    links = tuple(replace(one, up=one.a != PortRef(2, 3)) for one in fabric.links)
    assert read(replace(fabric, links=links)).groups == {
        "l1": Rates(4 * CORE, 4 * CORE),
        "l2": Rates(3 * CORE, 3 * CORE),
        "l3": Rates(4 * CORE, 4 * CORE),
    }


def test_single_paths_are_granted_by_name_and_never_shared(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel, replace(RULE, paths="one"))
        h1, h2 = world.agent(1), world.agent(2)
        h1.send(Request(1, 7, "10.0.2.1", 1_000_000))
        first = h1.next(Grant)
        h2.send(Request(1, 9, "10.0.2.2", 1000))
        second = h2.next(Grant)
        assert (first.rate_bps, second.rate_bps) == (CORE, CORE)
        assert {first.stamp, second.stamp} <= {11, 12, 13, 14}
        assert first.stamp != second.stamp
        world.see(snapshot(down=frozenset({first.stamp - 10})))
        moved = h1.next(Grant)
        assert moved.stamp not in (first.stamp, second.stamp)


def test_doubled_and_late_messages_change_nothing_and_a_lost_decision_is_sent_again(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        for message in (Request(3, 7, "10.0.2.1", 1000), Request(3, 7, "10.0.2.1", 1000)):
            h1.send(message)
        h1.send(Request(2, 7, "10.0.2.1", 9_000_000))  # overtaken by the one before
        first = h1.next(Grant)
        assert first.answers == 3
        h1.send(Request(4, 7, "10.0.2.1", 1000))  # as an agent that did not get the grant
        second = h1.next(Grant)
        assert (second.answers, second.rate_bps) == (4, RATE), "one answer to each that is new"
        assert second.sequence > first.sequence
        h1.send(Finished(6, 7))
        h1.send(Request(5, 7, "10.0.2.1", 1000))  # does not bring it back
        h1.send(Finished(6, 7))
        h1.send(Request(7, 8, "10.0.2.2", 1000))
        assert h1.next(Grant).flow == 8
        standing = world.desk.standing()
        assert standing is not None
        assert [flow.active.destination for flow in standing.flows] == ["h4"]
        assert standing.counters["messages_late"] == 4


def test_episodes_that_an_agent_invents_do_not_fill_the_events(tmp_path: Path) -> None:
    episode = Resent("10.0.1.1", 1, "10.0.2.1", 2, "granted", "gap", 0.0, 0.0, 0.0, 0.0, 1, 1)
    count = MOST_EVENTS + 100
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        began = time.monotonic()
        for _ in range(count):
            h1.send(SentAgain(5.0, [episode]))
        eventually(lambda: world.desk.resent().episodes == count, "all of them")
        took = time.monotonic() - began
        assert MOST_EVENTS <= len(world.events) <= MOST_EVENTS + took


def test_admission_begins_as_soon_as_the_fabric_can_be_scheduled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it could not be when the scheme came: the capacities of leaves were missing."""
    with served(tmp_path) as channel:
        world = World(channel)
        world.desk.set_topology(replace(read(snapshot()), groups={}), {})
        world.desk.set_rule(RULE)
        assert world.desk.standing() is None
        assert "the fabric cannot be scheduled: the capacity of 'l1' is not known" in caplog.text
        world.see(snapshot())
        h1 = world.agent(1)
        h1.send(Request(1, 7, "10.0.2.1", 1000))
        assert h1.next(Grant).rate_bps == RATE


def test_another_scheme_forgets_all_grants(tmp_path: Path) -> None:
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        h1.send(Request(1, 7, "10.0.2.1", 1_000_000))
        h1.next(Grant)
        world.desk.set_rule(None)
        eventually(lambda: world.desk.standing() is None, "no rule")
        h1.send(Request(2, 8, "10.0.2.1", 1_000_000))
        h1.send(Ping(77))
        h1.next(Pong)
        world.desk.set_rule(RULE)
        h1.send(Request(3, 9, "10.0.2.1", 1_000_000))
        assert h1.next(Grant).flow == 9


@pytest.mark.parametrize("between", [[], [None]], ids=["at once", "after a time without admission"])
@pytest.mark.parametrize("paths", ["all", "one"])
def test_an_agent_that_keeps_its_policy_takes_the_decisions_of_another_scheme(
    tmp_path: Path, between: list[None], paths: Literal["all", "one"]
) -> None:
    """It may not have seen the scheme between two with the same policy: it gets the newest one only."""
    other = replace(RULE, finish_timeout_s=30.0, paths=paths)
    assert other.policy() == RULE.policy()
    agent = AdmittingAgent(RULE.policy())
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)

        def ask(now: float) -> Grant:
            [request] = agent.messages_to_send(now)
            assert isinstance(request, Request)
            h1.send(replace(request, destination="10.0.2.1"))
            granted = h1.next(Grant)
            agent.decided(granted, now)
            assert isinstance(granted, Grant)
            return granted

        agent.sent(tcp(sequence=0, ports=(40000, 80), flags=0x02), 1e6, 0.0)
        for step in range(3):
            ask(0.3 * step)
            agent.handle_timer(0.3 * step + 0.26)  # it asks again
        for rule in (*between, other):
            world.desk.set_rule(rule)
        assert ask(0.9).rate_bps == (RATE if paths == "all" else CORE)
    assert agent.totals().get("decisions_late", 0) == 0
    assert agent.standing() == {"flows_granted": 1, "flows_waiting": 0, "flows_unscheduled": 0}


@pytest.mark.parametrize("destination", ["10.9.9.9", "10.0.1.1"])
def test_what_cannot_be_is_refused_and_counted(tmp_path: Path, destination: str) -> None:
    """A host that is not known, and the sender itself: not answered, so the flow goes on unscheduled."""
    with served(tmp_path) as channel:
        world = World(channel)
        h1 = world.agent(1)
        h1.send(Request(1, 7, destination, 1000))
        h1.send(Request(2, 8, "10.0.2.1", 1000))
        assert h1.next(Grant).flow == 8
        standing = world.desk.standing()
        assert standing is not None
        assert standing.counters["requests_refused"] == 1
