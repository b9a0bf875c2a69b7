"""An agent forgets flows that are idle, and keeps their record for the next report.

Which flow goes where there are too many of them: native/agent/src/flow_table.rs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, SYN, look
from protocol.control import Peer
from protocol.datagram import CodeId
from protocol.policy import CodingPolicy
from tests.unit.agent_relay import PEERS, SESSIONS, UNDERLAY, core, policy
from tests.unit.datagram_reference import Kind
from tests.unit.inner_packets import HOST2, tcp

IDLE_S = 60.0


def flows_known(agent: AgentCore) -> float:
    return agent.counters()["send_flows"]


def test_idle_flows_go_and_are_reported() -> None:
    agent = core(0)
    agent.packet_from_host(tcp(b"x", ports=(1, 80)), 0.0)
    agent.packet_from_host(tcp(b"x", ports=(2, 80)), 50.0)
    agent.handle_timer(IDLE_S + 1)
    assert flows_known(agent) == 1
    assert {entry.source_port for entry in agent.flow_report(False)} == {1, 2}
    assert {entry.source_port for entry in agent.flow_report(True)} == {1, 2}
    assert agent.flow_report(True) == []


def test_a_flow_whose_ports_are_used_again_keeps_both_records() -> None:
    agent = core(0)
    for begin in (0.0, 9.0):
        agent.packet_from_host(tcp(flags=SYN), begin)
        agent.packet_from_host(tcp(b"x", flags=ACK), begin + 1.0)
    assert flows_known(agent) == 1
    assert sorted((entry.first_s, entry.packets) for entry in agent.flow_report(True)) == [(0.0, 2), (9.0, 2)]


def test_flows_that_a_peer_sends_go_when_they_are_idle() -> None:
    sender, receiver = core(0), core(1)
    for port, now in ((1, 0.0), (2, 50.0)):
        sender.packet_from_host(tcp(b"x", ports=(port, 80)), now)
        for one in sender.datagrams_to_send():
            receiver.receive_datagram(one.data, "10.0.1.1", 3, one.tos, now=now)
    assert receiver.counters()["receive_flows"] == 2
    receiver.handle_timer(IDLE_S + 1)
    assert receiver.counters()["receive_flows"] == 2, "its sender is to forget it first"
    receiver.handle_timer(IDLE_S + 3)
    assert receiver.counters()["receive_flows"] == 1
    assert {entry.source_port for entry in receiver.flow_report(True)} == {1, 2}


def test_a_flow_of_which_only_a_size_comes_is_idle() -> None:
    """Its receiver forgets it, too, and would take positions that go on for those behind packets that are lost."""
    sender, receiver = core(0), core(1)
    for port, now in ((1, 0.0), (2, 20.0)):
        sender.packet_from_host(tcp(b"x", ports=(port, 80)), now)
        for one in sender.datagrams_to_send():
            receiver.receive_datagram(one.data, UNDERLAY[0], 3, one.tos, now=now)
    sender.announce(look(tcp(b"x", ports=(1, 80))).flow, 1000.0)
    for agent in (sender, receiver):
        agent.handle_timer(IDLE_S + 3)
    assert flows_known(sender) == receiver.counters()["receive_flows"] == 1


def test_records_that_find_no_room_in_a_report_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host_agent.core.MOST_FLOWS", 3)
    agent = core(0)
    for port in range(1, 6):
        agent.packet_from_host(tcp(b"x", ports=(port, 80)), 0.0)
    assert [len(agent.flow_report(forget)) for forget in (False, True, True)] == [3, 3, 0]
    assert agent.counters()["flow_records_dropped"] == 2


@pytest.mark.parametrize("stays", [True, False])
def test_a_coded_unit_goes_to_one_agent_though_the_destination_moves(stays: bool) -> None:
    """Each agent could repair nothing of a unit of which it has only a part."""
    agent = core(0)
    agent.set_policy(policy(CodingPolicy(code="mds", redundancy="one-per-unit", max_k=4, flush_s=9.0)), 0.0)

    def repairs(number: int) -> list[tuple[str, bytes]]:
        agent.packet_from_host(tcp(bytes(100), flags=ACK, sequence=1000 + 100 * number), 0.0)
        datagrams = agent.datagrams_to_send()
        return [
            (one.underlay_ip, bytes(one.data[32:35])) for one in datagrams if one.data[1] & 15 == Kind.REPAIR
        ]

    assert [repairs(number) for number in range(2)] == [[], []]
    old, new = Peer("h2", UNDERLAY[1], [], SESSIONS[1]), Peer("h3", "10.0.1.3", [HOST2], 3)
    agent.set_directory([PEERS[0], old, new] if stays else [PEERS[0], new], 1.0)
    of_the_old = [(UNDERLAY[1], bytes((CodeId.MDS, 2, 1)))] if stays else []
    of_the_new = [("10.0.1.3", bytes((CodeId.MDS, 4, 1)))]
    assert [repairs(number) for number in range(2, 6)] == [of_the_old, [], [], of_the_new]


def test_what_was_lost_stays_counted_when_its_sender_begins_anew_or_goes() -> None:
    sender, receiver = core(0), core(1)
    for number in range(5):
        sender.packet_from_host(tcp(b"x", ports=(number, 80)), 0.0)
    first, _, _, _, last = sender.datagrams_to_send()
    for one in (first, last):
        receiver.receive_datagram(one.data, UNDERLAY[0], 3, one.tos, now=0.0)
    receiver.handle_timer(10.0)
    assert receiver.counters()["datagrams_lost"] == 3
    for peers in ([replace(PEERS[0], session=9), PEERS[1]], [PEERS[1]], PEERS):
        receiver.set_directory(peers, 11.0)
        assert receiver.counters()["datagrams_lost"] == 3
