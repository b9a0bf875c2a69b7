"""A super-packet leaves as its segments would one by one, and what arrives is taken by number and session."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.underlay_datagrams import Arrived
from protocol.control import Peer
from protocol.policy import CodingPolicy, Policy
from tests.unit.agent_relay import PEERS, SESSIONS, UNDERLAY, core, policy
from tests.unit.datagram_reference import Kind, encode_fields
from tests.unit.device_writes import segments_of
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2_V6, ip, tcp, udp

POLICIES = [
    policy(),
    policy(release_s=0.004),
    policy(CodingPolicy(max_overhead=8.0, code="rlc", flush_s=0.003), 0.004),
    policy(short_limit_bytes=9000),
    policy(CodingPolicy(max_overhead=8.0, code="mds", max_k=8, redundancy="one-per-unit"), 0.004),
    policy(CodingPolicy(max_overhead=8.0, code="rlc", unit="window"), 0.004, short_limit_bytes=30_000),
    policy(CodingPolicy(max_overhead=8.0, code="mds", max_k=8, redundancy="paper", max_r=4), 0.004),
]


def datagrams(seed: int, chosen: Policy | None = None) -> list[Arrived]:
    """Return what host 0 sends: super-packets of two flows, and other packets between them."""
    rng, agent = np.random.default_rng(seed), core(0, seed=seed)
    agent.set_policy(chosen or policy(short_limit_bytes=20_000), 0.0)
    out: list[Arrived] = []
    sequences = [0, 0]
    for turn in range(int(rng.integers(1, 25))):
        flow = int(rng.integers(4))
        if flow < 2:
            size = int(rng.integers(1, 30_000))
            whole = tcp(rng.bytes(size), ports=(100 + flow, 80), sequence=sequences[flow], partial=True)
            sequences[flow] += size
            agent.super_packet_from_host(whole, 1386, turn * 0.001)
        else:
            others = [udp(b"u"), tcp(flags=0x11), ip(1, b"echo 1234"), tcp(b"6" * 90, HOST1_V6, HOST2_V6)]
            agent.packet_from_host(others[int(rng.integers(4))], turn * 0.001)
        for one in agent.datagrams_to_send():
            tos = one.tos | 3 if rng.random() < 0.02 else one.tos
            out.append(Arrived(one.data, UNDERLAY[0], int(rng.integers(1, 9)), tos))
    return out


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    chosen=st.sampled_from(POLICIES),
    sizes=st.lists(
        st.tuples(st.integers(4200, 60_000), st.sampled_from([0x10, 0x18])), min_size=1, max_size=6
    ),
    again=st.booleans(),
)
def test_super_packets_leave_as_their_segments_would(seed, chosen, sizes, again):  # type: ignore[no-untyped-def]
    """The same datagrams in the same order, the same repairs among them, and the same memory of them."""
    rng = np.random.default_rng(seed)
    whole, cut = core(0, seed=3), core(0, seed=3)
    for agent in (whole, cut):
        agent.set_policy(chosen, 0.0)
    sequence, now = 2**32 - 20_000, 0.0
    for size, flags in sizes:
        packet = tcp(rng.bytes(size), sequence=sequence % 2**32, flags=flags, partial=True)
        for _ in range(1 + again):
            now += 0.001
            whole.super_packet_from_host(packet, 1386, now)
            for segment in segments_of(packet, 1386):
                cut.packet_from_host(segment, now)
            assert whole.datagrams_to_send() == cut.datagrams_to_send()
        sequence += size
    for agent in (whole, cut):
        agent.handle_timer(now + 0.1)
    assert whole.datagrams_to_send() == cut.datagrams_to_send(), "what is left of the last unit"
    assert whole.counters() == cut.counters()
    assert whole.flow_report(False) == cut.flow_report(False)
    assert whole.blocking_probability(now) == cut.blocking_probability(now)


@pytest.mark.parametrize("foreign", [True, False])
def test_datagrams_of_unknown_senders_and_of_old_sessions_are_dropped(foreign: bool) -> None:
    agent, arriving = core(1), datagrams(1)
    if not foreign:
        agent.set_directory([Peer("h1", UNDERLAY[0], [HOST1], SESSIONS[0] + 1), PEERS[1]], 0.0)
    for one in arriving:
        agent.receive_datagram(one.data, "10.0.9.9" if foreign else one.underlay_ip, 3, one.tos, now=0.1)
    reason = "unknown_peer" if foreign else "other_session"
    assert agent.counters()[f"dropped_{reason}"] == len(arriving)
    assert agent.packets_to_deliver() == []


def test_numbers_and_positions_go_on_across_the_end_of_32_bits() -> None:
    agent = core(1)
    agent.set_policy(policy(), 0.0)
    bodies = [tcp(bytes([index]) * 50, sequence=50 * index) for index in range(20)]
    first = 2**32 - 10
    sent = [
        encode_fields(
            Kind.SOURCE, 1, SESSIONS[0], (first + index) % 2**32, 9, 4, (first + index) % 2**32, body
        )
        for index, body in enumerate(bodies)
    ]
    for data in sent:
        agent.receive_datagram(data, UNDERLAY[0], 3, 0x20, now=0.1)
    assert agent.packets_to_deliver() == bodies
    for data in sent[2:]:
        agent.receive_datagram(data, UNDERLAY[0], 3, 0x20, now=0.2)
    assert agent.packets_to_deliver() == []
    assert agent.counters()["dropped_replayed"] == 18
    assert agent.flow_report(False)[0].packets == 20
