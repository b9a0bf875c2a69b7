"""The compiled parts of the agent against the same written out in Python (`datapath_reference`), byte for byte."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import capstan_native
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent import offload
from host_agent.inner_packet import InnerPacket, PacketError, look
from protocol.datagram import HEADER_BYTES
from protocol.policy import CodingPolicy
from tests.unit import datapath_reference as reference
from tests.unit.agent_relay import core, policy
from tests.unit.datagram_reference import decode_fields, encode_fields
from tests.unit.device_writes import VNET, joined
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, ip, tcp, udp


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=4), coded=st.booleans())
def test_datagrams_are_as_written_out(sizes: list[int], coded: bool) -> None:
    agent = core(0)
    agent.set_policy(
        policy(CodingPolicy(max_overhead=8.0, code="mds", redundancy="one-per-unit") if coded else None), 0.0
    )
    for size in sizes:
        agent.super_packet_from_host(tcp(b"s" * size, partial=True), 1386, 0.0)
    agent.handle_timer(1.0)
    for one in agent.datagrams_to_send():
        fields, body = decode_fields(one.data), one.data[HEADER_BYTES:]
        assert encode_fields(*fields, body) == one.data


# -- what arrives ------------------------------------------------------------------------------------


@contextmanager
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        sender.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        yield sender, receiver


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=2000), st.sampled_from([0x20, 0x21, 0x60])), max_size=100))
def test_what_arrives_is_what_was_sent(chosen: list[tuple[bytes, int]]) -> None:
    with sockets() as (sender, receiver):
        port = sender.getsockname()[1]
        for data, tos in chosen:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            sender.send(data)
        native = capstan_native.DatagramReceiver(1471)
        got, calls = [], []
        while some := native.datagrams(receiver.fileno()):
            got += some
            calls.append(len(some))
    assert got == [(data[:1472], "127.0.0.1", port, tos) for data, tos in chosen]
    assert calls[:1] == [1] * bool(chosen), "a lone datagram is not kept waiting"
    assert all(count <= 64 for count in calls)


def test_errors_of_the_socket_are_raised() -> None:
    with pytest.raises(OSError, match="Bad file"):
        capstan_native.DatagramReceiver(1500).datagrams(10**6)
    for impossible in (0, 65536):
        with pytest.raises(ValueError, match="cannot be"):
            capstan_native.DatagramReceiver(impossible)


# -- between agent and device ------------------------------------------------------------------------


@st.composite
def packets(draw: st.DrawFn) -> list[bytes]:
    """Draw sound packets of few flows, in which segments mostly follow each other."""
    out: list[bytes] = []
    sequence = {1: draw(st.sampled_from([0, 2**32 - 3000])), 2: 5, 6: 7}
    for _ in range(draw(st.integers(1, 60))):
        kind = draw(st.sampled_from([1, 1, 1, 1, 2, 6, 6, "udp", "icmp", "part", "options", "udp6", "zero"]))
        if isinstance(kind, int):
            size = draw(st.sampled_from([0, 1, 500, 1300, 1300, 1300, 1300]))
            source, destination = (HOST1_V6, HOST2_V6) if kind == 6 else (HOST1, HOST2)
            skip = draw(st.sampled_from([0] * 9 + [1]))
            packet = tcp(
                bytes([len(out)]) * size, source, destination, ports=(1000 + kind, 80),
                sequence=(sequence[kind] + skip) % 2**32, ack=draw(st.sampled_from([1] * 9 + [2])),
                flags=draw(st.sampled_from([0x10] * 9 + [0x18, 0x11, 0x50, 0x90, 0x02])),
                options=draw(st.sampled_from([b""] * 5 + [b"\x01\x01\x08\x0a" + bytes(8)])),
                tos=draw(st.sampled_from([0] * 9 + [3])), partial=True,
            )  # fmt: skip
            sequence[kind] = (sequence[kind] + skip + size) % 2**32
        else:
            packet = {
                "udp": udp(b"datagram"),
                "icmp": ip(1, b"echo" * 10),
                "part": ip(17, b"a fragment of a packet", df=False, word=0x2000),
                "options": bytes((0x46,)) + ip(6, bytes(4) + tcp(b"x")[20:])[1:],
                "udp6": udp(b"datagram", HOST1_V6, HOST2_V6),
                "zero": udp(b"no ports", ports=(0, 0)),
            }[str(kind)]
        out.append(packet)
    return out


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(packets())
def test_segments_are_joined_as_written_out(chosen):  # type: ignore[no-untyped-def]
    expected = reference.coalesce(chosen)
    assert joined(chosen) == expected


def test_many_tiny_segments_are_one_write() -> None:
    """More pieces than one call of the kernel takes."""
    chosen = [tcp(b"x", sequence=index, partial=True) for index in range(3000)]
    (expected,) = reference.coalesce(chosen)
    reader, writer = os.pipe()
    try:
        assert capstan_native.write_packets(writer, chosen) == 0
        assert os.read(reader, 1 << 17) == expected
    finally:
        os.close(reader)
        os.close(writer)


def test_refused_writes_are_counted() -> None:
    assert capstan_native.write_packets(10**6, [tcp(b"x"), udp(b"y"), udp(b"y", HOST1_V6, HOST2_V6)]) == 3


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    packets(), st.sampled_from([(0, 0), (1, 700), (0x81, 9), (4, 700), (1, 0), (3, 5)]), st.integers(0, 70)
)
def test_reads_return_what_a_look_returns(chosen, gso, cut):  # type: ignore[no-untyped-def]
    kind, size = gso
    reads = capstan_native.TunReader(InnerPacket)
    for packet in chosen:
        packet = packet if cut > 60 else packet[:cut] if cut % 2 else packet[:-1] + b"..."
        data = VNET.pack(1, kind, 40, size, 20, 16) + packet
        reader, writer = os.pipe()
        try:
            os.write(writer, data)
            got = reads.read(reader)
        finally:
            os.close(reader)
            os.close(writer)
        assert got is not None
        if got[1] < 0:
            assert got == (data, -1, None)
            continue
        try:
            assert got[:2] == offload.read(data)
            seen = look(packet)
        except PacketError:
            pytest.fail(f"{packet.hex()} was taken for a packet")
        assert got[2] == seen
        assert type(got[2]) is InnerPacket


def test_plain_packets_are_looked_at() -> None:
    """Else the test above would be content with nothing."""
    reads = capstan_native.TunReader(InnerPacket)
    for packet in (tcp(b"abc"), tcp(), tcp(flags=2), udp(b"x"), ip(1, b"echo 1234")):
        reader, writer = os.pipe()
        os.write(writer, VNET.pack(0, 0, 0, 0, 0, 0) + packet)
        assert reads.read(reader) == (packet, 0, look(packet))
        os.set_blocking(reader, False)
        assert reads.read(reader) is None
        os.close(writer)
        os.close(reader)
    with pytest.raises(ValueError, match="must be a tuple"):
        capstan_native.TunReader(int)  # type: ignore[arg-type]


# -- what cannot be ----------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused() -> None:
    for call in (
        lambda: capstan_native.send_datagrams(0, bytes(4), [("nowhere", 1, 2, 0, b"")]),
        lambda: capstan_native.send_datagrams(0, bytes(4), [("10.0.0.1", 1, 2, 0, bytes(65535))]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call()
