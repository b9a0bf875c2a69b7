"""Latency of short flows between two host agents over slow access links, with coding and without."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from benchmarks.agent_pair import INTERFACE, OVERLAY, AgentPair
from benchmarks.figures import Figure

LATENCY_GOAL_MS: Final = 0.2
ACCESS_MBPS: Final = 20
MESSAGES: Final = 100
PACKET_BYTES: Final = 1300
MESSAGE_BYTES: Final = 13_000
"""Ten packets: a short flow in one window."""

_READER: Final = """
import socket, sys, time
listener = socket.create_server((sys.argv[1], 7000))
print("listening", flush=True)
connection, _ = listener.accept()
message, took = int(sys.argv[2]), []
for _ in range(int(sys.argv[3])):
    data = connection.recv(message, socket.MSG_WAITALL)
    took.append(time.monotonic_ns() - int.from_bytes(data[:8], "big"))
print(*took)
"""
_WRITER: Final = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 7000))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
rest = bytes(int(sys.argv[2]) - 8)
for _ in range(int(sys.argv[3])):
    connection.sendall(time.monotonic_ns().to_bytes(8, "big") + rest)
    time.sleep(0.03)
"""


def short_flows(agents: AgentPair, use: Callable[[bool], None], rounds: int) -> dict[str, Figure]:
    """Return the medians of *rounds* turns, in ms, and what coding adds. use: has the pair code its flows, or not."""
    for host in range(2):
        shape = f"tc qdisc add dev {INTERFACE} root tbf rate {ACCESS_MBPS}mbit burst 3200 limit 400000"
        agents.run(host, shape.split())
    sizes = {"packet": PACKET_BYTES, "message": MESSAGE_BYTES}
    took: dict[tuple[str, bool], list[float]] = {}
    for _ in range(rounds):
        for coded in (False, True):
            use(coded)
            for name, size in sizes.items():
                took.setdefault((name, coded), []).extend(_messages(agents, size))
    figures: dict[str, Figure] = {}
    for name in sizes:
        uncoded, coded_ms = statistics.median(took[name, False]), statistics.median(took[name, True])
        goal = LATENCY_GOAL_MS if name == "packet" else None
        figures[f"{name}_uncoded"] = Figure(uncoded, "ms")
        figures[f"{name}_coded"] = Figure(coded_ms, "ms")
        figures[f"{name}_added"] = Figure(coded_ms - uncoded, "ms", goal)
    return figures


def _messages(pair: AgentPair, size: int) -> list[float]:
    """Return milliseconds that each message of *size* bytes took."""
    numbers = [str(size), str(MESSAGES)]
    reader = pair.popen(
        1, [sys.executable, "-c", _READER, OVERLAY[1], *numbers], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    pair.run(0, [sys.executable, "-c", _WRITER, OVERLAY[1], *numbers])
    return [int(value) / 1e6 for value in reader.communicate(timeout=60)[0].split()]
