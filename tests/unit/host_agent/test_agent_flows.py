"""An agent forgets flows that are idle, and keeps their record for the next report.

Which flow goes where there are too many of them: native/agent/src/flow_table.rs.
"""

from __future__ import annotations

import pytest

from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, SYN
from tests.unit.agent_relay import core
from tests.unit.inner_packets import tcp

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
    assert receiver.counters()["receive_flows"] == 1
    assert {entry.source_port for entry in receiver.flow_report(True)} == {1, 2}


def test_records_that_find_no_room_in_a_report_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host_agent.core.MOST_FLOWS", 3)
    agent = core(0)
    for port in range(1, 6):
        agent.packet_from_host(tcp(b"x", ports=(port, 80)), 0.0)
    assert [len(agent.flow_report(forget)) for forget in (False, True, True)] == [3, 3, 0]
    assert agent.counters()["flow_records_dropped"] == 2
