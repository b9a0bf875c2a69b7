"""What an agent reports of its peers is bounded: the controller ends the channel of one with too many counters."""

from __future__ import annotations

import numpy as np

from controller.agents.session import LONGEST_COUNTER, MOST_COUNTERS
from controller.schemes.loader import load
from controller.schemes.policy import policy_for
from host_agent.core import MOST_BLOCKING, AgentCore
from protocol.control import Peer
from tests.unit.datagram_reference import Kind, encode_feedback, encode_fields
from tests.unit.inner_packets import HOST1, tcp

PEERS = [
    Peer(
        f"h{number}".ljust(63, "x"),
        f"10.0.{number // 250}.{1 + number % 250}",
        [address],
        number,
        f"l{number}",
    )
    for number in range(700)
    for address in [HOST1 if number == 0 else f"10.129.{number // 250}.{1 + number % 250}"]
]


def test_blocking_probabilities_of_many_peers_are_those_of_the_largest() -> None:
    us, last = PEERS[0], PEERS[-1]
    core = AgentCore(us.host, us.session, 1426, np.random.default_rng(1))
    core.set_policy(policy_for(load("caps"), 0.001, 1), 0.0)
    core.set_directory(PEERS, 0.0)
    core.packet_from_host(tcp(b"", HOST1, last.overlay[0], flags=2), 0.0)
    for turn in range(8):  # the only path to the last one is blocked
        for _ in range(8):
            core.packet_from_host(tcp(b"x" * 100, HOST1, last.overlay[0]), 0.0)
        numbers = range(8 * turn, 8 * turn + 8)
        delays = [50 if turn == 0 else 90_000] * 8
        body = encode_feedback(numbers, [1] * 8, delays, [], 0)
        feedback = encode_fields(Kind.FEEDBACK, 3, last.session, turn, 0, 0, 0, body)
        core.receive_datagram(feedback, last.underlay_ip, 1, 0, now=0.001 * turn)
    assert len(core.blocking_probability(0.1)) == len(PEERS) - 1
    gauges = core.blocking_gauges(0.1)
    assert len(gauges) == MOST_BLOCKING
    assert gauges[f"blocking_probability.{last.host}"] == max(gauges.values()) > min(gauges.values())
    assert max(map(len, gauges)) <= LONGEST_COUNTER
    assert len(core.counters() | gauges) < MOST_COUNTERS - 100, "and those of the shell"
