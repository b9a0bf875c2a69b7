"""Two agents' cores, joined by a hostile relay: what comes out is what went in, each packet at most once."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, PSH, SYN
from host_agent.paths import PathPolicy as Rule
from host_agent.paths import Report
from protocol.control import Impair, Peer
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy
from protocol.underlay import BASE_PORT, EV_FIRST, EV_LAST, FLOW_KEYS, TrafficClass, class_of_dscp

A = Peer("a", "10.0.1.1", ["10.128.1.1", "fd00:ca::1:1"], 11)
B = Peer("b", "10.0.2.1", ["10.128.2.1", "fd00:ca::2:1"], 22)
MTU = 1426


def tcp(number: int, payload: int, flags: int = ACK, ports: tuple[int, int] = (1000, 80)) -> bytes:
    """Return an IPv4 TCP packet from A to B whose payload proves itself: it is a hash of the packet's number."""
    body = hashlib.shake_128(number.to_bytes(4, "big")).digest(payload)
    head = struct.pack("!HHIIBBHHH", *ports, number * 1400 % 2**32, 0, 0x50, flags, 1000, 0, 0)
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        40 + payload,
        number % 65536,
        0x4000,
        64,
        6,
        0,
        b"\x0a\x80\x01\x01",
        b"\x0a\x80\x02\x01",
    )
    return ip + head + body


def policy(**changes: Any) -> Policy:
    coded = ClassPolicy(PathSettings("spray"), CodingPolicy(max_overhead=8.0), ReleasePolicy(0.02))
    return Policy(**{"version": 1, "scheme": "test", "packet_time_s": 0.001, "short": coded, **changes})


def pair(rules: Policy, seed: int = 1) -> tuple[AgentCore, AgentCore]:
    cores = []
    for peer in (A, B):
        core = AgentCore(peer.host, peer.session, MTU, np.random.default_rng(seed))
        core.set_policy(rules, 0.0)
        core.set_directory([A, B], 0.0)
        cores.append(core)
    return cores[0], cores[1]


def hand_over(sender: AgentCore, receiver: AgentCore, source: Peer, now: float) -> None:
    for one in sender.datagrams_to_send():
        receiver.receive_datagram(one.data, source.underlay_ip, one.source_port, one.tos, now=now)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 1386), min_size=1, max_size=120),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    harm=st.booleans(),
)
def test_what_arrives_is_what_was_sent_at_most_once(
    seed: int, sizes: list[int], loss: float, harm: bool
) -> None:
    sender, receiver = pair(policy(), seed)
    receiver.set_impairment(
        Impair(loss=loss, reorder=0.3 * harm, reorder_delay_s=0.01, duplicate=0.2 * harm, corrupt=0.05 * harm)
    )
    sent, got, now = [], [], 0.0
    for number, size in enumerate(sizes):
        now += 0.0005
        packet = tcp(number, size)
        sent.append(packet)
        sender.packet_from_host(packet, now)
        for core in (sender, receiver):
            if now >= core.get_timer():
                core.handle_timer(now)
        hand_over(sender, receiver, A, now)
        got += receiver.packets_to_deliver()
    for _ in range(200):
        now += 0.005
        for core in (sender, receiver):
            core.handle_timer(now)
        hand_over(sender, receiver, A, now)
        hand_over(receiver, sender, B, now)
        got += receiver.packets_to_deliver()
    assert len(set(got)) == len(got)
    assert set(got) <= set(sent)
    if loss == 0.0 and not harm:
        assert got == sent


@given(st.permutations(range(30)), st.floats(0.001, 1.0))
def test_release_restores_the_order_of_whatever_comes_within_its_time(
    order: list[int], timeout: float
) -> None:
    rules = policy(short=ClassPolicy(PathSettings("spray"), None, ReleasePolicy(timeout)))
    sender, receiver = pair(rules)
    packets = [tcp(number, 500) for number in range(30)]
    for packet in packets:
        sender.packet_from_host(packet, 0.0)
    datagrams = sender.datagrams_to_send()
    got = []
    for index in order:
        one = datagrams[index]
        receiver.receive_datagram(one.data, A.underlay_ip, one.source_port, one.tos, now=0.0)
        got += receiver.packets_to_deliver()
    assert got == packets


