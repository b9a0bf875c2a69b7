"""An agent whose lone packets pass in native code, on sockets that need no root, beside one that hears all by Python.

The TUN device is a pair of Unix sockets, the raw socket a UDP socket that sends the outer header as data; the peer's
datagrams come from its own core over UDP. The same happens to both agents at the same times.
"""

from __future__ import annotations

import os
import select
import socket
import time
from itertools import count
from types import TracebackType
from typing import Final

import capstan_native
import numpy as np

from host_agent.core import AgentCore
from host_agent.inner_packet import InnerPacket
from host_agent.lone import NO_PLANS, WINDOW_S, LonePackets
from host_agent.offload import coalesce
from host_agent.wire import Arrived, Burst, Outgoing, parts
from protocol.control import Impair, Peer
from protocol.policy import Policy
from protocol.underlay import BASE_PORT, FLOW_KEYS
from tests.unit import datapath_reference

MTU: Final = 1426
OVERLAY: Final = ("10.128.1.1", "10.128.1.2")
VNET: Final = bytes(10)
_OUTER: Final = 28
Datagram = tuple[str, int, int, int, bytes]
_SESSIONS: Final = (11, 22)
_NETWORK: Final = f"127.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}"
HERE, THERE, FOREIGN = (f"{_NETWORK}.{number}" for number in (1, 2, 3))


def agent(policy: Policy, index: int, now: float) -> AgentCore:
    core = AgentCore(f"h{index}", _SESSIONS[index], MTU, np.random.default_rng(index), now)
    core.set_policy(policy, now)
    peers = [
        Peer(f"h{one}", (HERE, THERE)[one], [OVERLAY[one]], _SESSIONS[one], leaf=f"leaf{one}")
        for one in (0, 1)
    ]
    core.set_directory(peers, now)
    return core


def all_of(outgoing: list[Outgoing | Burst]) -> list[Outgoing]:
    """Datagrams, one by one."""
    return [one for item in outgoing for one in (item.each() if isinstance(item, Burst) else [item])]


