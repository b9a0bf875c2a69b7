"""Packets pass between kernel and core without the interpreter as they would with it: the same bytes and counters.

Sockets that need no root stand for the kernel: the TUN device is a pair of Unix sockets, the raw socket a UDP socket
that sends the outer header as data. The agent behind the `Carrier` and one that is called from here are of one seed;
their clocks differ, so datagrams are compared without their time.
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
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.admission.unsent import Unsent
from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, FIN, PSH, SYN, InnerPacket
from host_agent.paths import PathPolicy as Rule
from protocol.admission import AdmissionPolicy, Request
from protocol.control import Impair, Peer
from protocol.datagram import HEADER_BYTES
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy
from protocol.underlay import BASE_PORT, FLOW_KEYS
from tests.unit.datagram_reference import Kind, decode_fields
from tests.unit.device_writes import VNET, joined, packets_in
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, ip, tcp, udp

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


def _policy(coded: bool, release: bool, admission: AdmissionPolicy | None = None) -> Policy:
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


def _packets(there: bool) -> st.SearchStrategy[tuple[bytes, int]]:
    """Build a strategy: a packet of the host at one end, and the size of the segments to cut it into (0: none)."""
    ends = {"source": HOST2, "destination": HOST1} if there else {"source": HOST1, "destination": HOST2}
    six = (
        {"source": HOST2_V6, "destination": HOST1_V6}
        if there
        else {"source": HOST1_V6, "destination": HOST2_V6}
    )
    lone = st.builds(
        lambda size, port, flags: (tcp(b"d" * size, ports=(port, 80), flags=flags, **ends), 0),
        st.integers(0, 1386),
        st.sampled_from([1000, 1001]),
        st.sampled_from([ACK, ACK, ACK, ACK | PSH, ACK | FIN]),
    )
    cut = st.builds(
        lambda size: (tcp(b"s" * size, ports=(1000, 80), partial=True, **ends), 1300), st.integers(1400, 9000)
    )
    other = st.sampled_from(
        [(udp(b"u" * 30, **ends), 0), (ip(1, b"\x08\0\0\0ping", **ends), 0), (udp(b"6" * 30, **six), 0),
         (udp(b"x", ends["source"], "10.128.9.9"), 0), (tcp(flags=SYN, **ends), 0), (b"\x45no packet", 0)]
    )  # fmt: skip
    return st.one_of(lone, lone, cut, other)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    coded=st.booleans(),
    release=st.booleans(),
    admitted=st.booleans(),
    what=st.lists(
        st.one_of(
            st.tuples(st.just("host"), st.lists(_packets(False), min_size=1, max_size=6)),
            st.tuples(st.just("peer"), st.lists(_packets(True), min_size=1, max_size=6)),
        ),
        min_size=1,
        max_size=10,
    ),
    harm=st.sampled_from(["none", "none", "lost", "twice", "bit", "foreign"]),
)
def test_what_is_carried_is_what_the_core_says(
    coded: bool,
    release: bool,
    admitted: bool,
    what: list[tuple[str, list[tuple[bytes, int]]]],
    harm: str,
) -> None:
    # all flows pass the gate, and none is large
    admission = AdmissionPolicy(threshold_bytes=1 << 40) if admitted else None
    policy = _policy(coded, release, admission)
    with kernel(policy) as rig:
        other, peer = agent(policy, 0), agent(policy, 1)
        written: list[bytes] = []
        delivered: list[bytes] = []
        for whose, packets in what:
            if whose == "host":
                for packet, size in packets:
                    header = VNET.pack(1, 1, 40, size, 20, 16) if size else bytes(VNET.size)
                    rig.host.send(header + packet)
                    _leave(other, packet, size)
            else:
                for packet, size in packets:
                    _leave(peer, packet, size)
                for number, one in enumerate(peer.datagrams_to_send()):
                    for data, address in _harmed(harm if number % 3 == 1 else "none", one.data):
                        sender = rig.senders[address]
                        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, one.tos)
                        sender.sendto(data, (HERE, BASE_PORT))
                        other.receive_datagram(data, address, sender.getsockname()[1], one.tos, now=0.0)
            _finish(rig)
            assert timeless(rig.sent()) == timeless(
                [(one.tos, one.data) for one in other.datagrams_to_send()]
            )
            written += rig.written()
            delivered += other.packets_to_deliver()
        # what comes in one call of the kernel is joined: so the stream of each flow counts, not its pieces
        assert joined(_split(written)) == joined(_split(joined(delivered)))
        carried, expected = rig.core.counters(), other.counters()
        assert carried == expected
        assert rig.carrier.unsent == rig.carrier.refused == 0


def _leave(core: AgentCore, packet: bytes, size: int) -> None:
    if size:
        core.super_packet_from_host(packet, size, 0.0)
    else:
        core.packet_from_host(packet, 0.0)


def _harmed(harm: str, data: bytes) -> list[tuple[bytes, str]]:
    broken = data[:40] + bytes([data[40] ^ 4]) + data[41:] if len(data) > 40 else data[:-1]
    return {
        "none": [(data, THERE)],
        "lost": [],
        "twice": [(data, THERE), (data, THERE)],
        "bit": [(broken, THERE)],
        "foreign": [(data, FOREIGN)],
    }[harm]


def _finish(rig: Kernel) -> None:
    """Carry all that waits; what is rare is read here, as the agent's shell does."""
    core = rig.core.compiled
    assert core is not None
    while ready := rig.carry(core):
        assert ready == [rig.device.fileno()]
        got = rig.reader.read(rig.device.fileno())
        assert got is not None
        packet, size, _ = got
        if size > 0:
            rig.core.super_packet_from_host(packet, size, time.monotonic())
        else:
            rig.core.packet_from_host(packet[VNET.size :] if size < 0 else packet, time.monotonic())
        rig.carrier.flush(core)