def test_what_came_late_is_taken_off_the_losses_of_its_own_report_only() -> None:
    sender, receiver = pair(policy(short=ClassPolicy(PathSettings("spray"), None, ReleasePolicy(0.01))))
    for number in range(5):
        sender.packet_from_host(tcp(number, 500), 0.0)
    datagrams = sender.datagrams_to_send()

    def arrive(index: int, now: float) -> None:
        one = datagrams[index]
        receiver.receive_datagram(one.data, A.underlay_ip, one.source_port, one.tos, now=now)

    def lost() -> int:
        (entry,) = (one for one in receiver.flow_report(True) if one.side == "receiver")
        return entry.lost

    arrive(2, 0.0)
    receiver.handle_timer(0.02)
    assert lost() == 2
    arrive(0, 0.03)
    arrive(1, 0.03)
    assert lost() == 0
    arrive(4, 0.04)
    receiver.handle_timer(0.06)
    assert lost() == 1


def test_coding_rebuilds_what_is_lost() -> None:
    sender, receiver = pair(policy())
    packets = [tcp(number, 1000) for number in range(8)]
    for packet in packets[:-1]:
        sender.packet_from_host(packet, 0.0)
    sender.packet_from_host(tcp(7, 1000, ACK | PSH), 0.0)
    datagrams = sender.datagrams_to_send()
    assert len(datagrams) > 8
    for index, one in enumerate(datagrams):
        if index not in (1, 4):
            receiver.receive_datagram(one.data, A.underlay_ip, one.source_port, one.tos, now=0.0)
    assert receiver.packets_to_deliver()[:7] == packets[:7]
    assert receiver.counters()["packets_recovered"] == 2


def test_classes_entropy_and_ports_are_in_the_outer_header() -> None:
    rules = policy(short_limit_bytes=3000, long=ClassPolicy(PathSettings("flow-hash")))
    sender, _ = pair(rules)
    sender.packet_from_host(tcp(0, 0, SYN), 0.0)
    for number in range(6):
        sender.packet_from_host(tcp(number, 1000), 0.0)
    sender.packet_from_host(tcp(6, 0), 0.0)
    sources = [one for one in sender.datagrams_to_send() if one.data[1] & 0x0F == 1]
    classes = [class_of_dscp(one.tos >> 2) for one in sources]
    assert classes == [
        TrafficClass.CONTROL,
        *[TrafficClass.SHORT] * 3,
        *[TrafficClass.LONG] * 3,
        TrafficClass.CONTROL,
    ]
    assert len({one.destination_port for one in sources}) == 1
    assert BASE_PORT <= sources[0].destination_port < BASE_PORT + FLOW_KEYS
    assert all(EV_FIRST <= one.source_port <= EV_LAST for one in sources)
    assert len({one.source_port for one in sources[1:4]}) == 3
    assert len({one.source_port for one in sources[4:7]}) == 1


def test_a_connection_on_ports_that_were_used_before_begins_short() -> None:
    sender, _ = pair(policy(short_limit_bytes=2000))
    for _ in range(2):
        sender.packet_from_host(tcp(0, 0, SYN), 0.0)
        sender.packet_from_host(tcp(0, 1000), 0.0)
        classes = [class_of_dscp(one.tos >> 2) for one in sender.datagrams_to_send()]
        assert TrafficClass.SHORT in classes
        for number in range(1, 4):
            sender.packet_from_host(tcp(number, 1000), 0.0)
        assert class_of_dscp(sender.datagrams_to_send()[-1].tos >> 2) is TrafficClass.LONG


