"""Queues and priorities of a scheme: read, refused, sent to agents and switches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.lifecycle import port_queues
from controller.openflow.pipeline import classify_flows
from controller.openflow.view import SwitchView
from controller.openflow.wanted import ToQueue
from controller.openflow.wanted_switch import WantedSwitch
from controller.schemes import loader
from controller.schemes.overrides import with_overrides
from controller.schemes.policy import policy_for
from controller.schemes.scheme import Queues
from ovsdb.port_queues import ONE_QUEUE, PortQueues
from plain.reading import PlainError
from protocol.policy import ClassPolicy, PathSettings, Policy, PolicyError
from protocol.underlay import TrafficClass, class_of_dscp, dscp, queue_of_dscp
from tests.unit.api_world import World, api_world
from tests.unit.host_agent.test_agent_core import SYN, hand_over, pair, policy, tcp
from tests.unit.host_agent.test_agent_core import A as SENDER

ECMP = loader.load("ecmp")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("overrides", "field", "words"),
    [
        ({"queues": {"number": 0}}, "queues.number", "must be 1..8 queues, not 0"),
        ({"queues": {"number": 9}}, "queues.number", "must be 1..8 queues, not 9"),
        ({"queues": {"buffer_packets": 0}}, "queues.buffer_packets", "must be 1 to 1000000 packets"),
        (
            {"queues": {"number": 2}, "long.priority": 2},
            "long.priority",
            "must be 0..1, below the number of queues",
        ),
        ({"queues": {}, "short.priority": -1}, "short.priority", "must be 0..7"),
        ({"long.priority": 1}, "long.priority", "ports have one queue: add `queues: {number: 2}`"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(overrides: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(PlainError) as caught:
        with_overrides(ECMP, overrides)
    assert caught.value.where.endswith(field)
    assert words in caught.value.what


@pytest.mark.parametrize("name", ["ecmp", "rps"])
def test_the_variants_with_queues_differ_in_nothing_else(name: str) -> None:
    plain, queued = loader.load(name), loader.load(f"{name}-pq")
    assert queued.queues == Queues(number=2)
    assert (queued.short.priority, queued.control.priority, queued.long.priority) == (0, 0, 1)
    without = {
        kind: dataclasses.replace(getattr(queued, kind), priority=0) for kind in ("short", "long", "control")
    }
    assert without == {kind: getattr(plain, kind) for kind in without}
    assert (port_queues(plain), port_queues(queued)) == (ONE_QUEUE, PortQueues(2))
    assert port_queues(with_overrides(plain, {"queues": {"buffer_packets": 9}})) == PortQueues(8, 9)


def test_agents_are_informed_and_mark_their_datagrams_so() -> None:
    scheme = with_overrides(
        ECMP, {"queues": {}, "short.priority": 2, "long.priority": 7, "control.priority": 1}
    )
    reported = policy_for(scheme, 0.001, 3)
    assert (reported.short.priority, reported.long.priority, reported.control.priority) == (2, 7, 1)
    rules = dataclasses.replace(reported, short_limit_bytes=2000)
    sender, receiver = pair(rules)
    sender.packet_from_host(tcp(0, 0, SYN), 0.0)
    for number in range(4):
        sender.packet_from_host(tcp(number, 1000), 0.0)
    wanted = {TrafficClass.CONTROL: 1, TrafficClass.SHORT: 2, TrafficClass.LONG: 7}
    seen = [one.tos >> 2 for one in sender.datagrams_to_send()]
    assert {class_of_dscp(one) for one in seen} == set(wanted)
    assert all(one == dscp(class_of_dscp(one), wanted[class_of_dscp(one)]) for one in seen)
    sender.set_policy(policy(version=4), 0.0)
    sender.packet_from_host(tcp(5, 1000), 0.0)
    assert {one.tos >> 2 & 7 for one in sender.datagrams_to_send()} == {0}, "at once, in the midst of a flow"
    hand_over(sender, receiver, SENDER, 0.0)


@pytest.mark.parametrize("priority", [-1, 8])
def test_a_priority_that_no_dscp_can_carry_is_refused(priority: int) -> None:
    document = Policy(1, "test", long=ClassPolicy(PathSettings(), priority=priority)).to_dict()
    with pytest.raises(PolicyError, match=r"policy.long.priority: must be 0..7"):
        Policy.from_dict(document)


def test_switches_set_the_queue_that_the_filters_of_other_ports_choose() -> None:
    for number in range(2, 9):
        for flow in classify_flows(number):
            value = dscp(TrafficClass.NONE) if flow.match.ip_dscp is None else flow.match.ip_dscp
            assert flow.actions == (ToQueue(queue_of_dscp(value, number)),)
    assert all(flow.actions == () for flow in classify_flows())


def test_a_change_of_queues_changes_the_classifying_entries_only() -> None:
    view = SwitchView(1, leaf=True)
    switch = WantedSwitch(1)
    switch.want(view, ECMP, "off")
    switch.take()
    switch.want(view, loader.load("ecmp-pq"), "off")
    change = switch.take()
    assert {flow.key for flow in change.add_flows} == {flow.key for flow in classify_flows(2)}
    assert not change.delete_flows
    switch.want(view, ECMP, "off")
    assert set(switch.take().add_flows) == set(classify_flows())


def test_the_api_says_what_is_wanted_where_there_is_no_switch(world: World) -> None:
    assert world.get("/queues") == {"wanted": {"number": 1, "buffer_packets": None}, "switches": []}