class Rig:
    """``tested`` and ``reference``: the two agents at HERE; ``peer``: the one at THERE."""

    def __init__(self, policy: Policy) -> None:
        now = time.monotonic()
        self.tested, self.reference = agent(policy, 0, now), agent(policy, 0, now)
        self.peer = agent(policy, 1, self.peer_now())
        self.lone = LonePackets(self.tested)
        self._windows = count()
        """A wake-up each, so that the agent is never too busy for plans."""
        self._sent: list[Outgoing] = []
        """Of which the peer has not heard."""
        self._device, self._host = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._raw = _udp(HERE, 0)
        self._at_peer = [_udp(THERE, BASE_PORT + key) for key in range(FLOW_KEYS)]
        self._socket = _udp(HERE, BASE_PORT)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self._senders = {address: _udp(address, 0) for address in (THERE, FOREIGN)}
        self._all = (
            self._device,
            self._host,
            self._raw,
            self._socket,
            *self._at_peer,
            *self._senders.values(),
        )
        for one in self._all:
            one.setblocking(False)
        self._reader = capstan_native.TunReader(InnerPacket)
        self._receiver = capstan_native.DatagramReceiver(1500)
        self._passage = capstan_native.LonePassage(
            self._reader,
            self._receiver,
            self._device.fileno(),
            self._raw.fileno(),
            [self._socket.fileno()],
            socket.inet_aton(HERE),
            _SESSIONS[0],
            MTU,
        )
        self._poll = select.epoll()
        for watched in (self._device, self._socket):
            self._poll.register(watched.fileno(), select.EPOLLIN)

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._poll.close()
        for one in self._all:
            one.close()

    def impair(self, setting: Impair) -> None:
        """Both agents harm what arrives."""
        for core in (self.tested, self.reference):
            core.set_impairment(setting)

    def from_host(self, packets: list[bytes]) -> None:
        """The host sends these at once: the same datagrams leave."""
        self.at_once(packets, [])

    def from_peer(self, arriving: list[tuple[bytes, str, int]]) -> None:
        """These come at once, each with its source address and TOS: the same packets are delivered."""
        self.at_once([], arriving)

    def at_once(self, packets: list[bytes], arriving: list[tuple[bytes, str, int]]) -> None:
        """Both; in the order in which the agent takes them."""
        came = []
        for data, address, tos in arriving:
            sender = self._senders[address]
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            sender.sendto(data, (HERE, BASE_PORT))
            came.append(Arrived(data, address, sender.getsockname()[1], tos))
        for packet in packets:
            self._host.send(VNET + packet)
        self._carry(packets, came)

    def peer_now(self) -> float:
        """The peer's clock, which is another machine's."""
        return time.monotonic() + 1000.0

    def peer_hears(self) -> None:
        """The peer gets what was sent to it, and says so."""
        now = self.peer_now()
        for one in self._sent:
            self.peer.receive_datagram(one.data, HERE, one.source_port, one.tos, now)
        self._sent.clear()
        self.peer.packets_to_deliver()
        self.peer.handle_timer(now + 0.1)
        self.from_peer([(one.data, THERE, one.tos) for one in all_of(self.peer.datagrams_to_send())])

    def timer(self, after_s: float) -> None:
        """The timers of both are due at the same time, that long from now."""
        now = time.monotonic() + after_s
        for core in (self.tested, self.reference):
            core.handle_timer(now)
        self._compare([], [])

    def _carry(self, packets: list[bytes], came: list[Arrived]) -> None:
        waiting = len(packets) + len(came)
        heard: list[tuple[bool, float]] = []
        """Whether it was the host's, and when."""
        decided, delivered = list[Outgoing](), list[bytes]()

        def left(packet: bytes, seen: InnerPacket, datagram: Datagram, done: bool, now: float) -> None:
            heard.append((True, now))
            self.lone.left(packet, seen, datagram, done, now)

        def arrived(item: capstan_native.Run, packet: bytes, done: bool, now: float) -> None:
            heard.append((False, now))
            self.lone.came(item, packet, done, now)

        while len(heard) < waiting:
            self._passage.plan(*(self.lone.plans(next(self._windows) * WINDOW_S) or NO_PLANS))
            ready = self._passage.wait(self._poll.fileno(), 5.0, 0.0005)
            self._passage.tell(left, arrived)
            decided += all_of(self.lone.outgoing)
            delivered += self.lone.deliver
            self.lone.outgoing.clear()
            self.lone.deliver.clear()
            now = time.monotonic()
            for fd in ready:
                is_host = fd == self._device.fileno()
                heard += [(is_host, now)] * (self._read(now) if is_host else self._receive(now))
            decided += all_of(self.tested.datagrams_to_send())
            delivered += self.tested.packets_to_deliver()
        hosts, peers = iter(packets), iter(came)
        for is_host, now in heard:
            if is_host:
                self.reference.packet_from_host(next(hosts), now)
                continue
            [item] = datapath_reference.runs([next(peers)])
            if isinstance(item, Arrived):
                self.reference.receive_datagram(*item, now)
            else:
                self.reference.receive_run(item, now)
        self._compare(decided, delivered)

    def _read(self, now: float) -> int:
        got = self._reader.read(self._device.fileno())
        if got is None:
            return 0
        packet, size, seen = got
        if size < 0:
            packet, seen = packet[len(VNET) :], None
        self.tested.packet_from_host(packet, now, seen)
        if seen is not None:
            self.lone.from_host(seen)
        return 1

    def _receive(self, now: float) -> int:
        count = 0
        for item in self._receiver.receive(self._socket.fileno()):
            if len(item) == 4:
                self.tested.receive_datagram(*item, now)
                count += 1
                continue
            # the reference hears of each datagram by itself
            runs = parts(item) if len(item) == 2 else [item]
            for one in (one for run in runs for one in _each(run)):
                self.tested.receive_run(one, now)
                self.lone.from_peer(one)
                count += 1
        return count

    def _compare(self, decided: list[Outgoing], delivered: list[bytes]) -> None:
        """What left and was delivered, natively and as Python decided, against the reference."""
        left = [*decided, *all_of(self.tested.datagrams_to_send()), *self._left()]
        expected = all_of(self.reference.datagrams_to_send())
        self._sent += expected
        assert sorted(left, key=lambda one: one.data[8:12]) == sorted(
            expected, key=lambda one: one.data[8:12]
        )
        delivered = delivered + self.tested.packets_to_deliver()
        wanted = self.reference.packets_to_deliver()
        written = []
        while True:
            try:
                written.append(self._host.recv(65536))
            except BlockingIOError:
                break
        assert sorted(written + [one for packet in delivered for one in coalesce([packet])]) == sorted(
            one for packet in wanted for one in coalesce([packet])
        )
        assert self.tested.counters() == self.reference.counters()
        assert self.tested.flow_report(False) == self.reference.flow_report(False)
        assert self.tested.get_timer() == self.reference.get_timer()
        assert self.lone.differing == 0

    def _left(self) -> list[Outgoing]:
        """What native code has sent."""
        left = []
        for one in self._at_peer:
            while True:
                try:
                    data = one.recv(65536)
                except BlockingIOError:
                    break
                ports = data[20:22], data[22:24]
                assert (data[0], data[9], data[12:16]) == (0x45, 17, socket.inet_aton(HERE))
                assert int.from_bytes(data[24:26], "big") == len(data) - 20
                address = socket.inet_ntoa(data[16:20])
                source, destination = (int.from_bytes(port, "big") for port in ports)
                assert destination == one.getsockname()[1]
                left.append(Outgoing(address, source, destination, data[1], data[_OUTER:]))
        return left


def _each(run: capstan_native.Run) -> list[capstan_native.Run]:
    """A run as runs of one datagram each."""
    address, tos, kind, flags, session, number, sent_us, name, position, key, ports, bodies = run
    step = kind != 2
    return [
        (address, tos, kind, flags, session, number + at, sent_us, name, position + at * step, key, [port], [body])
        for at, (port, body) in enumerate(zip(ports, bodies, strict=True))
    ]  # fmt: skip


def _udp(address: str, port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((address, port))
    return one
