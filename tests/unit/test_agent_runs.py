"""Datagrams taken in by runs lead to what the same datagrams, taken in one by one, lead to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.core import AgentCore
from host_agent.inner_packet import look
from host_agent.segments import tcp_segments
from host_agent.wire import Arrived, Burst
from protocol.control import Impair
from protocol.datagram import Kind, decode, decode_feedback
from protocol.policy import CodingPolicy, Policy
from tests.unit.agent_relay import UNDERLAY, core, policy
from tests.unit.datapath_reference import runs
from tests.unit.inner_packets import HOST1_V6, HOST2_V6, ip, tcp, udp

POLICIES = [
    policy(),
    policy(release_s=0.004),
    policy(CodingPolicy(code="rlc", flush_s=0.003), 0.004),
    policy(short_limit_bytes=9000),
    policy(CodingPolicy(code="mds", max_k=8, redundancy="one-per-unit"), 0.004),
    policy(CodingPolicy(code="rlc", unit="window"), 0.004, short_limit_bytes=30_000),
    policy(CodingPolicy(code="mds", max_k=8, redundancy="paper", max_r=4), 0.004),
]


def datagrams(seed: int, chosen: Policy | None = None) -> list[Arrived]:
    """What host 0 sends: super-packets of two flows, and other packets between them."""
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
            for each in one.each() if isinstance(one, Burst) else [one]:
                tos = each.tos | 3 if rng.random() < 0.02 else each.tos
                out.append(Arrived(each.data, UNDERLAY[0], int(rng.integers(1, 9)), tos))
    return out


def heard(agent: AgentCore) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """What its feedback tells: receipts and losses."""
    receipts: list[tuple[int, int, int]] = []
    lost: list[tuple[int, int]] = []
    for out in agent.datagrams_to_send():
        assert not isinstance(out, Burst)
        header, body = decode(out.data)
        if header.kind == Kind.FEEDBACK:
            numbers, stamps, delays, losses, _ = decode_feedback(body)
            receipts += zip(numbers, stamps, delays, strict=True)
            lost += losses
    return receipts, lost


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    chosen=st.sampled_from(POLICIES),
    weather=st.sampled_from(["fair", "swapped", "lossy", "twice", "moved"]),
    calls=st.lists(st.integers(1, 64), min_size=1, max_size=8),
)
def test_runs_and_single_datagrams_lead_to_the_same(seed, chosen, weather, calls):  # type: ignore[no-untyped-def]
    arriving, rng = datagrams(seed, chosen), np.random.default_rng(seed)
    if weather == "swapped":
        for at in rng.integers(0, max(1, len(arriving) - 1), len(arriving) // 20):
            arriving[at : at + 2] = arriving[at : at + 2][::-1]
    elif weather == "moved" and len(arriving) > 9:  # a stretch comes later than what follows it
        one, two, three = sorted(rng.integers(0, len(arriving), 3).tolist())
        arriving[one:three] = arriving[two:three] + arriving[one:two]
    elif weather == "lossy":
        arriving = [one for one in arriving if rng.random() > 0.03]
    elif weather == "twice":
        arriving = [one for one in arriving for _ in range(1 + (rng.random() < 0.05))]
    single, many = core(1), core(1)
    now, at, turn = 0.05, 0, 0
    told: list[tuple[list[tuple[int, int, int]], list[tuple[int, int]]]] = [([], []), ([], [])]
    for agent in (single, many):
        agent.set_policy(chosen, 0.0)
    while at < len(arriving) or now < 1.2:
        call = arriving[at : at + calls[turn % len(calls)]]
        at, turn = at + len(call), turn + 1
        now += 0.0007 if call else 0.05
        for one in call:
            single.receive_datagram(*one, now)
        for item in runs(call):
            if len(item) == 4:
                many.receive_datagram(*item, now)
            else:
                many.receive_run(item, now)
        assert many.packets_to_deliver() == single.packets_to_deliver()
        for agent, (receipts, lost) in zip((single, many), told, strict=True):
            if now >= agent.get_timer():
                agent.handle_timer(now)
            more = heard(agent)
            receipts += more[0]
            lost += more[1]
    assert many.packets_to_deliver() == single.packets_to_deliver()
    assert told[1] == told[0]
    first, second = single.counters(), many.counters()
    for counters in (first, second):
        counters.pop("feedbacks_sent", None)  # a run may fill one that a datagram alone would have closed
    assert second == first
    assert many.flow_report(False) == single.flow_report(False)


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
            rows, last = tcp_segments(packet, look(packet), 1386)
            for row in rows[:-1]:
                cut.packet_from_host(row.tobytes(), now)
            cut.packet_from_host(rows[-1, :last].tobytes(), now)
            sent = [
                each
                for one in whole.datagrams_to_send()
                for each in (one.each() if isinstance(one, Burst) else [one])
            ]
            assert sent == cut.datagrams_to_send()
        sequence += size
    for agent in (whole, cut):
        agent.handle_timer(now + 0.1)
    assert whole.datagrams_to_send() == cut.datagrams_to_send(), "what is left of the last unit"
    assert whole.counters() == cut.counters()
    assert whole.flow_report(False) == cut.flow_report(False)
    (one,), (other,) = whole.send_flows, cut.send_flows
    assert one.unacked == other.unacked
    assert one.payload == other.payload


def test_runs_are_harmed_on_purpose_as_datagrams_are() -> None:
    agents = [core(1, seed=3), core(1, seed=3)]
    for agent in agents:
        agent.set_policy(policy(), 0.0)
        agent.set_impairment(Impair(0.1, 0.2, 0.004, 0.1, 0.1))
    arriving = datagrams(5)
    for one in arriving:
        agents[0].receive_datagram(*one, 0.05)
    for item in runs(arriving):
        assert len(item) == 12
        agents[1].receive_run(item, 0.05)
    for agent in agents:
        agent.handle_timer(0.06)
    delivered = [agent.packets_to_deliver() for agent in agents]
    assert delivered[0] == delivered[1]
    assert agents[0].counters() == agents[1].counters()
    assert agents[0].counters()["dropped_crc"] > 0


@pytest.mark.parametrize("stranger", [True, False])
def test_runs_of_strangers_and_of_old_sessions_are_dropped(stranger: bool) -> None:
    agent = core(1)
    for item in runs(datagrams(1)):
        assert len(item) == 12
        session = item[4] if stranger else item[4] + 1
        agent.receive_run(("10.0.9.9" if stranger else item[0], *item[1:4], session, *item[5:]), 0.1)
    reason = "unknown_peer" if stranger else "other_session"
    assert agent.counters()[f"dropped_{reason}"] == len(datagrams(1))
    assert agent.packets_to_deliver() == []


def test_a_run_across_the_end_of_the_numbers() -> None:
    agent = core(1)
    agent.set_policy(policy(), 0.0)
    bodies = [tcp(bytes([index]) * 50, sequence=50 * index) for index in range(20)]
    key = look(bodies[0]).flow
    for first, some in ((2**32 - 10, bodies[:2]), (2**32 - 8, bodies[2:])):
        run = (UNDERLAY[0], 0x20, 1, 1, 0x11111111, first, 9, 4, first, key, [3] * len(some), some)
        agent.receive_run(run, 0.1)
    assert agent.packets_to_deliver() == bodies
    agent.receive_run(run, 0.2)
    assert agent.packets_to_deliver() == []
    assert agent.counters()["dropped_replayed"] == 18
    assert agent.flow_report(False)[0].packets == 20