@settings(max_examples=60)
@given(st.data())
def test_foreign_replayed_and_mutated_datagrams_are_dropped_and_counted(data: st.DataObject) -> None:
    sender, receiver = pair(policy())
    sender.packet_from_host(tcp(0, 300), 0.0)
    one = sender.datagrams_to_send()[0]
    receiver.receive_datagram(one.data, "10.9.9.9", 1, 0, now=0.0)
    assert receiver.counters()["dropped_unknown_peer"] == 1
    broken = bytearray(one.data)
    bit = data.draw(st.integers(0, len(broken) * 8 - 1))
    broken[bit // 8] ^= 1 << bit % 8
    receiver.receive_datagram(bytes(broken), A.underlay_ip, 1, 0, now=0.0)
    receiver.receive_datagram(data.draw(st.binary(max_size=200)), A.underlay_ip, 1, 0, now=0.0)
    assert receiver.packets_to_deliver() == []
    receiver.receive_datagram(one.data, A.underlay_ip, 1, 0, now=0.0)
    receiver.receive_datagram(one.data, A.underlay_ip, 1, 0, now=0.0)
    assert receiver.packets_to_deliver() == [tcp(0, 300)]
    assert receiver.counters()["dropped_replayed"] == 1
    assert receiver.datagrams_to_send() == []


def test_a_restarted_peers_packets_count_once_the_directory_names_it() -> None:
    sender, receiver = pair(policy())
    again = AgentCore("a", 99, MTU, np.random.default_rng(5))
    again.set_directory([A, B], 0.0)
    for number in range(3):
        sender.packet_from_host(tcp(number, 100), 0.0)
    hand_over(sender, receiver, A, 0.0)
    assert len(receiver.packets_to_deliver()) == 3
    again.packet_from_host(tcp(3, 100), 0.0)
    first = again.datagrams_to_send()
    receiver.receive_datagram(first[0].data, A.underlay_ip, 1, 0, now=0.0)
    assert receiver.counters()["dropped_other_session"] == 1
    receiver.set_directory([Peer("a", A.underlay_ip, A.overlay, 99), B], 0.0)
    receiver.receive_datagram(first[0].data, A.underlay_ip, 1, 0, now=0.0)
    assert receiver.packets_to_deliver() == [tcp(3, 100)]


@settings(max_examples=30, deadline=None)
@given(before=st.integers(1, 200), after=st.integers(1, 40), coded=st.booleans())
@example(before=1, after=31, coded=True)
def test_an_agent_that_begins_anew_in_the_middle_of_a_flow_delivers_what_comes(
    before: int, after: int, coded: bool
) -> None:
    """It has seen neither the flow's first positions nor its peer's first numbers, and does not wait long for them.

    What it did not see of a unit that was open is rebuilt.
    """
    rules = policy() if coded else policy(short=ClassPolicy(PathSettings("spray"), None, ReleasePolicy(0.02)))
    sender, receiver = pair(rules)
    for number in range(before):
        sender.packet_from_host(tcp(number, 100), 0.0)
    hand_over(sender, receiver, A, 0.0)
    again = AgentCore("b", 77, MTU, np.random.default_rng(3))
    again.set_policy(rules, 1.0)
    again.set_directory([A, Peer("b", B.underlay_ip, B.overlay, 77)], 1.0)
    sender.set_directory([A, Peer("b", B.underlay_ip, B.overlay, 77)], 1.0)
    sent = [tcp(before + number, 100) for number in range(after)]
    for packet in sent:
        sender.packet_from_host(packet, 1.0)
    hand_over(sender, again, A, 1.0)
    delivered = again.packets_to_deliver()
    again.handle_timer(1.0 + 0.021)
    delivered += again.packets_to_deliver()
    rebuilt = [packet for packet in delivered if packet not in sent]
    assert [packet for packet in delivered if packet in sent] == sent
    assert rebuilt == [tcp(number, 100) for number in range(before - len(rebuilt), before)]
    assert coded or not rebuilt
    forth = tcp(0, 100)
    back = forth[:12] + forth[16:20] + forth[12:16] + forth[20:]
    again.packet_from_host(back, 1.1)
    hand_over(again, sender, Peer("b", B.underlay_ip, B.overlay, 77), 1.1)
    assert sender.packets_to_deliver() == [back], "and its peer takes the new session"


@given(st.binary(max_size=120))
def test_no_packet_of_the_host_raises(packet: bytes) -> None:
    sender, _ = pair(policy())
    sender.packet_from_host(packet, 0.0)


def test_group_addresses_and_unknown_hosts_are_counted() -> None:
    sender, _ = pair(policy())
    for last, counter in (
        (b"\xe0\x00\x00\x01", "dropped_group_address"),
        (b"\x0a\x80\x09\x09", "dropped_no_such_host"),
    ):
        packet = tcp(0, 10)
        sender.packet_from_host(packet[:16] + last + packet[20:], 0.0)
        assert sender.counters()[counter] == 1
    (answer,) = sender.packets_to_deliver()
    assert answer[9] == 1  # ICMP
    assert answer[20:22] == b"\x03\x01"  # host unreachable


def test_a_flows_paths_are_reported_for_each_class_its_packets_came_in() -> None:
    """A long flow sends its first bytes as a short one, and its sender's window probes are control packets."""
    sender, receiver = pair(Policy(1, "test", 0.001, short_limit_bytes=3000))
    taken = {TrafficClass.SHORT: 4, TrafficClass.LONG: 5, TrafficClass.CONTROL: 4}
    for number, (payload, flags) in enumerate([(0, SYN), *[(1000, ACK)] * 5, (0, ACK), *[(1000, ACK)] * 2]):
        sender.packet_from_host(tcp(number, payload, flags), 0.0)
        for one in sender.datagrams_to_send():
            stamp = taken[class_of_dscp(one.tos >> 2)]
            receiver.receive_datagram(one.data, A.underlay_ip, stamp, one.tos, now=0.001)
    (flow,) = [entry for entry in receiver.flow_report(forget=True) if entry.side == "receiver"]
    assert flow.traffic_class == "long"
    assert flow.paths == {"4": 5, "5": 4}
    assert flow.paths_by_class == {"short": {"4": 3}, "long": {"5": 4}, "control": {"4": 2}}
    assert not [entry for entry in receiver.flow_report(forget=False) if entry.side == "receiver"]


class Reports(Rule):
    """Uses one entropy value, and keeps what is reported."""

    learns = True

    def __init__(self) -> None:
        self.stamps: list[tuple[int, int]] = []

    def entropy(self, flow: Any, route: Any, size: int, now: float) -> int:
        return EV_FIRST

    def reported(self, report: Report, now: float) -> None:
        self.stamps.append((report.entropy, report.stamp))


@pytest.mark.parametrize("stamp", [1, 7, 4095])
def test_feedback_informs_the_sender_which_path_an_entropy_value_takes(stamp: int) -> None:
    reports = Reports()
    _, receiver = pair(policy())
    sender = AgentCore("a", A.session, MTU, np.random.default_rng(1), own_path=lambda *_: reports)
    sender.set_policy(policy(short=ClassPolicy(PathSettings("file"))), 0.0)
    sender.set_directory([A, B], 0.0)
    sender.packet_from_host(tcp(0, 100), 0.0)
    one = sender.datagrams_to_send()[0]
    receiver.receive_datagram(one.data, A.underlay_ip, stamp, one.tos, now=0.001)
    receiver.handle_timer(0.1)
    hand_over(receiver, sender, B, 0.1)
    assert reports.stamps == [(one.source_port, stamp)]
    (flow,) = [entry for entry in receiver.flow_report(forget=False) if entry.side == "receiver"]
    assert flow.paths == {str(stamp): 1}
