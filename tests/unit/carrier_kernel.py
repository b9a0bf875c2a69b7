"""The kernel around an agent whose packets are carried by `Carrier`, and the policies that those tests use.

Sockets that need no root stand for the kernel: the TUN device is a pair of Unix sockets, the raw socket a UDP socket
that sends the outer header as data.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import capstan_native
import numpy as np

from host_agent.core import AgentCore
from host_agent.inner_packet import InnerPacket
from host_agent.paths import PathPolicy as Rule
from protocol.admission import AdmissionPolicy
from protocol.control import Peer
from protocol.datagram import HEADER_BYTES
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy
from protocol.underlay import BASE_PORT, FLOW_KEYS
from tests.unit.datagram_reference import Kind, decode_fields
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6

MTU = 1426
SESSIONS = (11, 22)
OUTER_BYTES = 28
NETWORK = f"127.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}"
HERE, THERE, FOREIGN = (f"{NETWORK}.{number}" for number in (1, 2, 3))
PEERS = [
    Peer("h0", HERE, [HOST1, HOST1_V6], SESSIONS[0], "l0"),
    Peer("h1", THERE, [HOST2, HOST2_V6], SESSIONS[1], "l1"),
]
SOON_S = 5.0
PACKET_TIME_S = 60.0
"""So no feedback is due by time."""
FEEDBACK_S = 2 * PACKET_TIME_S


def agent(policy: Policy, index: int, now: float = 0.0, own: Rule | None = None) -> AgentCore:
    core = AgentCore(
        f"h{index}",
        SESSIONS[index],
        MTU,
        np.random.default_rng(index),
        now=now,
        own_path=lambda *_: own or Failing(),
    )
    core.set_policy(policy, now)
    core.set_directory(PEERS, now)
    return core


class Failing(Rule):
    def entropy(self, flow: object, route: object, size: int, now: float) -> int:
        raise LookupError("no path is good enough")


class Kernel:
    """What is at the other ends of the agent's descriptors. ``core`` is the agent's."""

    def __init__(self, core: AgentCore, close: ExitStack) -> None:
        self.core = core
        device, self.host = (close.enter_context(one) for one in socket.socketpair(type=socket.SOCK_DGRAM))
        # First the one whose port is set: the kernel's choice for the other may be the same.
        self.socket, raw = (close.enter_context(_udp(HERE, port)) for port in (BASE_PORT, 0))
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self.there = [close.enter_context(_udp(THERE, BASE_PORT + key)) for key in range(FLOW_KEYS)]
        self.senders = {address: close.enter_context(_udp(address, 0)) for address in (THERE, FOREIGN)}
        for one in (device, self.host, raw, self.socket, *self.there):
            one.setblocking(False)
        poll = close.enter_context(select.epoll())
        for watched in (device, self.socket):
            poll.register(watched, select.EPOLLIN)
        self.reader, self.device = capstan_native.TunReader(InnerPacket), device
        receiver = capstan_native.DatagramReceiver(1500)
        self.carrier = capstan_native.Carrier(
            (self.reader, device.fileno()),
            (receiver, raw.fileno(), [self.socket.fileno()]),
            socket.inet_aton(HERE),
            poll.fileno(),
        )

    def carry(self, core: capstan_native.HostCore) -> list[int]:
        """Carry all that waits; return the descriptors that are left to Python."""
        ready: list[int] = []
        deadline = time.monotonic() + SOON_S
        while not ready and select.select([self.device, self.socket], [], [], 0)[0]:
            assert time.monotonic() < deadline, "something waits for ever"
            ready = self.carrier.carry(core, time.monotonic())
            assert self.core.gate.messages_to_send(time.monotonic(), lambda flow: None) == []
            self.carrier.flush(core)
        return ready

    def sent(self) -> list[tuple[int, bytes]]:
        """Return TOS and datagram of all that left, in the order in which it was sent."""
        left = [
            (number, tos, data)
            for one in self.there
            for outer, tos, data in map(_outer, _all(one))
            for number in [decode_fields(data)[3]]
            if outer == (HERE, THERE, one.getsockname()[1])
        ]
        return [(tos, data) for _, tos, data in sorted(left)]

    def written(self) -> list[bytes]:
        """Return what was written to the device."""
        return _all(self.host)


def _udp(address: str, port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((address, port))
    return one


def _all(one: socket.socket) -> list[bytes]:
    got = []
    while select.select([one], [], [], 0)[0]:
        got.append(one.recv(1 << 17))
    return got


def _outer(data: bytes) -> tuple[tuple[str, str, int], int, bytes]:
    assert (data[0], data[9]) == (0x45, socket.IPPROTO_UDP)
    assert int.from_bytes(data[2:4], "big") == len(data)
    assert int.from_bytes(data[24:26], "big") == len(data) - 20
    addresses = socket.inet_ntoa(data[12:16]), socket.inet_ntoa(data[16:20])
    return (*addresses, int.from_bytes(data[22:24], "big")), data[1], data[OUTER_BYTES:]


def timeless(datagrams: list[tuple[int, bytes]]) -> list[tuple[object, ...]]:
    """Return TOS, header without the time of leaving, and body (of feedback, which has times, too: its length)."""
    fields = [(tos, decode_fields(data), data[HEADER_BYTES:]) for tos, data in datagrams]
    return [
        (tos, head[:4], head[5:], len(body) if head[0] == Kind.FEEDBACK else body)
        for tos, head, body in fields
    ]


@contextmanager
def kernel(policy: Policy, own: Rule | None = None) -> Iterator[Kernel]:
    with ExitStack() as close:
        yield Kernel(agent(policy, 0, time.monotonic(), own), close)


def policy_of(coded: bool, release: bool, admission: AdmissionPolicy | None = None) -> Policy:
    one = PathSettings("flow-hash")
    held = ReleasePolicy(60.0) if release else None
    coding = (
        CodingPolicy(max_overhead=8.0, code="mds", redundancy="one-per-unit", max_k=4, flush_s=60.0)
        if coded
        else None
    )
    return Policy(
        1,
        "test",
        packet_time_s=PACKET_TIME_S,
        short_limit_bytes=9000,
        short=ClassPolicy(one, coding, held),
        long=ClassPolicy(one, None, held),
        control=ClassPolicy(one),
        admission=admission,
    )
