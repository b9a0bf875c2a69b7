"""What one peer can make an agent keep is bounded over all of its flows, and costs no other anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from host_agent.core import AgentCore
from protocol.control import Peer
from protocol.policy import CodingPolicy
from tests.unit.agent_relay import MTU, SESSIONS, UNDERLAY, policy
from tests.unit.inner_packets import HOST1, HOST2, HOST2_V6, udp

ROOT = Path(__file__).resolve().parents[3]
PEERS = 200
BUDGET = 2 << 20
"""The least that a peer has, which it gets where there are so many."""
FLOWS, PACKETS, SIZE = 60, 300, 1300
CODED = policy(CodingPolicy(code="xor", max_k=8), 0.0, short_limit_bytes=1 << 30)
IN_ORDER = policy(None, 3.0)


def directory() -> list[Peer]:
    ends = [
        Peer("h1", UNDERLAY[0], [HOST1], SESSIONS[0]),
        Peer("h2", UNDERLAY[1], [HOST2, HOST2_V6], SESSIONS[1]),
    ]
    return ends + [
        Peer(f"x{number}", f"10.9.0.{number}", [f"10.129.0.{number}"], number) for number in range(1, PEERS)
    ]


def two(chosen: object = CODED) -> tuple[AgentCore, AgentCore]:
    cores = []
    for host in (0, 1):
        core = AgentCore(f"h{host + 1}", SESSIONS[host], MTU, np.random.default_rng(host))
        core.set_policy(chosen, 0.0)  # type: ignore[arg-type]
        core.set_directory(directory(), 0.0)
        cores.append(core)
    return cores[0], cores[1]


def flood(sender: AgentCore, receiver: AgentCore, flows: int = FLOWS) -> int:
    """Send many flows at once; return how many packets came out."""
    delivered, now = 0, 1.0
    for number in range(PACKETS):
        now += 0.001
        for flow in range(flows):
            packet = udp(number.to_bytes(4, "big") + bytes(SIZE), HOST1, HOST2, ports=(2000 + flow, 80))
            sender.packet_from_host(packet, now)
        for out in sender.datagrams_to_send():
            receiver.receive_datagram(out.data, UNDERLAY[0], out.source_port, out.tos, now=now)
        delivered += len(receiver.packets_to_deliver())
    return delivered


def test_a_peer_keeps_no_more_than_its_share_and_all_packets_come_out() -> None:
    sender, receiver = two()
    assert flood(sender, receiver) == FLOWS * PACKETS
    counters = receiver.counters()
    assert 0 < counters["kept_for_peers_bytes"] <= BUDGET
    assert counters["decoders_over_budget"] > 0
    assert FLOWS * PACKETS * SIZE > 10 * BUDGET


def test_a_few_flows_are_left_alone() -> None:
    sender, receiver = two()
    assert flood(sender, receiver, 2) == 2 * PACKETS
    counters = receiver.counters()
    assert "decoders_over_budget" not in counters
    assert "flows_over_budget" not in counters


def test_packets_that_wait_for_others_go_out_where_they_are_too_many() -> None:
    """The first packet of each flow is withheld: everything behind it waits, up to the budget."""
    sender, receiver = two(IN_ORDER)
    delivered, withheld, now = 0, set(), 1.0
    for _ in range(PACKETS):
        now += 0.001
        for flow in range(FLOWS):
            sender.packet_from_host(udp(bytes(SIZE), HOST1, HOST2, ports=(2000 + flow, 80)), now)
            for out in sender.datagrams_to_send():
                if flow in withheld:
                    receiver.receive_datagram(out.data, UNDERLAY[0], out.source_port, out.tos, now=now)
                withheld.add(flow)
        delivered += len(receiver.packets_to_deliver())
        assert receiver.counters()["kept_for_peers_bytes"] <= BUDGET
    assert receiver.counters()["flows_over_budget"] > 0
    receiver.handle_timer(now + 10.0)
    delivered += len(receiver.packets_to_deliver())
    assert delivered == FLOWS * (PACKETS - 1)


def test_what_is_charged_goes_when_flows_and_peers_go() -> None:
    sender, receiver = two()
    flood(sender, receiver, 5)
    assert receiver.counters()["kept_for_peers_bytes"] > 0
    receiver.handle_timer(1000.0)
    receiver.handle_timer(1002.0)
    assert receiver.counters()["kept_for_peers_bytes"] == 0
    sender, receiver = two()
    flood(sender, receiver, 5)
    receiver.set_directory([directory()[1]], 2.0)
    assert receiver.counters()["kept_for_peers_bytes"] == 0


@pytest.mark.slow
def test_the_process_grows_by_no_more() -> None:
    """As the system sees it: what a peer sends is 23 MB here, of which 2 MiB may be kept."""
    program = """
import resource
from tests.unit.host_agent.test_agent_budget import flood, two
sender, receiver = two()
flood(sender, receiver, 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
flood(sender, receiver)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 14_000, f"grew by {done.stdout.strip()} KiB"
