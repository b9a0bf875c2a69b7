"""What reaches a host agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from host_agent.core import AgentCore
from protocol.control import Peer
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy
from tests.fuzz.target import Target
from tests.unit.host_agent.test_agent_core import tcp


class Datagrams(Target):
    """What reaches an agent: datagrams of the underlay, from any sender, and packets of its own host."""

    A: Final = Peer("a", "10.0.1.1", ["10.128.1.1"], 11, "l1")
    B: Final = Peer("b", "10.0.2.1", ["10.128.2.1"], 22, "l2")

    def __init__(self) -> None:
        sender = self._core(self.A)
        packets = [tcp(number, 700 + number) for number in range(20)]
        for number, packet in enumerate(packets):
            sender.packet_from_host(packet, number * 1e-3)
        sender.handle_timer(1.0)
        datagrams = [one.data for one in sender.datagrams_to_send()]
        receiver = self._core(self.B)
        for data in datagrams:
            receiver.receive_datagram(data, self.A.underlay_ip, 40_000, 0, now=1.0)
        receiver.handle_timer(2.0)
        feedback = [one.data for one in receiver.datagrams_to_send()]
        self.samples = (*datagrams, *feedback, *packets)

    def _core(self, peer: Peer) -> AgentCore:
        core = AgentCore(peer.host, peer.session, 1400, np.random.default_rng(1))
        coded = ClassPolicy(PathSettings("spray"), CodingPolicy(max_overhead=8.0), ReleasePolicy(0.02))
        core.set_policy(Policy(version=1, scheme="fuzz", packet_time_s=0.001, short=coded), 0.0)
        core.set_directory([self.A, self.B], 0.0)
        return core

    def run(self, messages: Sequence[bytes]) -> None:
        core, now = self._core(self.B), 1.0
        for data in messages:
            now += 0.003
            core.receive_datagram(data, self.A.underlay_ip, 40_000 + len(data) % 7, len(data) & 3, now=now)
            core.packet_from_host(data, now)
            core.super_packet_from_host(data, 1 + len(data) % 1400, now)
            core.handle_timer(now)
            delivered = core.packets_to_deliver()
            assert sum(map(len, delivered)) <= 64 * sum(map(len, messages))
            core.datagrams_to_send()
