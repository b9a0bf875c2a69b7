"""The priority in every packet's DSCP: by bytes sent, type and announced size, and never a packet late."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schemes import loader
from controller.schemes.policy import policy_for
from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, FIN, PSH, SYN, look
from protocol.control import FlowTypes, Peer
from protocol.frames import FrameReader, encode
from protocol.policy import Policy, PolicyError
from protocol.priority import PriorityPolicy, TypePriority
from protocol.underlay import TrafficClass, class_of_dscp
from tests.unit.inner_packets import HOST1, HOST2, tcp

PIAS = Policy(1, "pias", priority=PriorityPolicy("bytes-sent", (1000, 5000)))
TPFS = replace(PIAS, priority=PriorityPolicy("bytes-sent", (1000, 5000), predicted=True))


def _agent(policy: Policy) -> AgentCore:
    core = AgentCore("h1", 1, 1500, np.random.default_rng(0))
    core.set_directory([Peer("h1", "10.0.0.1", [HOST1], 1), Peer("h2", "10.0.0.2", [HOST2], 2)], 0.0)
    core.set_policy(policy, 0.0)
    return core


def _sent(core: AgentCore) -> list[tuple[TrafficClass, int]]:
    """Return class and priority of each datagram that the agent sends."""
    result = []
    for one in core.datagrams_to_send():
        result.append((class_of_dscp(one.tos >> 2), one.tos >> 2 & 7))
    return result


def _priorities(core: AgentCore) -> list[int]:
    return [priority for kind, priority in _sent(core) if kind is not TrafficClass.CONTROL]


def _data(size: int, sent: int = 0, flags: int = ACK, port: int = 80) -> bytes:
    return tcp(bytes(size), sequence=1 + sent, flags=flags, ports=(40000, port))


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 1400) | st.integers(5000, 20000), min_size=1, max_size=12),
    thresholds=st.lists(st.integers(0, 40_000), min_size=1, max_size=7).map(lambda one: tuple(sorted(one))),
    limit=st.integers(0, 30_000),
)
def test_every_packet_has_the_priority_of_what_was_sent_before_it(
    sizes: list[int], thresholds: tuple[int, ...], limit: int
) -> None:
    core = _agent(replace(PIAS, short_limit_bytes=limit, priority=PriorityPolicy("bytes-sent", thresholds)))
    sent, expected = 0, []
    for size in sizes:
        if size > 1400:
            core.super_packet_from_host(_data(size, sent), 1000, 0.0)
        else:
            core.packet_from_host(_data(size, sent), 0.0)
        for at in range(sent, sent + size, 1000 if size > 1400 else size):
            kind = TrafficClass.SHORT if at < limit else TrafficClass.LONG
            expected.append((kind, bisect_right(thresholds, at)))
        sent += size
    assert _sent(core) == expected


def test_without_a_priority_policy_each_class_has_its_own() -> None:
    core = _agent(policy_for(loader.load("ecmp-pq"), 0.001, 1))
    core.packet_from_host(tcp(flags=SYN), 0.0)
    for sent in range(0, 102_000, 1000):
        core.packet_from_host(_data(1000, sent), 0.0)
    assert set(_sent(core)) == {
        (TrafficClass.CONTROL, 0),
        (TrafficClass.SHORT, 0),
        (TrafficClass.LONG, 1),
    }


def test_control_packets_stay_on_top() -> None:
    core = _agent(PIAS)
    for sent in range(0, 9000, 1000):
        core.packet_from_host(_data(1000, sent), 0.0)
    core.packet_from_host(tcp(flags=ACK), 0.0)
    assert _sent(core)[-1] == (TrafficClass.CONTROL, 0)


def _types(version: int = 1, thresholds: tuple[int, ...] = (0, 0)) -> FlowTypes:
    return FlowTypes(version, ("destination_port",), (TypePriority((("80",), ("81",)), thresholds),))


def test_types_change_flows_between_two_packets_and_unknown_ones_keep_the_defaults() -> None:
    core = _agent(TPFS)
    for port in (80, 90):
        core.packet_from_host(_data(500, port=port), 0.0)
    core.set_flow_types(_types())
    for port in (80, 90):
        core.packet_from_host(_data(500, 500, port=port), 0.0)
    assert _priorities(core) == [0, 0, 2, 0]
    core.set_flow_types(_types(thresholds=(1000, 3000)))
    core.packet_from_host(_data(500, 1000), 0.0)
    assert _priorities(core) == [1]
    assert core.counters()["flows_of_unknown_type"] == 2
    core.packet_from_host(_data(500, port=81), 0.0)
    assert core.counters()["flows_of_known_type"] == 1


@pytest.mark.parametrize(
    "types",
    [_types(version=2), _types(thresholds=(0,)), _types(thresholds=(5, 1)), _types(thresholds=(-1, 1))],
)
def test_types_of_another_policy_or_that_do_not_fit_change_nothing(types: FlowTypes) -> None:
    core = _agent(TPFS)
    core.set_flow_types(types)
    core.packet_from_host(_data(500), 0.0)
    assert _priorities(core) == [0]


def test_types_may_come_before_their_policy() -> None:
    core = _agent(PIAS)
    core.set_flow_types(_types(version=2))
    core.packet_from_host(_data(100), 0.0)
    core.set_policy(replace(TPFS, version=2), 0.0)
    core.packet_from_host(_data(100, 100), 0.0)
    assert _priorities(core) == [0, 2]


def test_types_by_address_and_port_together() -> None:
    core = _agent(TPFS)
    value = (HOST1, HOST2, "80")
    core.set_flow_types(
        FlowTypes(1, ("source", "destination", "destination_port"), (TypePriority((value,), (0, 9)),))
    )
    core.packet_from_host(_data(5), 0.0)
    core.packet_from_host(_data(5, port=81), 0.0)
    assert _priorities(core) == [1, 0]


def test_an_announced_size_decides_from_the_first_packet_on() -> None:
    core = _agent(replace(PIAS, priority=PriorityPolicy("size", (1000, 5000)), prior_knowledge=True))
    for port, size in ((80, 1000.0), (81, 1001.0), (82, float("inf"))):
        core.announce(look(_data(1, port=port)).flow, size)
    for port in (80, 81, 82, 83):
        core.packet_from_host(_data(900, port=port), 0.0)
        core.packet_from_host(_data(900, 900, port=port), 0.0)
    assert _priorities(core) == [0, 0, 1, 1, 2, 2, 0, 0]


def test_flows_that_end_are_reported_once_and_only_where_it_is_wanted() -> None:
    for policy, wanted in ((PIAS, False), (TPFS, True)):
        core = _agent(policy)
        core.packet_from_host(tcp(flags=SYN), 1.0)
        core.packet_from_host(_data(700), 1.5)
        core.packet_from_host(_data(300, 700, FIN | ACK | PSH), 2.0)
        core.packet_from_host(_data(300, 700, FIN | ACK | PSH), 2.5)
        reported = core.finished_flows(3.0)
        assert (reported is not None) == wanted
        if reported is not None:
            assert (reported.source, reported.source_port, reported.destination, reported.destination_port) == (
                [HOST1], [40000], [HOST2], [80],
            )  # fmt: skip
            assert (reported.bytes, reported.start_s, reported.end_s, reported.now_s) == (
                [1000],
                [1.0],
                [2.0],
                3.0,
            )
            assert FrameReader().feed(encode(reported)) == [reported]
        assert core.finished_flows(3.0) is None


def test_idle_flows_and_new_connections_end_a_flow_and_empty_ones_do_not_count() -> None:
    core = _agent(TPFS)
    core.packet_from_host(_data(700), 1.0)
    core.packet_from_host(tcp(flags=SYN), 5.0)
    reported = core.finished_flows(5.0)
    assert reported is not None
    assert (reported.bytes, reported.end_s) == ([700], [1.0])
    core.packet_from_host(_data(50), 6.0)
    core.packet_from_host(tcp(flags=SYN, ports=(1, 2)), 6.0)
    core.handle_timer(100.0)
    reported = core.finished_flows(100.0)
    assert reported is not None
    assert (reported.bytes, reported.start_s, reported.end_s) == ([50], [5.0], [6.0])


def test_a_super_packet_that_ends_a_flow_is_seen() -> None:
    core = _agent(TPFS)
    core.super_packet_from_host(_data(9000, 0, FIN | ACK | PSH), 1000, 1.0)
    reported = core.finished_flows(1.0)
    assert reported is not None
    assert reported.bytes == [9000]


@pytest.mark.parametrize(
    "priority",
    [
        PriorityPolicy("bytes-sent", ()),
        PriorityPolicy("bytes-sent", (5, 1)),
        PriorityPolicy("bytes-sent", tuple(range(8))),
        PriorityPolicy("class", (5,)),
        PriorityPolicy("size", (5,), predicted=True),
    ],
)
def test_a_priority_that_cannot_be_is_refused_by_name(priority: PriorityPolicy) -> None:
    with pytest.raises(PolicyError, match=r"policy\.priority\."):
        Policy.from_dict(replace(PIAS, priority=priority).to_dict())


@pytest.mark.parametrize(
    ("name", "kind", "predicted", "first"),
    [
        ("pias", "bytes-sent", False, 909 * 1460),
        ("pias-mismatched", "bytes-sent", False, 745 * 1460),
        ("tpfs", "bytes-sent", True, 909 * 1460),
        ("caps-tpfs", "bytes-sent", True, 909 * 1460),
        ("tpfs-oracle", "size", False, 909 * 1460),
    ],
)
def test_the_schemes_say_what_agents_do(name: str, kind: str, predicted: bool, first: int) -> None:
    scheme = loader.load(name)
    assert loader.scheme_from_dict(loader.scheme_to_dict(scheme)) == scheme
    found = policy_for(scheme, 0.001, 7).priority
    assert (found.kind, found.predicted, found.thresholds_bytes[0]) == (kind, predicted, first)
    assert len(found.thresholds_bytes) == 7
    assert scheme.priority is not None
    half = replace(scheme, priority=replace(scheme.priority, scale=0.01))
    assert policy_for(half, 0.001, 7).priority.thresholds_bytes[0] == round(first / 100)
