"""Lone packets over two real agents: carried by compiled code, and by Python while they are harmed on purpose."""

from __future__ import annotations

import sys

import pytest

from benchmarks.agent_pair import HOSTS, OVERLAY, AgentPair, simple_policy, wait_until
from protocol.control import Impair
from protocol.policy import CodingPolicy

QUESTIONS = 200
ANSWERER = f"""
import socket
listener = socket.create_server(({OVERLAY[1]!r}, 7003))
print("listening", flush=True)
connection, _ = listener.accept()
while question := connection.recv(4096):
    connection.sendall(question[::-1])
"""
ASKER = f"""
import socket
one = socket.create_connection(({OVERLAY[1]!r}, 7003), 60)
one.settimeout(60)
for number in range({QUESTIONS}):
    question = number.to_bytes(4, "big") * 50
    one.sendall(question)
    answer = b""
    while len(answer) < len(question):
        answer += one.recv(4096)
    assert answer == question[::-1], number
print("all answered")
"""
POLICIES = {
    "plain": simple_policy(1),
    "coded": simple_policy(
        1, coding=CodingPolicy(max_overhead=8.0), release_s=0.02, short_limit_bytes=1 << 40
    ),
}


def converse(pair: AgentPair) -> None:
    """Ask and answer over one TCP connection, each question after the answer before it."""
    server = pair.popen(1, [sys.executable, "-S", "-c", ANSWERER], stdout=-1)
    assert server.stdout is not None
    server.stdout.readline()
    assert "all answered" in pair.run(0, [sys.executable, "-S", "-c", ASKER])
    server.wait(60)


@pytest.mark.parametrize("kind", POLICIES)
def test_lone_packets_pass_with_and_without_the_interpreter(kind: str) -> None:
    with AgentPair(POLICIES[kind]) as pair:

        def least() -> float:
            # What was lost on purpose is rebuilt of repairs, and not received, where packets are coded.
            ways = (("packets_sent",), ("packets_received", "packets_recovered"))
            return min(
                sum(pair.counters(host).get(name, 0.0) for name in way) for host in (0, 1) for way in ways
            )

        settings = (Impair(), Impair(loss=0.02, reorder=0.05, reorder_delay_s=0.002, duplicate=0.02))
        for setting in settings:
            for host in HOSTS:
                pair.server.impair(host, setting, 60.0)
            converse(pair)
        wanted = QUESTIONS * len(settings)
        wait_until(lambda: least() >= wanted, 60, lambda: f"{wanted} packets were counted: {least()}")
