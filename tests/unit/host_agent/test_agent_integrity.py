"""A hostile relay between two agents: the bytes that arrive are right or they do not arrive, never wrong ones.

Thousands of transfers go through real agents' cores, super-packets on the way in and on the way out, while the relay
flips bits, cuts, doubles, swaps, delays, loses and forges datagrams. A small reliable stream over them stands for TCP:
it sends again what was not acknowledged, and it trusts what it is given, for the device skips checksums.
"""

from __future__ import annotations

import heapq
import struct

import numpy as np
import pytest

from host_agent.core import AgentCore
from host_agent.inner_packet import look
from host_agent.offload import VNET_HEADER
from protocol.policy import CodingPolicy, Policy
from tests.unit.agent_relay import UNDERLAY, core, policy
from tests.unit.device_writes import joined
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, tcp

SIZE = 1354
TRANSFERS = 350
POLICIES = {
    "plain": policy(),
    "in order": policy(release_s=0.01),
    "rlc": policy(CodingPolicy(max_overhead=8.0, code="rlc", max_k=8), 0.01),
    "mds": policy(
        CodingPolicy(max_overhead=8.0, code="mds", redundancy="one-per-unit", max_k=4),
        0.01,
        short_limit_bytes=6000,
    ),
    "ldpc": policy(CodingPolicy(max_overhead=8.0, code="ldpc", max_k=12)),
    "xor": policy(CodingPolicy(max_overhead=8.0, code="xor", max_k=6), 0.01),
}


class Hostile:
    """Does something bad to about every fourth datagram. ``harmed``: how often it did what."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._kept: list[bytes] = []
        self.harmed: dict[str, int] = {}

    def carry(self, data: bytes) -> list[bytes]:
        """Return what comes of one datagram, in the order in which it goes on."""
        rng = self._rng
        deed = str(
            rng.choice(["flip", "flips", "cut", "longer", "twice", "lose", "old", "mix", "hold", "swap"])
        )
        if rng.random() >= 0.25:
            deed = "pass"
        self.harmed[deed] = self.harmed.get(deed, 0) + 1
        before, self._kept = self._kept, [*self._kept[-30:], data]
        broken = bytearray(data)
        if deed in ("flip", "flips"):
            for _ in range(1 if deed == "flip" else int(rng.integers(2, 40))):
                broken[int(rng.integers(len(broken)))] ^= 1 << int(rng.integers(8))
            return [bytes(broken)]
        if deed == "cut":
            return [data[: int(rng.integers(len(data)))]]
        if deed == "longer":
            return [data + rng.bytes(int(rng.integers(1, 50)))]
        if deed == "mix" and before:  # the front of one, the back of another
            other = before[int(rng.integers(len(before)))]
            at = int(rng.integers(min(len(data), len(other))))
            return [data[:at] + other[at:], data]
        if deed == "old" and before:
            return [data, before[int(rng.integers(len(before)))]]
        if deed == "swap" and before:
            return [data, before[-1]]
        return {"lose": [], "twice": [data, data], "hold": []}.get(deed, [data])


class Stream:
    """One transfer from host 0 to host 1 over a hostile relay, until all has arrived or *seconds* are over."""

    def __init__(self, seed: int, chosen: Policy) -> None:
        self.rng = np.random.default_rng(seed)
        self.relay = Hostile(self.rng)
        self.cores: list[AgentCore] = [core(0, seed=seed % 1000), core(1, seed=seed % 1000)]
        for one in self.cores:
            one.set_policy(chosen, 0.0)
        self.addresses = (HOST1_V6, HOST2_V6) if seed % 3 == 0 else (HOST1, HOST2)
        self.data = self.rng.bytes(int(self.rng.integers(1, 40_000)))
        self.first = int(self.rng.choice([1000, 2**32 - 3000]))
        self.got: dict[int, bytes] = {}
        self.acknowledged = 0
        self._flying: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def run(self, seconds: float = 30.0) -> bool:
        now, again = 0.0, 0.0
        while now < seconds:
            if now >= again:  # what was not acknowledged, as one super-packet
                again = now + 0.05
                self._send(0, self.data[self.acknowledged :], self.acknowledged, now)
            while self._flying and self._flying[0][0] <= now:
                _, _, target, data = heapq.heappop(self._flying)
                stamp = int(self.rng.integers(1, 9))
                self.cores[target].receive_datagram(data, UNDERLAY[1 - target], stamp, 0x20, now=now)
            for one in self.cores:
                if now >= one.get_timer():
                    one.handle_timer(now)
            self._collect(now)
            if self.acknowledged == len(self.data):
                return True
            now += 0.002
        return False

    def _send(self, host: int, payload: bytes, offset: int, now: float) -> None:
        source, destination = self.addresses[::-1] if host else self.addresses
        ports = (80, 40_000) if host else (40_000, 80)
        sequence = (self.first + offset) % 2**32
        packet = tcp(payload, source, destination, ports=ports, sequence=sequence, flags=0x18, partial=True)
        self.cores[host].super_packet_from_host(packet, SIZE, now)

    def _collect(self, now: float) -> None:
        for host, one in enumerate(self.cores):
            for out in one.datagrams_to_send():
                for data in self.relay.carry(out.data):
                    self._count += 1
                    at = now + float(self.rng.random()) * 0.004
                    heapq.heappush(self._flying, (at, self._count, 1 - host, data))
            for write in joined(one.packets_to_deliver()):
                self._take(host, write[VNET_HEADER.size :], now)

    def _take(self, host: int, packet: bytes, now: float) -> None:
        seen = look(packet)
        payload = packet[len(packet) - seen.payload :]
        if host == 0:  # an acknowledgement: how much there is
            assert len(payload) == 4
            self.acknowledged = max(self.acknowledged, struct.unpack("!I", payload)[0])
            assert self.acknowledged <= len(self.data), "what was never acknowledged"
            return
        sequence = int.from_bytes(packet[seen.transport + 4 : seen.transport + 8], "big")
        offset = (sequence - self.first) % 2**32
        assert payload == self.data[offset : offset + len(payload)], "wrong bytes"
        self.got[offset] = max(payload, self.got.get(offset, b""), key=len)
        end = 0
        for offset in sorted(self.got):  # pieces overlap, as segments were joined
            if offset <= end:
                end = max(end, offset + len(self.got[offset]))
        self._send(1, struct.pack("!I", end), 0, now)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_bytes_are_right_or_do_not_arrive(name: str) -> None:
    harmed: dict[str, int] = {}
    refused = recovered = done = 0.0
    for seed in range(TRANSFERS):
        stream = Stream(seed, POLICIES[name])
        done += stream.run()
        for deed, count in stream.relay.harmed.items():
            harmed[deed] = harmed.get(deed, 0) + count
        for one in stream.cores:
            counters = one.counters()
            refused += sum(
                counters.get(f"dropped_{why}", 0) for why in ("crc", "foreign", "version", "truncated")
            )
            recovered += counters.get("packets_recovered", 0)
    assert done == TRANSFERS, "what is sent again arrives at last"
    assert len(harmed) == 11
    assert min(harmed.values()) > 30, harmed
    damaged = sum(harmed[deed] for deed in ("flip", "flips", "cut", "longer"))
    assert refused >= damaged, "each one that was damaged was found"
    assert (recovered > 0) == (POLICIES[name].short.coding is not None)
