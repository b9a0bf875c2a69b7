"""Two agent cores and bad weather between them: loss, reordering, duplicates. Plain data, a made-up clock."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from host_agent.core import AgentCore
from protocol.control import Peer
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, tcp

MTU = 1426
UNDERLAY = ("10.0.1.1", "10.0.1.2")
SESSIONS = (0x11111111, 0x22222222)
PEERS = [
    Peer("h1", UNDERLAY[0], [HOST1, HOST1_V6], SESSIONS[0]),
    Peer("h2", UNDERLAY[1], [HOST2, HOST2_V6], SESSIONS[1]),
]
RLC = CodingPolicy(max_overhead=8.0, code="rlc", flush_s=0.003)


def policy(
    coding: CodingPolicy | None = None,
    release_s: float | None = None,
    short_limit_bytes: int = 100_000,
    version: int = 1,
) -> Policy:
    release = None if release_s is None else ReleasePolicy(release_s)
    spray = PathSettings("spray")
    return Policy(
        version=version,
        scheme="relay",
        short_limit_bytes=short_limit_bytes,
        short=ClassPolicy(spray, coding, release),
        long=ClassPolicy(spray, None, release),
        control=ClassPolicy(spray),
    )


def core(host: int, session: int | None = None, seed: int = 0) -> AgentCore:
    """Return the agent of host 0 or 1, with directory and without policy."""
    agent = AgentCore(f"h{host + 1}", session or SESSIONS[host], MTU, np.random.default_rng(seed + host))
    agent.set_directory(PEERS, 0.0)
    return agent


def flow(lengths: list[int], port: int, v6: bool) -> list[bytes]:
    """Return TCP segments with a payload that is different everywhere."""
    source, destination = (HOST1_V6, HOST2_V6) if v6 else (HOST1, HOST2)
    rng = np.random.default_rng(port)
    packets, sequence = [], 1000
    for length in lengths:
        length = min(length, 1354)
        packets.append(tcp(rng.bytes(length), source, destination, ports=(port, 80), sequence=sequence))
        sequence += length
    return packets


@dataclass
class Weather:
    """Shares and seconds, of what lies between."""

    loss: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    jitter_s: float = 0.0
    delay_s: float = 0.001
    one_way: bool = False
    """Nothing is lost on the way to host 0."""


class Relay:
    """Carries datagrams between two cores until all is quiet. ``delivered`` holds what each host got, in order."""

    def __init__(self, chosen: Policy, weather: Weather, seed: int) -> None:
        self.cores = [core(0, seed=seed), core(1, seed=seed)]
        self.weather = weather
        self.rng = np.random.default_rng(seed)
        self.now = 0.0
        self.delivered: tuple[list[bytes], list[bytes]] = ([], [])
        self.carried = 0
        self._count = 0
        self._flying: list[tuple[float, int, int, bytes, int, int]] = []
        for one in self.cores:
            one.set_policy(chosen, 0.0)

    def send(self, host: int, packet: bytes) -> None:
        self.cores[host].packet_from_host(packet, self.now)
        self._collect()

    def pass_time(self, seconds: float) -> None:
        """Let everything that is due within that time happen."""
        end = self.now + seconds
        while True:
            due = [min(one.get_timer() for one in self.cores), self._flying[0][0] if self._flying else end]
            self.now = max(self.now, min(due))
            if self.now >= end:
                self.now = end
                return
            while self._flying and self._flying[0][0] <= self.now:
                _, _, target, data, source_port, tos = heapq.heappop(self._flying)
                self.cores[target].receive_datagram(
                    data, UNDERLAY[1 - target], source_port, tos, now=self.now
                )
            for one in self.cores:
                one.handle_timer(self.now)
                assert one.get_timer() > self.now, "a timer that is due for ever would spin"
            self._collect()

    def _collect(self) -> None:
        for host, one in enumerate(self.cores):
            self.delivered[host].extend(one.packets_to_deliver())
            for out in one.datagrams_to_send():
                self.carried += 1
                assert out.underlay_ip == UNDERLAY[1 - host]
                self._launch(1 - host, out.data, out.source_port, out.tos)

    def _launch(self, target: int, data: bytes, source_port: int, tos: int) -> None:
        weather, rng = self.weather, self.rng
        if rng.random() < weather.loss and not (weather.one_way and target == 0):
            return
        for _ in range(2 if rng.random() < weather.duplicate else 1):
            carried = data
            if rng.random() < weather.corrupt:
                damaged = bytearray(data)
                damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
                carried = bytes(damaged)
            self._count += 1
            at = self.now + weather.delay_s + float(rng.random()) * weather.jitter_s
            stamp = 1 + int(rng.integers(8))
            heapq.heappush(self._flying, (at, self._count, target, carried, stamp, tos))
