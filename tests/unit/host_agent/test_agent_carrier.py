"""Packets pass between kernel and core without the interpreter as they would with it: the same bytes and counters.

The agent behind the `Carrier` and one that is called from here are of one seed; their clocks differ, so datagrams are
compared without their time.
"""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.admission.unsent import Unsent
from host_agent.core import AgentCore
from host_agent.inner_packet import ACK, FIN, PSH, SYN
from protocol.admission import AdmissionPolicy, Request
from protocol.control import Impair
from protocol.policy import ClassPolicy, PathSettings, Policy
from protocol.underlay import BASE_PORT
from tests.unit.carrier_kernel import (
    FOREIGN,
    HERE,
    SOON_S,
    THERE,
    Failing,
    Kernel,
    agent,
    kernel,
    policy_of,
    timeless,
)
from tests.unit.datagram_reference import Kind, decode_fields
from tests.unit.device_writes import VNET, joined, packets_in
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, ip, tcp, udp


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
    policy = policy_of(coded, release, admission)
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
    with kernel(
        policy_of(coded=False, release=False, admission=AdmissionPolicy(threshold_bytes=1000))
    ) as rig:
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
    with kernel(policy_of(False, False)) as rig:
        core = rig.core.compiled
        assert core is not None
        rig.host.send(bytes(VNET.size) + tcp(flags=SYN))
        assert rig.carry(core) == [rig.device.fileno()]
        assert rig.reader.read(rig.device.fileno()) is not None


def test_it_returns_at_its_deadline_when_nothing_comes() -> None:
    with kernel(policy_of(False, False)) as rig:
        core = rig.core.compiled
        assert core is not None
        deadline = time.monotonic() + 0.02
        assert rig.carrier.carry(core, deadline) == []
        assert time.monotonic() >= deadline


def test_packets_that_decoders_keep_stay_what_they_are_while_buffers_are_used_again() -> None:
    policy = replace(policy_of(coded=True, release=False), short_limit_bytes=1 << 40)
    with kernel(policy) as rig:
        core = rig.core.compiled
        assert core is not None
        peer, sent, got = agent(policy, 1), set[bytes](), set[bytes]()
        for unit in range(250):
            for port in (5000, 5002):
                for place in range(4):
                    payload = b"%d %d %d " % (port, unit, place) * 80
                    sent.add(payload)
                    peer.packet_from_host(udp(payload, HOST2, HOST1, ports=(port, 5001)), 0.0)
            for datagram in peer.datagrams_to_send():
                kind, position = decode_fields(datagram.data)[0], decode_fields(datagram.data)[6]
                if kind != Kind.SOURCE or position % 4:  # the first of each unit is lost
                    rig.senders[THERE].sendto(datagram.data, (HERE, BASE_PORT))
            assert rig.carry(core) == []
            got |= {packet[28:] for packet in _split(rig.written())}
            rig.sent()
        assert got == sent
        assert rig.core.counters()["packets_recovered"] == 500
