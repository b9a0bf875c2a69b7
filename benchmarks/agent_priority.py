"""What priority by bytes sent and type costs an agent: a packet, and a flow that begins.

Two agents, one with thresholds and 1000 types' values and one without, send the same packets of one flow in turn,
in rounds of some milliseconds; the cost is the difference of the fastest quarter of rounds. Nothing leaves the
process.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

import numpy as np

from host_agent.core import AgentCore
from protocol.control import FlowTypes, Peer
from protocol.policy import ClassPolicy, PathSettings, Policy
from protocol.priority import PriorityPolicy, TypePriority

ROUNDS: Final = 81
PACKETS: Final = 400
VALUES: Final = 1000
_PAYLOAD: Final = 1000


def cost_us() -> dict[str, float]:
    """Return microseconds that priority adds to a packet and to the first packet of a flow, and what they take without
    it."""
    plain, typed = _agent(False), _agent(True)
    packet = _packet()
    result = {}
    for name, fresh in (("packet", False), ("flow", True)):
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(ROUNDS):
            some = [_renamed(packet, turn * PACKETS + (number if fresh else 0)) for number in range(PACKETS)]
            for core, seconds in zip((plain, typed), times, strict=True):
                start = time.perf_counter()
                for sent in some:
                    core.packet_from_host(sent, 0.0)
                seconds.append((time.perf_counter() - start) / PACKETS)
                core.datagrams_to_send()
        without, with_it = (statistics.quantiles(durations, n=4)[0] * 1e6 for durations in times)
        result[name], result[f"added to a {name}"] = without, with_it - without
    return result


def _agent(typed: bool) -> AgentCore:
    core = AgentCore("h1", 1, 1500, np.random.default_rng(0))
    core.set_directory(
        [Peer("h1", "10.0.0.1", ["10.128.1.1"], 1), Peer("h2", "10.0.0.2", ["10.128.1.2"], 2)], 0.0
    )
    class_policy = ClassPolicy(PathSettings("flow-hash"))
    thresholds = tuple(100_000 * step for step in range(1, 8))
    priority = PriorityPolicy("bytes-sent", thresholds, predicted=True) if typed else PriorityPolicy()
    core.set_policy(
        Policy(1, "bench", short=class_policy, long=class_policy, control=class_policy, priority=priority),
        0.0,
    )
    if typed:
        values = tuple(("10.128.1.1", str(port)) for port in range(1, VALUES + 1))
        core.set_flow_types(FlowTypes(1, ("source", "destination_port"), (TypePriority(values, thresholds),)))
    return core


def _packet() -> bytes:
    """Return a TCP segment from one agent to the other."""
    segment = bytes((0, 1, 0, 80)) + bytes(8) + bytes((0x50, 0x10)) + bytes(6)
    length = (20 + len(segment) + _PAYLOAD).to_bytes(2, "big")
    head = bytes((0x45, 0)) + length + bytes((0, 0, 0x40, 0, 64, 6, 0, 0, 10, 128, 1, 1, 10, 128, 1, 2))
    return head + segment + bytes(_PAYLOAD)


def _renamed(packet: bytes, source_port: int) -> bytes:
    """Return the same of another flow."""
    return packet[:20] + (source_port % 65536).to_bytes(2, "big") + packet[22:]
