"""What an agent takes from the wire and from its host: all else is dropped, and answered where an answer helps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.core import AgentCore
from protocol.datagram import CodeId
from protocol.underlay import TrafficClass
from tests.unit.agent_relay import MTU, PEERS, RLC, SESSIONS, UNDERLAY, core, flow, policy
from tests.unit.datagram_reference import Header, Kind, RepairHead, encode, encode_repair
from tests.unit.device_writes import joined
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, UDP, ip, reassembled, tcp, udp

# -- who may send what -------------------------------------------------------------------------------


def test_unknown_peers_replays_and_old_sessions_get_nothing() -> None:
    sender, receiver = core(0), core(1)
    sender.packet_from_host(tcp(b"hello"), 0.0)
    out = sender.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, "10.0.9.9", 3, out.tos, now=0.0)
    assert receiver.counters()["dropped_unknown_peer"] == 1
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=0.0)
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=0.1)
    assert receiver.packets_to_deliver() == [tcp(b"hello")]
    assert receiver.counters()["dropped_replayed"] == 1

    restarted = core(0, session=77)
    restarted.packet_from_host(tcp(b"again"), 1.0)
    out = restarted.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=1.0)
    assert receiver.packets_to_deliver() == []
    assert receiver.counters()["dropped_other_session"] == 1
    receiver.set_directory([PEERS[0].__class__("h1", UNDERLAY[0], [HOST1, HOST1_V6], 77), PEERS[1]], 1.1)
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=1.2)
    assert receiver.packets_to_deliver() == [tcp(b"again")], "taken as soon as the directory says so"


def test_a_peer_that_was_away_cannot_be_replayed_to() -> None:
    sender, receiver = core(0), core(1)
    sender.packet_from_host(tcp(b"hello"), 0.0)
    out = sender.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=0.0)
    assert receiver.packets_to_deliver() == [tcp(b"hello")]
    receiver.set_directory(PEERS[1:], 1.0)
    receiver.set_directory(PEERS, 2.0)
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=2.0)
    assert receiver.packets_to_deliver() == []
    assert receiver.counters()["dropped_replayed"] == 1
    sender.packet_from_host(tcp(b"again"), 3.0)
    out = sender.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=3.0)
    assert receiver.packets_to_deliver() == [tcp(b"again")]


def test_a_restart_of_the_receiver_does_not_stop_a_flow() -> None:
    sender, receiver = core(0), core(1)
    for one in (sender, receiver):
        one.set_policy(policy(release_s=0.02), 0.0)
    packets = flow([500] * 300, 40000, False)
    for packet in packets[:290]:
        sender.packet_from_host(packet, 0.0)
    sender.datagrams_to_send()
    fresh = core(1, session=99)
    fresh.set_policy(policy(release_s=0.02), 0.0)
    for packet in packets[290:]:
        sender.packet_from_host(packet, 1.0)
    for out in sender.datagrams_to_send():
        fresh.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, now=1.0)
    fresh.handle_timer(1.021)
    assert fresh.packets_to_deliver() == packets[290:]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nothing_that_comes_over_the_wire_does_harm(data):  # type: ignore[no-untyped-def]
    receiver = core(1)
    receiver.set_policy(policy(RLC, 0.02), 0.0)
    sender = core(0)
    sender.set_policy(policy(RLC, 0.02), 0.0)
    for packet in flow([900] * 3, 40000, False):
        sender.packet_from_host(packet, 0.0)
    sender.handle_timer(0.01)
    good = [out.data for out in sender.datagrams_to_send()]
    now = 0.0
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.sampled_from(["random", "cut", "flipped", "good", "forged"]))
        if kind == "random":
            wire = data.draw(st.binary(max_size=80))
        elif kind == "forged":
            # what a sender that knows the session may send: the header is sound, the rest is anything
            header = Header(
                kind=data.draw(st.sampled_from(Kind)),
                traffic_class=data.draw(st.sampled_from(TrafficClass)),
                session=SESSIONS[0],
                number=data.draw(st.integers(0, 2**32 - 1)),
                sent_us=data.draw(st.integers(0, 2**32 - 1)),
                flow=data.draw(st.integers(0, 2)),
                position=data.draw(st.sampled_from([0, 1, 5, 100, 5000, 2**31, 2**32 - 1])),
                coded=data.draw(st.booleans()),
            )
            body = data.draw(
                st.one_of(
                    st.binary(max_size=60),
                    st.sampled_from([good[0][32:], tcp(b"abc"), tcp(), udp(b"xyz"), ip(6, b"short")]),
                )
            )
            wire = encode(header, body)
        else:
            wire = data.draw(st.sampled_from(good))
            if kind == "cut":
                wire = wire[: data.draw(st.integers(0, len(wire)))]
            elif kind == "flipped":
                at = data.draw(st.integers(0, len(wire) - 1))
                wire = wire[:at] + bytes((wire[at] ^ 1 << data.draw(st.integers(0, 7)),)) + wire[at + 1 :]
        now += 0.001
        receiver.receive_datagram(
            wire, UNDERLAY[0], data.draw(st.integers(0, 65535)), data.draw(st.integers(0, 255)), now=now
        )
    for _ in range(50):
        now = max(now, receiver.get_timer())
        receiver.handle_timer(now)
        receiver.datagrams_to_send()
        joined(receiver.packets_to_deliver())
        if now > 3.0:
            break
    receiver.counters()
    receiver.flow_report(forget=True)


def test_datagrams_with_far_numbers_can_be_reported_together() -> None:
    receiver = core(1)
    for number in (0, 40_000, 70_000, 30_000, 2**31):
        wire = encode(Header(Kind.SOURCE, TrafficClass.SHORT, SESSIONS[0], number, 0, 1), tcp(b"x"))
        receiver.receive_datagram(wire, UNDERLAY[0], 3, 0, now=0.001)
    receiver.handle_timer(0.1)
    assert any(out.data[1] & 0x0F == Kind.FEEDBACK for out in receiver.datagrams_to_send())


def test_a_repair_cannot_smuggle_in_what_is_no_packet() -> None:
    receiver = core(1)
    receiver.set_policy(policy(RLC, 0.02), 0.0)
    number = 0

    def send(kind: Kind, body: bytes, position: int) -> None:
        nonlocal number
        header = Header(kind, TrafficClass.SHORT, SESSIONS[0], number, 0, 1, position, coded=True)
        receiver.receive_datagram(encode(header, body), UNDERLAY[0], 3, 0, now=0.001)
        number += 1

    send(Kind.SOURCE, tcp(b"x"), 0)
    junk = b"not an IP packet at all"
    head = RepairHead(code=CodeId.XOR, k=1, r=1, index=0, seed=0)
    send(Kind.REPAIR, encode_repair(head) + len(junk).to_bytes(2, "big") + junk, 1)
    assert receiver.packets_to_deliver() == [tcp(b"x")]


def test_inner_addresses_must_be_the_peers_and_ours() -> None:
    receiver = core(1)
    for number, packet in enumerate(
        (tcp(b"x", "10.128.7.7", HOST2), tcp(b"x", HOST1, "10.128.7.7"), udp(b"x", "8.8.8.8", HOST2))
    ):
        wire = encode(Header(Kind.SOURCE, TrafficClass.SHORT, SESSIONS[0], number, 0, 1), packet)
        receiver.receive_datagram(wire, UNDERLAY[0], 3, 0, now=0.001)
    assert receiver.packets_to_deliver() == []


# -- what the host may send --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packet", "counter"),
    [
        (udp(b"x", destination="224.0.0.251"), "dropped_group_address"),
        (udp(b"x", destination="255.255.255.255"), "dropped_group_address"),
        (udp(b"x", HOST1_V6, "ff02::fb"), "dropped_group_address"),
    ],
    ids=["multicast", "broadcast", "multicast v6"],
)
def test_groups_of_the_overlay_are_dropped(packet: bytes, counter: str) -> None:
    agent = core(0)
    agent.packet_from_host(packet, 0.0)
    assert agent.counters()[counter] == 1
    assert agent.datagrams_to_send() == []
    assert agent.packets_to_deliver() == [], "no errors about groups"


def test_an_address_without_a_host_is_answered() -> None:
    agent = core(0)
    agent.packet_from_host(tcp(b"x", destination="10.128.9.9"), 0.0)
    assert agent.counters()["dropped_no_such_host"] == 1
    (answer,) = agent.packets_to_deliver()
    assert answer[20:22] == bytes((3, 1))


def test_an_agent_without_a_directory_drops_packets_silently() -> None:
    """An ICMP error would end a connection attempt, and the directory is on its way."""
    agent = AgentCore("h1", 1, MTU, np.random.default_rng(1))
    agent.packet_from_host(tcp(b"x"), 0.0)
    assert agent.counters()["dropped_no_directory"] == 1
    assert agent.packets_to_deliver() == []


def test_errors_are_limited() -> None:
    agent = core(0)
    for _ in range(1000):
        agent.packet_from_host(tcp(b"x", destination="10.128.9.9"), 0.0)
    assert len(agent.packets_to_deliver()) <= 200


def test_what_is_too_large_is_answered_or_cut() -> None:
    agent = core(0)
    agent.packet_from_host(tcp(bytes(2000)), 0.0)
    (answer,) = agent.packets_to_deliver()
    assert int.from_bytes(answer[26:28], "big") == MTU
    agent.packet_from_host(udp(bytes(2000), HOST1_V6, HOST2_V6), 0.0)
    (answer,) = agent.packets_to_deliver()
    assert answer[40:42] == bytes((2, 0))
    assert agent.datagrams_to_send() == []

    large = udp(bytes(range(250)) * 16, df=False)
    agent.packet_from_host(large, 0.0)
    out = [one.data[32:] for one in agent.datagrams_to_send()]
    assert all(len(part) <= MTU for part in out)
    assert reassembled(out) == large[20:]


def test_fragments_of_an_unfinished_packet_are_finished() -> None:
    agent = core(0)
    agent.packet_from_host(udp(bytes(range(250)) * 16, df=False, partial=True), 0.0)
    out = [one.data[32:] for one in agent.datagrams_to_send()]
    assert reassembled(out) == udp(bytes(range(250)) * 16, df=False)[20:]


def test_what_is_no_packet_is_dropped() -> None:
    agent = core(0)
    for junk in (b"", b"\x45", bytes(40), b"\x60" * 30, ip(UDP, b"x")[:-1]):
        agent.packet_from_host(junk, 0.0)
    assert agent.datagrams_to_send() == []
    assert agent.packets_to_deliver() == []
