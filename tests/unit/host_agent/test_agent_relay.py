"""Two agents' cores with bad weather between them: packets arrive as they were, once, and in order where it is said."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.core import AgentCore
from protocol.datagram import CodeId
from protocol.policy import CodingPolicy
from protocol.underlay import BASE_PORT, FLOW_KEYS, TrafficClass, class_of_dscp
from tests.unit.agent_relay import MTU, PEERS, SESSIONS, UNDERLAY, Relay, Weather, core, policy
from tests.unit.datagram_reference import Header, Kind, RepairHead, encode, encode_repair
from tests.unit.device_writes import joined
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, UDP, ip, reassembled, tcp, udp

RLC = CodingPolicy(max_overhead=8.0, code="rlc", flush_s=0.003)
weathers = st.builds(
    Weather,
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    duplicate=st.sampled_from([0.0, 0.2]),
    corrupt=st.sampled_from([0.0, 0.05]),
    jitter_s=st.sampled_from([0.0, 0.005, 0.03]),
)
policies = st.sampled_from(
    [
        policy(),
        policy(release_s=0.05),
        policy(RLC),
        policy(RLC, 0.05),
        policy(CodingPolicy(max_overhead=8.0, code="xor"), 0.02),
    ]
)
sizes = st.lists(st.integers(1, 1374), min_size=1, max_size=40)


def flow(lengths: list[int], port: int, v6: bool) -> list[bytes]:
    """TCP segments with a payload that is different everywhere."""
    source, destination = (HOST1_V6, HOST2_V6) if v6 else (HOST1, HOST2)
    rng = np.random.default_rng(port)
    packets, sequence = [], 1000
    for length in lengths:
        length = min(length, 1354)
        packets.append(tcp(rng.bytes(length), source, destination, ports=(port, 80), sequence=sequence))
        sequence += length
    return packets


@settings(max_examples=60, deadline=None)
@given(policies, weathers, sizes, st.booleans(), st.integers(0, 2**16))
def test_packets_arrive_as_they_were_and_once(chosen, weather, lengths, v6, seed):  # type: ignore[no-untyped-def]
    relay = Relay(chosen, weather, seed)
    sent = flow(lengths, 40001, v6)
    for packet in sent:
        relay.send(0, packet)
        relay.pass_time(0.0005)
    relay.pass_time(2.0)
    got = relay.delivered[1]
    assert not Counter(got) - Counter(sent), "delivered what was not sent, or twice"
    if not weather.loss and not weather.corrupt:
        assert Counter(got) == Counter(sent)
    patient = chosen.short.release is not None and weather.jitter_s < chosen.short.release.timeout_s
    if patient and not weather.loss and not weather.corrupt:
        assert got == sent, "with nothing lost and time enough, order is restored"
    assert relay.delivered[0] == []


@settings(max_examples=25, deadline=None)
@given(sizes, sizes, st.integers(0, 2**16))
def test_flows_do_not_mix(first, second, seed):  # type: ignore[no-untyped-def]
    relay = Relay(policy(RLC, 0.05), Weather(jitter_s=0.02, duplicate=0.1), seed)
    one, two = flow(first, 1111, False), flow(second, 2222, True)
    for index in range(max(len(one), len(two))):
        for packets in (one, two):
            if index < len(packets):
                relay.send(0, packets[index])
        relay.pass_time(0.0003)
    relay.pass_time(2.0)
    got = relay.delivered[1]
    assert [packet for packet in got if packet[0] >> 4 == 4] == one
    assert [packet for packet in got if packet[0] >> 4 == 6] == two


def test_repairs_bring_back_what_is_lost() -> None:
    relay = Relay(policy(RLC, 0.05, 1 << 40), Weather(loss=0.08, one_way=True), 3)
    sent = flow([1000] * 400, 5000, False)
    for packet in sent:
        relay.send(0, packet)
        relay.pass_time(0.0005)
    relay.pass_time(2.0)
    recovered = relay.cores[1].counters()["packets_recovered"]
    assert recovered > 10
    assert len(relay.delivered[1]) > 400 * (1 - 0.04)
    entry = next(one for one in relay.cores[1].flow_report(False) if one.side == "receiver")
    assert entry.recovered == recovered
    assert entry.lost == 400 - len(relay.delivered[1])
    assert entry.paths.keys() <= {str(stamp) for stamp in range(1, 9)}


def test_classes_ports_and_entropy() -> None:
    relay = Relay(policy(short_limit_bytes=3000), Weather(), 0)
    agent = relay.cores[0]
    out = []
    for packet in (tcp(flags=0x02), *flow([1000] * 6, 40000, False), tcp(flags=0x10)):
        agent.packet_from_host(packet, 0.0)
        out += agent.datagrams_to_send()
    classes = [class_of_dscp(one.tos >> 2) for one in out]
    control, short, long = TrafficClass.CONTROL, TrafficClass.SHORT, TrafficClass.LONG
    assert classes == [control, short, short, short, long, long, long, control]
    assert len({one.destination_port for one in out}) == 1, "one flow, one key"
    assert BASE_PORT <= out[0].destination_port < BASE_PORT + FLOW_KEYS
    assert len({one.source_port for one in out}) > 5, "sprayed"


def test_ports_that_are_used_again_begin_a_short_flow() -> None:
    agent = core(0)
    agent.set_policy(policy(short_limit_bytes=1500), 0.0)
    for packet in (tcp(flags=0x02), *flow([1000] * 3, 40000, False)):
        agent.packet_from_host(packet, 0.0)
    assert class_of_dscp(agent.datagrams_to_send()[-1].tos >> 2) is TrafficClass.LONG
    for packet in (tcp(flags=0x02), *flow([1000], 40000, False)):
        agent.packet_from_host(packet, 1.0)
    assert class_of_dscp(agent.datagrams_to_send()[-1].tos >> 2) is TrafficClass.SHORT


def test_the_flow_keys_are_all_used() -> None:
    agent = core(0)
    agent.set_policy(policy(), 0.0)
    for port in range(30000, 32000):
        agent.packet_from_host(tcp(b"x", ports=(port, 80)), 0.0)
    used = Counter(one.destination_port for one in agent.datagrams_to_send())
    assert len(used) == FLOW_KEYS
    assert max(used.values()) < 2.5 * 2000 / FLOW_KEYS


def test_ecn_goes_out_with_the_outer_header_and_comes_back() -> None:
    relay = Relay(policy(), Weather(), 0)
    for ecn in range(4):
        relay.send(0, udp(b"data", tos=0x20 | ecn, ports=(ecn, 9)))
    relay.pass_time(0.1)
    assert [packet[1] & 3 for packet in relay.delivered[1]] == [0, 1, 2, 3]
    agent = relay.cores[0]
    agent.packet_from_host(tcp(b"x" * 10, tos=2), 1.0)
    out = agent.datagrams_to_send()[0]
    assert out.tos & 3 == 2
    relay.cores[1].receive_datagram(out.data, UNDERLAY[0], 3, out.tos | 3, 1.0)
    assert relay.cores[1].packets_to_deliver() == [tcp(b"x" * 10, tos=3)]


# -- who may send what -------------------------------------------------------------------------------


def test_strangers_replays_and_old_sessions_get_nothing() -> None:
    sender, receiver = core(0), core(1)
    sender.packet_from_host(tcp(b"hello"), 0.0)
    out = sender.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, "10.0.9.9", 3, out.tos, 0.0)
    assert receiver.counters()["dropped_unknown_peer"] == 1
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, 0.0)
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, 0.1)
    assert receiver.packets_to_deliver() == [tcp(b"hello")]
    assert receiver.counters()["dropped_replayed"] == 1

    restarted = core(0, session=77)
    restarted.packet_from_host(tcp(b"again"), 1.0)
    out = restarted.datagrams_to_send()[0]
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, 1.0)
    assert receiver.packets_to_deliver() == []
    assert receiver.counters()["dropped_other_session"] == 1
    receiver.set_directory([PEERS[0].__class__("h1", UNDERLAY[0], [HOST1, HOST1_V6], 77), PEERS[1]], 1.1)
    receiver.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, 1.2)
    assert receiver.packets_to_deliver() == [tcp(b"again")], "heard as soon as the directory says so"


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
        fresh.receive_datagram(out.data, UNDERLAY[0], 3, out.tos, 1.0)
    fresh.handle_timer(1.021)
    assert fresh.packets_to_deliver() == packets[290:]


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
            # what somebody who knows the session may send: the header is sound, the rest is anything
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
            wire, UNDERLAY[0], data.draw(st.integers(0, 65535)), data.draw(st.integers(0, 255)), now
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
        receiver.receive_datagram(wire, UNDERLAY[0], 3, 0, 0.001)
    receiver.handle_timer(0.1)
    assert any(out.data[1] & 0x0F == Kind.FEEDBACK for out in receiver.datagrams_to_send())


def test_a_repair_cannot_smuggle_in_what_is_no_packet() -> None:
    receiver = core(1)
    receiver.set_policy(policy(RLC, 0.02), 0.0)
    number = 0

    def send(kind: Kind, body: bytes, position: int) -> None:
        nonlocal number
        header = Header(kind, TrafficClass.SHORT, SESSIONS[0], number, 0, 1, position, coded=True)
        receiver.receive_datagram(encode(header, body), UNDERLAY[0], 3, 0, 0.001)
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
        receiver.receive_datagram(wire, UNDERLAY[0], 3, 0, 0.001)
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


def test_nobody_there_is_said() -> None:
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


def test_what_is_too_large_is_told_or_cut() -> None:
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


# -- what is told ------------------------------------------------------------------------------------


def test_records_outlive_their_flows_until_they_are_reported() -> None:
    relay = Relay(policy(), Weather(), 0)
    for packet in flow([1000] * 10, 40000, False):
        relay.send(0, packet)
    relay.pass_time(200.0)
    for agent, side in zip(relay.cores, ("sender", "receiver"), strict=True):
        assert [entry.packets for entry in agent.flow_report(True) if entry.side == side] == [10]
        assert agent.flow_report(False) == []


def test_a_report_that_forgets_begins_anew() -> None:
    relay = Relay(policy(), Weather(), 0)
    packets = flow([1000] * 4, 40000, False)
    relay.send(0, packets[0])
    relay.pass_time(0.1)
    (entry,) = relay.cores[1].flow_report(False)
    assert (entry.side, entry.source, entry.destination_port, entry.packets) == ("receiver", HOST1, 80, 1)
    assert len(relay.cores[1].flow_report(True)) == 1
    assert relay.cores[1].flow_report(True) == []
    relay.send(0, packets[1])
    relay.pass_time(0.1)
    assert [one.packets for one in relay.cores[1].flow_report(True)] == [1]


def test_the_sender_learns_what_arrived() -> None:
    relay = Relay(policy(), Weather(loss=0.2, one_way=True), 1)
    for packet in flow([1000] * 300, 40000, False):
        relay.send(0, packet)
        relay.pass_time(0.001)
    relay.pass_time(5.0)
    told = relay.cores[0].counters()["lost_at_peers"]
    missing = 300 - len(relay.delivered[1])
    assert missing > 30
    assert abs(told - missing) <= 5, "but for what was lost at the very end"


def test_a_quiet_agent_has_nothing_to_do() -> None:
    relay = Relay(policy(RLC, 0.02), Weather(), 0)
    relay.send(0, tcp(b"x"))
    relay.pass_time(5.0)
    carried = relay.carried
    wakes = 0
    end = relay.now + 60
    while relay.now < end:
        relay.now = min(one.get_timer() for one in relay.cores)
        wakes += 1
        for one in relay.cores:
            one.handle_timer(relay.now)
    assert relay.carried == carried, "no chatter"
    assert wakes <= 130


def test_a_peer_that_was_out_of_one_directory_for_a_while_gets_packets_again() -> None:
    """Its channel was away for too long, and it went on: it knows the first numbers. A seed of the world found it."""
    relay = Relay(policy(), Weather(), seed=1)
    for number in range(50):
        relay.send(0, udp(number.to_bytes(4, "big")))
    relay.pass_time(1.0)
    relay.cores[0].set_directory(PEERS[:1], relay.now)
    relay.cores[0].set_directory(PEERS, relay.now)
    relay.send(0, udp(b"and another"))
    relay.pass_time(1.0)
    assert len(relay.delivered[1]) == 51
