"""What authenticated datagrams cost two agents' cores: microseconds a packet, beside the same without."""

from __future__ import annotations

import struct
import time
from typing import Final

import numpy as np

from benchmarks.figures import Figure
from controller.agents.datagram_keys import PairKeys
from host_agent.core import AgentCore
from protocol.control import Peer

BODY_BYTES: Final = 1400
SMALL_BYTES: Final = 60
PACKETS: Final = 512
ROUNDS: Final = 40
_MTU: Final = 1426
_UNDERLAY: Final = ("10.0.1.1", "10.0.1.2")
_OVERLAY: Final = ("10.128.1.1", "10.128.2.1")
_SECRET: Final = "of this benchmark alone"


def figures() -> dict[str, Figure]:
    """Return the cost of both ends together, for full packets and for small ones; the least of many rounds each."""
    result = {}
    for name, size in (("1400_b", BODY_BYTES), ("60_b", SMALL_BYTES)):
        plain, keyed = _pair(authenticated=False), _pair(authenticated=True)
        times: dict[str, list[float]] = {"plain": [], "keyed": []}
        for _ in range(ROUNDS):  # in turn, so that what else the machine does is in both
            times["plain"].append(_carry_us(plain, size))
            times["keyed"].append(_carry_us(keyed, size))
        least = min(times["plain"])
        result[f"cores_{name}"] = Figure(least, "us a packet, both ends, without a network")
        result[f"authentication_{name}"] = Figure(min(times["keyed"]) - least, "us a packet more, both ends")
    return result


def _pair(*, authenticated: bool) -> tuple[AgentCore, AgentCore]:
    peers = [Peer(f"h{host}", _UNDERLAY[host], [_OVERLAY[host]], host + 1) for host in range(2)]
    keys = PairKeys(_SECRET, 0.0, 0.0)
    cores = []
    for host, peer in enumerate(peers):
        core = AgentCore(peer.host, peer.session, _MTU, np.random.default_rng(host))
        core.set_directory(peers, 0.0)
        if authenticated:
            core.set_keys(keys.of_host(_UNDERLAY[host], _UNDERLAY, 0.0))
        cores.append(core)
    return cores[0], cores[1]


def _carry_us(cores: tuple[AgentCore, AgentCore], size: int) -> float:
    """Return the time that a packet takes from one core's host to the other's, on average."""
    sender, receiver = cores
    packet = _packet(size)
    taken = 0
    began = time.perf_counter()
    for _ in range(PACKETS):
        sender.packet_from_host(packet, 0.0)
        for datagram in sender.datagrams_to_send():
            receiver.receive_datagram(datagram.data, _UNDERLAY[0], datagram.source_port, 0, now=0.0)
        taken += len(receiver.packets_to_deliver())
    spent = time.perf_counter() - began
    receiver.datagrams_to_send()
    if taken != PACKETS:
        raise RuntimeError(f"{taken} of {PACKETS} packets came through the two cores")
    return spent / PACKETS * 1e6


def _packet(size: int) -> bytes:
    """Return an IPv4 packet of UDP with so many bytes, without checksums that nothing looks at."""
    source, destination = (bytes(map(int, address.split("."))) for address in _OVERLAY)
    head = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0, 64, 17, 0)
    return head + source + destination + struct.pack("!HHHH", 4000, 5000, size - 20, 0) + bytes(size - 28)
