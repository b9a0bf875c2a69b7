"""Lone packets over two real agents pass in native code, and the core decides afterwards what was done."""

from __future__ import annotations

import sys

import pytest

from benchmarks.agent_pair import HOSTS, OVERLAY, AgentPair, simple_policy, wait_until
from protocol.control import Impair
from protocol.policy import CodingPolicy

PINGS = 60
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


@pytest.mark.parametrize("kind", POLICIES)
def test_lone_packets_pass_and_nothing_differs(kind: str) -> None:
    with AgentPair(POLICIES[kind]) as pair:

        def totals(name: str) -> list[float]:
            return [pair.counters(host).get(name, -1.0) for host in (0, 1)]

        def many_passed() -> bool:
            """Of more and more pings: where agents get no processor for a while, several come at once."""
            pair.run(0, ["ping", "-c", str(PINGS), "-i", "0.01", OVERLAY[1]])
            return min(totals("lone_sent") + totals("lone_received")) > PINGS * 0.2

        wait_until(
            many_passed,
            60,
            lambda: f"many pings passed alone: {totals('lone_sent')}, {totals('lone_received')}",
        )
        before = totals("packets_sent")
        for setting in (Impair(), Impair(loss=0.02, reorder=0.05, reorder_delay_s=0.002, duplicate=0.02)):
            for host in HOSTS:
                pair.server.impair(host, setting, 60.0)
            server = pair.popen(1, [sys.executable, "-c", ANSWERER], stdout=-1)
            assert server.stdout is not None
            server.stdout.readline()
            assert "all answered" in pair.run(0, [sys.executable, "-c", ASKER])
            server.wait(60)
        wait_until(
            lambda: all(
                now >= then + 2 * QUESTIONS for now, then in zip(totals("packets_sent"), before, strict=True)
            ),
            60,
            lambda: f"{2 * QUESTIONS} questions were counted: {totals('packets_sent')}",
        )
        assert totals("lone_differing") == [0, 0]
