"""The compiled parts of the agent against the same written out in Python (`datapath_reference`), byte for byte."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import capstan_native
import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent import offload
from host_agent.inner_packet import InnerPacket, PacketError, look
from host_agent.wire import Arrived, Run
from protocol.datagram import encode_fields
from tests.unit import datapath_reference as reference
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, ip, tcp, udp

U32 = st.integers(0, 2**32 - 1)
VNET = struct.Struct("=BBHHHH")
NEXT_TO_NONE = 0xFFFFFFFF


@given(st.binary(max_size=3000), st.binary(max_size=50))
def test_crc(data: bytes, more: bytes) -> None:
    assert capstan_native.crc32c_of(data, 0) == crc32c(data)
    assert capstan_native.crc32c_of(more, crc32c(data)) == crc32c(data + more)


@given(st.integers(0, 15), st.integers(0, 255), U32, U32, U32, U32, U32, st.binary(max_size=2000))
def test_datagrams(kind, flags, session, number, sent, flow, position, body):  # type: ignore[no-untyped-def]
    fields = (kind, flags, session, number, sent, flow, position)
    assert capstan_native.encode_datagram(*fields, body) == encode_fields(*fields, body)


@settings(max_examples=60)
@given(
    count=st.integers(1, 70),
    bodies=st.integers(1, 200),
    last=st.integers(0, 200),
    headroom=st.sampled_from([0, 28]),
    number=st.sampled_from([0, 7, 2**32 - 5]),
    position=st.sampled_from([0, 9, 2**32 - 2]),
)
def test_rows_are_sealed_as_datagrams_are(count, bodies, last, headroom, number, position):  # type: ignore[no-untyped-def]
    last = min(last, bodies)
    rows = np.random.default_rng(count).integers(0, 256, (count, headroom + 32 + bodies), np.uint8)
    before = rows.copy()
    capstan_native.seal_rows(rows, headroom, last, 1, 2, 3, number, 5, 6, position)
    assert (rows[:, :headroom] == before[:, :headroom]).all()
    for index, row in enumerate(rows):
        body = before[index, headroom + 32 :].tobytes()
        fields = (1, 2, 3, number + index, 5, 6, position + index)
        cut = last if index == count - 1 else bodies
        assert row[headroom : headroom + 32 + cut].tobytes() == encode_fields(*fields, body[:cut])
        assert row[headroom + 32 :].tobytes() == body


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


@st.composite
def wires(draw: st.DrawFn) -> tuple[bytes, int]:
    """Some sound datagrams of few flows, so that many follow each other, and anything else; with its TOS."""
    tos = draw(st.sampled_from([0x20, 0x20, 0x20, 0x21, 0x60]))
    kind = draw(st.sampled_from(["next"] * 8 + ["junk", "broken", "cut"]))
    if kind == "junk":
        return draw(st.binary(max_size=60)), tos
    body = draw(
        st.sampled_from(
            [tcp(b"abc"), tcp(b"abc"), tcp(b"d" * 700), tcp(b"x", ports=(5, 6)), tcp(), udp(b"u"), b"", b"E" * 30,
             b"\4\3\2\1" + b"R" * 30, b"\4\3\2\1" + b"S" * 30, b"\4\3\3\1" + b"R" * 30,
             ip(1, b"echo 12345"), ip(6, b"no TCP header at all"), tcp(b"x", HOST1_V6, HOST2_V6)]
        )
    )  # fmt: skip
    wire = encode_fields(
        draw(st.sampled_from([1, 1, 1, 1, 1, 2, 2, 3, 4])), draw(st.sampled_from([1, 1, 1, 1, 2, 3, 5])), 77,
        draw(st.sampled_from([1, 1, NEXT_TO_NONE])), draw(st.sampled_from([9, 9, 9, 10])),
        draw(st.sampled_from([4, 4, 4, 5])), draw(st.sampled_from([1, 1, 1, 3])), body,
    )  # fmt: skip
    if kind == "broken":
        at = draw(st.integers(0, len(wire) - 1))
        wire = wire[:at] + bytes((wire[at] ^ 4,)) + wire[at + 1 :]
    return (wire[:-1] if kind == "cut" else wire), tos


def numbered(chosen: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """The same, in which sound datagrams that begin with number 1 count up."""
    out, count = [], 0
    for wire, tos in chosen:
        if len(wire) >= 32 and wire[0] == 0xCA and wire[8:12] == b"\0\0\0\1" and crc_is_right(wire):
            position = struct.unpack_from("!I", wire, 20)[0]
            moved = bytearray(wire[:28] + bytes(4) + wire[32:])
            struct.pack_into("!I", moved, 8, 1 + count)
            struct.pack_into("!I", moved, 20, position + count)
            struct.pack_into("!I", moved, 28, crc32c(bytes(moved)))
            wire, count = bytes(moved), count + 1
        out.append((wire, tos))
    return out


def crc_is_right(wire: bytes) -> bool:
    return struct.unpack_from("!I", wire, 28)[0] == crc32c(wire[:28] + bytes(4) + wire[32:])


@settings(max_examples=150, deadline=None)
@given(st.lists(wires(), min_size=1, max_size=100))
def test_what_arrives_is_what_was_sent_in_runs(chosen):  # type: ignore[no-untyped-def]
    sent = []
    with sockets() as (sender, receiver):
        port = sender.getsockname()[1]
        for wire, tos in numbered(chosen):
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            sender.send(wire)
            sent.append(Arrived(wire[:1472], "127.0.0.1", port, tos))
        native = capstan_native.DatagramReceiver(1471)
        at, calls = 0, []
        while at < len(sent):
            got = native.receive(receiver.fileno())
            count = sum(
                1 if len(item) == 4 else len((item[0] if len(item) == 2 else item)[10]) for item in got
            )
            assert got == reference.runs(sent[at : at + count])
            at += count
            calls.append(count)
        assert native.receive(receiver.fileno()) == []
    assert calls[0] == 1, "a lone datagram is not kept waiting"
    assert all(count <= 64 for count in calls)


def test_runs_are_found() -> None:
    """Else the test above would compare one datagram with one datagram."""
    bodies = [tcp(bytes([index]) * 100, sequence=100 * index) for index in range(40)]
    datagrams = [
        encode_fields(1, 1, 77, 5 + index, 9, 4, 3 + index, body) for index, body in enumerate(bodies)
    ]
    with sockets() as (sender, receiver):
        for one in datagrams:
            sender.send(one)
        native = capstan_native.DatagramReceiver(1500)
        got: list[Run] = []
        for _ in range(3):
            got += [item for item in native.receive(receiver.fileno()) if len(item) == 12]
    assert [len(run[11]) for run in got] == [1, 8, 31]
    assert [(run[5], run[8]) for run in got] == [(5, 3), (6, 4), (14, 12)]
    assert [body for run in got for body in run[11]] == bodies


def test_errors_of_the_socket_are_raised() -> None:
    with pytest.raises(OSError, match="Bad file"):
        capstan_native.DatagramReceiver(1500).receive(10**6)
    for impossible in (0, 65536):
        with pytest.raises(ValueError, match="cannot be"):
            capstan_native.DatagramReceiver(impossible)


# -- between agent and device ------------------------------------------------------------------------


@st.composite
def packets(draw: st.DrawFn) -> list[bytes]:
    """Sound packets of few flows, in which segments mostly follow each other."""
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


@settings(max_examples=150, deadline=None)
@given(packets())
def test_segments_are_joined_as_written_out(chosen):  # type: ignore[no-untyped-def]
    expected = reference.coalesce(chosen)
    assert offload.coalesce(chosen) == expected
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        assert offload.write(ours.fileno(), chosen) == 0
        assert [theirs.recv(1 << 17) for _ in expected] == expected


def test_many_tiny_segments_are_one_write() -> None:
    """More pieces than one call of the kernel takes."""
    chosen = [tcp(b"x", sequence=index, partial=True) for index in range(3000)]
    (expected,) = reference.coalesce(chosen)
    reader, writer = os.pipe()
    try:
        assert offload.write(writer, chosen) == 0
        assert os.read(reader, 1 << 17) == expected
    finally:
        os.close(reader)
        os.close(writer)


def test_refused_writes_are_counted() -> None:
    assert offload.write(10**6, [tcp(b"x"), udp(b"y"), udp(b"y", HOST1_V6, HOST2_V6)]) == 3


@settings(max_examples=100, deadline=None)
@given(
    packets(), st.sampled_from([(0, 0), (1, 700), (0x81, 9), (4, 700), (1, 0), (3, 5)]), st.integers(0, 70)
)
def test_reads_tell_what_a_look_tells(chosen, gso, cut):  # type: ignore[no-untyped-def]
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
    rows = np.zeros((2, 100), np.uint8)
    whole = tcp(b"x" * 100)
    for call in (
        lambda: capstan_native.seal_rows(rows, 28, 41, 1, 0, 0, 0, 0, 0, 0),
        lambda: capstan_native.seal_rows(rows, 90, 0, 1, 0, 0, 0, 0, 0, 0),
        lambda: capstan_native.seal_rows(rows[:, :50], 0, 0, 1, 0, 0, 0, 0, 0, 0),
        lambda: capstan_native.seal_rows(np.zeros(9, np.uint8), 0, 0, 1, 0, 0, 0, 0, 0, 0),
        lambda: capstan_native.seal_rows(np.zeros((0, 90), np.uint8), 0, 0, 1, 0, 0, 0, 0, 0, 0),
        lambda: capstan_native.cut_segments(whole, 20, 40, 50, 0, rows),
        lambda: capstan_native.cut_segments(whole, 20, 40, 60, 1, rows),
        lambda: capstan_native.cut_segments(whole, 200, 40, 60, 0, rows),
        lambda: capstan_native.cut_segments(b"", 20, 40, 60, 0, rows),
        lambda: capstan_native.send_rows(0, bytes(4), "10.0.0.1", [1], 2, 0, rows, 10),
        lambda: capstan_native.send_rows(0, bytes(4), "10.0.0.1", [1, 2], 2, 0, rows, 73),
        lambda: capstan_native.send_rows(0, bytes(4), "nowhere", [1, 2], 2, 0, rows, 10),
        lambda: capstan_native.send_datagrams(0, bytes(4), [("nowhere", 1, 2, 0, b"")]),
        lambda: capstan_native.send_datagrams(0, bytes(4), [("10.0.0.1", 1, 2, 0, bytes(65535))]),
        lambda: capstan_native.encode_datagram(16, 0, 0, 0, 0, 0, 0, b""),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call()
    assert not rows.any()