def _split(writes: list[bytes]) -> list[bytes]:
    """Split writes to the device into their packets."""
    return [packet for data in writes for packet in packets_in(data)]


def test_python_sees_every_packet_while_they_are_harmed_on_purpose() -> None:
    core = agent(Policy(1, "test"), 0)
    assert core.compiled is not None
    core.set_impairment(Impair(loss=0.3))
    assert core.compiled is None
    core.set_impairment(Impair())
    core.handle_timer(20.0)
    assert core.compiled is not None


def test_a_request_comes_out_of_the_carrying_before_the_packet_that_makes_it() -> None:
    with kernel(_policy(coded=False, release=False, admission=AdmissionPolicy(threshold_bytes=1000))) as rig:
        core = rig.core.compiled
        assert core is not None
        packets = [tcp(b"d" * 900, sequence=1 + 900 * number) for number in range(2)]
        rig.host.send(bytes(VNET.size) + packets[0])
        assert rig.carrier.carry(core, time.monotonic() + SOON_S) == []
        holds = Unsent(50_000, False, 7, 900)
        assert rig.core.gate.messages_to_send(time.monotonic(), lambda flow: holds) == []
        rig.carrier.flush(core)
        rig.host.send(bytes(VNET.size) + packets[1])
        assert rig.carrier.carry(core, time.monotonic() + SOON_S) == []
        assert len(rig.sent()) == 1, "the second has not left"
        (request,) = rig.core.gate.messages_to_send(time.monotonic(), lambda flow: holds)
        assert isinstance(request, Request)
        assert request.destination == THERE
        rig.carrier.flush(core)
        assert len(rig.sent()) == 1


def test_what_a_path_policy_in_python_raises_ends_the_carrying() -> None:
    own = ClassPolicy(PathSettings("file"))
    with kernel(Policy(1, "test", short=own, long=own), Failing()) as rig:
        rig.host.send(bytes(VNET.size) + udp(b"u"))
        core = rig.core.compiled
        assert core is not None
        with pytest.raises(LookupError, match="good enough"):
            rig.carry(core)


def test_a_connection_that_opens_is_left_to_python_which_reads_announcements_first() -> None:
    with kernel(_policy(False, False)) as rig:
        core = rig.core.compiled
        assert core is not None
        rig.host.send(bytes(VNET.size) + tcp(flags=SYN))
        assert rig.carry(core) == [rig.device.fileno()]
        assert rig.reader.read(rig.device.fileno()) is not None


def test_it_returns_at_its_deadline_when_nothing_comes() -> None:
    with kernel(_policy(False, False)) as rig:
        core = rig.core.compiled
        assert core is not None
        deadline = time.monotonic() + 0.02
        assert rig.carrier.carry(core, deadline) == []
        assert time.monotonic() >= deadline


def _owing(due_s_ago: float, close: ExitStack) -> tuple[Kernel, capstan_native.HostCore]:
    """Return the kernel of an agent whose feedback for a datagram was due *due_s_ago* s ago, and the compiled core."""
    policy = _policy(coded=False, release=False)
    now = time.monotonic()
    rig = Kernel(agent(policy, 0, now + 3600.0), close)  # so that nothing else is due
    peer = agent(policy, 1)
    peer.packet_from_host(udp(b"u", HOST2, HOST1), 0.0)
    (datagram,) = peer.datagrams_to_send()
    came = now - due_s_ago - FEEDBACK_S
    rig.core.receive_datagram(datagram.data, THERE, datagram.source_port, datagram.tos, now=came)
    core = rig.core.compiled
    assert core is not None
    rig.carrier.flush(core)
    assert rig.core.get_timer() == pytest.approx(now - due_s_ago)
    return rig, core


def test_feedback_that_is_due_waits_for_a_packet_to_leave_with() -> None:
    with ExitStack() as close:
        rig, core = _owing(0.1, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert rig.sent() == []
        rig.host.send(bytes(VNET.size) + udp(b"u"))
        rig.carry(core)
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.SOURCE, Kind.FEEDBACK]


def test_feedback_that_has_waited_twice_as_long_leaves_alone() -> None:
    with ExitStack() as close:
        rig, core = _owing(FEEDBACK_S + 0.1, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.FEEDBACK]
