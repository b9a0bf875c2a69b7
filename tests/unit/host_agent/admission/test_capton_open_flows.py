"""Flows that are open already when a scheme with admission comes, or the agent: what is left of them is scheduled."""

from __future__ import annotations

import pytest

from host_agent.admission.unsent import Unsent
from host_agent.inner_packet import look
from protocol.admission import AdmissionPolicy, Grant, Request
from tests.unit.admission_agent import MSS, PEER, AdmittingAgent
from tests.unit.agent_relay import UNDERLAY, core
from tests.unit.host_agent.admission.test_capton_gate import ACK, SYN, opened, policy, window
from tests.unit.host_agent.admission.test_capton_host import ON_THE_LINK, RATE, SCALE, Host
from tests.unit.inner_packets import HOST1, HOST2, tcp

POLICY = AdmissionPolicy()
HOLDS = Unsent(500_000, False, SCALE, MSS)


def open_flow(sent: int = 40) -> tuple[AdmittingAgent, Host]:
    """Return an agent, and the host of a flow that opened and sent *sent* segments before that agent began."""
    host = Host(AdmittingAgent(AdmissionPolicy(threshold_bytes=1 << 40)))
    host.open(0.0)
    host.send(sent, 0.0)
    host.agent = AdmittingAgent(POLICY)
    return host.agent, host


def assert_asks_and_waits(agent: AdmittingAgent, host: Host, now: float) -> None:
    assert host.send(11, now) == 11
    assert agent.messages_to_send(now, lambda key: HOLDS) == [
        Request(1, 1, PEER, round(HOLDS.bytes * ON_THE_LINK))
    ]
    host.take([host.peer(host.sent)], now)
    assert host.send(10, now) == 0, "it waits, by the scale that the kernel reported"


def test_an_open_flow_asks_once_it_has_sent_more_than_the_threshold_and_is_held_and_granted() -> None:
    agent, host = open_flow()
    assert_asks_and_waits(agent, host, 1.0)
    agent.decided(Grant(1, 1, 1, RATE), 1.1)
    host.took(agent.updates())
    sent, now = 0, 1.1
    while now < 1.3:  # before it asks again
        sent += host.send(100, now)
        now += 0.001
        agent.handle_timer(now)
        host.took(agent.updates())
    assert sent * MSS * ON_THE_LINK * 8 == pytest.approx(0.2 * RATE, rel=0.05)
    assert agent.totals()["flows_scheduled"] == 1
    assert "bytes_sent_again" not in agent.totals()


@pytest.mark.parametrize(
    "reported", [None, Unsent(0, False, SCALE, MSS), Unsent(9**6, True)], ids=["unknown", "idle", "closing"]
)
def test_what_is_no_socket_of_this_host_or_has_nothing_more_goes_on_as_it_did(
    reported: Unsent | None,
) -> None:
    agent, host = open_flow()
    host.send(5, 1.0)
    assert agent.messages_to_send(1.0, lambda key: reported) == []
    assert host.send(5, 1.0) == 5
    assert agent.messages_to_send(1.0, lambda key: reported) == []
    host.put(tcp(b"", ports=(host.port, 80), sequence=1 + host.sent, flags=ACK | 1), 1.1)
    assert len(agent) == 0
    assert "flows_small" not in agent.totals(), "it is unknown what it was"


def test_a_large_flow_over_a_connection_that_its_peer_opened_is_held_too() -> None:
    """The SYN of the peer comes before that of the host: the kernel says what both agreed."""
    agent = AdmittingAgent(POLICY)
    host = Host(agent)
    options = b"\x02\x04\x05\x78\x01\x03\x03" + bytes((SCALE,))
    host.take([host.peer(-1, SYN, 65535, options)], 0.0)
    host.put(tcp(b"", ports=(host.port, 80), sequence=0, flags=SYN | ACK, options=options), 0.0)
    host.take([host.peer(0)], 0.0)
    assert_asks_and_waits(agent, host, 0.0)
    agent.decided(Grant(1, 1, 1, RATE), 0.001)
    host.took(agent.updates())
    assert host.send(1, 0.001) == 1


def test_what_a_receiver_says_of_an_open_connection_is_no_flow() -> None:
    agent, host = open_flow()
    host.put(tcp(b"", ports=(host.port, 80), sequence=1 + host.sent, flags=ACK), 1.0)
    assert len(agent) == 0


def test_an_edge_is_never_behind_what_the_peer_has_acknowledged() -> None:
    """The first that is seen of a flow may have been sent again: more had left before."""
    agent, host = open_flow()
    again = tcp(bytes(MSS), ports=(host.port, 80), sequence=1 + host.sent - 30 * MSS, partial=True)
    host.put(again, 1.0)
    agent.messages_to_send(1.0, lambda key: HOLDS)
    host.send(11, 1.0)
    agent.messages_to_send(1.0, lambda key: HOLDS)
    before = host.sent
    host.take([host.peer(host.sent)], 1.0)
    assert host.room >= before
    agent.decided(Grant(1, 1, 1, RATE), 1.1)
    host.took(agent.updates())
    assert host.room >= before + MSS


def test_of_an_announced_flow_the_rest_is_asked_for_when_the_scheme_comes() -> None:
    agent, peer = core(0), core(1)
    agent.set_policy(policy(1, None), 0.0)
    (answer,) = opened(agent, peer, 0.0, 10**6)
    assert window(answer) == 65535
    size, sent = 1000, 20
    for number in range(sent):
        agent.packet_from_host(tcp(bytes(size), sequence=1 + number * size, ports=(40000, 80)), 0.1)
    agent.set_policy(policy(2), 1.0)
    agent.packet_from_host(tcp(bytes(size), sequence=1 + sent * size, ports=(40000, 80)), 1.0)
    (request,) = agent.gate.messages_to_send(1.0, lambda key: HOLDS)
    assert isinstance(request, Request)
    left = 10**6 - (sent + 1) * size
    assert request.bytes_left == pytest.approx(left * ON_THE_LINK, rel=0.01)
    peer.packet_from_host(
        tcp(b"", HOST2, HOST1, ports=(80, 40000), ack=1 + (sent + 1) * size, flags=ACK), 1.0
    )
    for out in peer.datagrams_to_send():
        agent.receive_datagram(out.data, UNDERLAY[1], out.source_port, out.tos, now=1.0)
    (held,) = agent.packets_to_deliver()
    assert window(held) == 0
    assert look(held).flow[-4:] == (80).to_bytes(2, "big") + (40000).to_bytes(2, "big")
    assert SYN & held[33] == 0
