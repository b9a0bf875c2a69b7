"""Super-packets: what the kernel leaves to us is cut as it would cut it, and what we join can be cut again."""

from __future__ import annotations

import numpy as np
import pytest
from capstan_native import complete_checksum
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.inner_packet import PacketError, look
from host_agent.offload import read
from tests.unit.device_writes import VNET, header_and_packet, joined, segments_of
from tests.unit.inner_packets import (
    HOST1,
    HOST1_V6,
    HOST2,
    HOST2_V6,
    TCP,
    UDP,
    check_ip,
    check_transport,
    ip,
    pseudo_header,
    tcp,
    udp,
    words_sum,
)

PAIRS = {4: (HOST1, HOST2), 6: (HOST1_V6, HOST2_V6)}
STAMPS = b"\x01\x01\x08\x0a" + bytes(range(8))


def payload_of(packet: bytes) -> bytes:
    seen = look(packet)
    return packet[len(packet) - seen.payload :]


@settings(max_examples=60)
@given(
    version=st.sampled_from([4, 6]),
    size=st.integers(1, 1400),
    length=st.integers(1, 20_000),
    sequence=st.sampled_from([0, 5, 2**32 - 3000]),
    number=st.sampled_from([0, 65530]),
    flags=st.sampled_from([0x10, 0x18, 0x19, 0x90]),
    options=st.sampled_from([b"", STAMPS]),
)
def test_segments_are_the_kernels(version, size, length, sequence, number, flags, options):  # type: ignore[no-untyped-def]
    size = max(size, length // 60 + 1)
    source, destination = PAIRS[version]
    payload = np.random.default_rng(length).bytes(length)
    whole = tcp(
        payload,
        source,
        destination,
        sequence=sequence,
        flags=flags,
        options=options,
        number=number,
        partial=True,
    )
    packets = segments_of(whole, size)
    at = 20 if version == 4 else 40
    position = 0
    for index, packet in enumerate(packets):
        check_ip(packet)
        finished = complete_checksum(packet)
        check_transport(finished, at, TCP)
        part = payload_of(packet)
        assert part == payload[position : position + size]
        is_last = index == len(packets) - 1
        expected = flags if is_last else flags & ~0x09
        if index:
            expected &= ~0x80
        assert finished == tcp(
            part,
            source,
            destination,
            sequence=sequence + position,
            flags=expected,
            options=options,
            number=(number + index) % 65536,
        )
        position += len(part)
    assert position == length


def test_reads_are_distinguished() -> None:
    plain = tcp(b"x" * 10)
    assert read(VNET.pack(0, 0, 0, 0, 0, 0) + plain) == (plain, 0)
    assert read(VNET.pack(1, 1, 40, 1374, 20, 16) + plain) == (plain, 1374)
    assert read(VNET.pack(1, 0x81, 40, 1374, 20, 16) + plain) == (plain, 1374)
    for wrong in (
        b"",
        bytes(9),
        VNET.pack(1, 3, 0, 1374, 20, 6) + plain,
        VNET.pack(1, 1, 0, 0, 20, 16) + plain,
    ):
        with pytest.raises(PacketError):
            read(wrong)
    with pytest.raises(PacketError):
        read(VNET.pack(1, 0, 0, 0, 500, 16) + bytes(30))


def test_a_checksum_that_no_receiver_would_know_of_is_finished_at_once() -> None:
    source, destination = PAIRS[6]
    inner = udp(b"abc", source, destination)[40:]
    packet = ip(60, bytes((UDP, 0)) + bytes(6) + inner, source, destination)
    partial = words_sum(pseudo_header(packet, len(inner), UDP))
    packet = packet[:54] + partial.to_bytes(2, "big") + packet[56:]
    finished, size = read(VNET.pack(1, 0, 0, 0, 48, 6) + packet)
    assert size == 0
    assert finished[48:] == inner


@settings(max_examples=80)
@given(
    version=st.sampled_from([4, 6]),
    lengths=st.lists(st.integers(0, 1374), min_size=1, max_size=80),
    breaks=st.sets(st.integers(0, 79)),
    options=st.sampled_from([b"", STAMPS]),
    full=st.booleans(),
)
def test_joined_segments_carry_the_same_stream(version, lengths, breaks, options, full):  # type: ignore[no-untyped-def]
    source, destination = PAIRS[version]
    packets, sequence, ack = [], 7, 1
    for index, length in enumerate(lengths):
        length = 1300 if full and length else length
        if index in breaks:
            ack += 1
        part = bytes([index]) * length
        packets.append(
            tcp(part, source, destination, sequence=sequence, ack=ack, options=options, partial=True)
        )
        sequence += length
    at = 20 if version == 4 else 40
    stream, writes = b"", joined(packets)
    for write in writes:
        (flags, kind, head_bytes, size, start, offset), packet = header_and_packet(write)
        check_ip(packet)
        seen = look(packet)
        assert (flags, start, offset) == (1, at, 16)
        assert int.from_bytes(packet[at + 16 : at + 18], "big") == words_sum(
            pseudo_header(packet, len(packet) - at, TCP)
        ), "unfinished, as the kernel wants it"
        if kind:
            assert kind == (1 if version == 4 else 4)
            assert head_bytes == len(packet) - seen.payload
            assert 0 < size < seen.payload
        sequence = int.from_bytes(packet[at + 4 : at + 8], "big")
        assert sequence == (7 + len(stream)) % 2**32
        stream += payload_of(packet)
    assert stream == b"".join(map(payload_of, packets))
    acks = [int.from_bytes(header_and_packet(write)[1][at + 8 : at + 12], "big") for write in writes]
    assert acks == sorted(acks)
    if full and not breaks and all(lengths):
        assert len(writes) <= -(-len(packets) * 1300 // 62_000) + 1, "they were joined"


def test_only_what_belongs_together_is_joined() -> None:
    def writes(*packets: bytes) -> int:
        return len(joined(packets))

    first = tcp(b"a" * 100, sequence=0)
    assert writes(first, tcp(b"b" * 100, sequence=100)) == 1
    assert writes(first, tcp(b"b" * 100, sequence=101)) == 2, "a gap"
    assert writes(first, tcp(b"b" * 101, sequence=100)) == 2, "a longer one"
    assert writes(first, tcp(b"b" * 50, sequence=100), tcp(b"c" * 50, sequence=150)) == 2, (
        "behind a shorter one"
    )
    assert writes(tcp(b"a" * 100, sequence=0, flags=0x18), tcp(b"b" * 100, sequence=100)) == 2, (
        "behind a push"
    )
    assert writes(first, tcp(b"b" * 100, sequence=100, flags=0x18)) == 1, "the push is last"
    assert writes(first, tcp(b"b" * 100, sequence=100, tos=3)) == 2, "a congestion mark"
    assert writes(first, tcp(b"b" * 100, sequence=100, ports=(1, 2))) == 2
    assert writes(first, tcp(b"b" * 100, sequence=100, options=STAMPS)) == 2
    assert writes(first, tcp(sequence=100), tcp(b"b" * 100, sequence=100)) == 3, "an ACK keeps its place"
    assert writes(first, udp(b"u"), tcp(b"b" * 100, sequence=100)) == 2


def test_fragments_are_written_as_they_are() -> None:
    whole = udp(bytes(range(200)) * 10, df=False)
    part = ip(UDP, whole[20:820], df=False, word=0x2000)
    rest = ip(UDP, whole[820:], df=False, word=100)
    for fragment in (part, rest):
        (write,) = joined([fragment])
        (flags, *_), packet = header_and_packet(write)
        assert (flags, packet) == (0, fragment)


@settings(max_examples=60)
@given(
    payload=st.binary(min_size=1, max_size=20_000),
    size=st.integers(400, 1400),
    sequence=st.integers(0, 2**32 - 1),
    version=st.sampled_from([4, 6]),
    push=st.booleans(),
    options=st.sampled_from([b"", bytes(12)]),
)
def test_what_is_cut_is_joined_again(payload, size, sequence, version, push, options):  # type: ignore[no-untyped-def]
    source, destination = PAIRS[version]
    flags = 0x18 if push else 0x10
    whole = tcp(
        payload,
        source,
        destination,
        sequence=sequence,
        flags=flags,
        options=options,
        number=9,
        partial=True,
    )
    (write,) = joined(segments_of(whole, size))
    (_, kind, _, segment_bytes, _, _), packet = header_and_packet(write)
    assert packet == whole
    assert (kind, segment_bytes) == ((1 if version == 4 else 4, size) if len(payload) > size else (0, 0))


@given(st.binary(max_size=80))
def test_what_is_no_read_raises_only_packet_errors(data: bytes) -> None:
    try:
        read(data)
    except PacketError as error:
        assert error.reason.startswith("inner_")  # noqa: PT017
