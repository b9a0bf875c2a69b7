"""Two agents' cores with bad weather between them: packets arrive as they were, once, and in order where it is said."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.policy import CodingPolicy
from protocol.underlay import BASE_PORT, FLOW_KEYS, TrafficClass, class_of_dscp
from tests.unit.agent_relay import PEERS, RLC, UNDERLAY, Relay, Weather, core, flow, policy
from tests.unit.inner_packets import HOST1, tcp, udp

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
    newest = max(map(sent.index, relay.delivered[1]))  # what is lost behind it leaves no gap
    assert entry.lost == newest + 1 - len(relay.delivered[1])
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
    relay.cores[1].receive_datagram(out.data, UNDERLAY[0], 3, out.tos | 3, now=1.0)
    assert relay.cores[1].packets_to_deliver() == [tcp(b"x" * 10, tos=3)]


# -- what is reported --------------------------------------------------------------------------------


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
    reported = relay.cores[0].counters()["lost_at_peers"]
    missing = 300 - len(relay.delivered[1])
    assert missing > 30
    assert abs(reported - missing) <= 5, "but for what was lost at the very end"


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
