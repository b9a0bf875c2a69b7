"""Tunnel rules, super-packets and checksums, against independent computation."""

from __future__ import annotations

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent import offload, tunnel
from host_agent.checksum import complete
from host_agent.inner_packet import PacketError, look, reverse_flow

# RFC 6040, figure 4: rows inner (Not-ECT, ECT(0), ECT(1), CE), columns outer (Not-ECT, ECT(0), ECT(1), CE); None: drop
RFC6040 = {
    0b00: {0b00: 0b00, 0b10: 0b00, 0b01: 0b00, 0b11: None},
    0b10: {0b00: 0b10, 0b10: 0b10, 0b01: 0b01, 0b11: 0b11},
    0b01: {0b00: 0b01, 0b10: 0b01, 0b01: 0b01, 0b11: 0b11},
    0b11: {0b00: 0b11, 0b10: 0b11, 0b01: 0b11, 0b11: 0b11},
}


def internet_sum(data: bytes) -> int:
    """RFC 1071, a byte at a time."""
    total = 0
    for index, byte in enumerate(data):
        total += byte << (8 if index % 2 == 0 else 0)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def v4(
    payload: bytes, protocol: int = 6, ecn: int = 0, fragment: int = 0, source: str = "10.128.1.1"
) -> bytes:
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, ecn, 20 + len(payload), 77, fragment, 64, protocol, 0,
        ipaddress.ip_address(source).packed, ipaddress.ip_address("10.128.2.1").packed,
    )  # fmt: skip
    return head[:10] + (0xFFFF - internet_sum(head)).to_bytes(2, "big") + head[12:] + payload


def v6(payload: bytes, following: int = 6, ecn: int = 0) -> bytes:
    addresses = ipaddress.ip_address("fd00:ca::1:1").packed + ipaddress.ip_address("fd00:ca::2:1").packed
    return struct.pack("!IHBB", 6 << 28 | ecn << 20, len(payload), following, 64) + addresses + payload


def tcp(sequence: int, payload: bytes, flags: int = 0x10, options: bytes = b"") -> bytes:
    offset = (20 + len(options)) // 4 << 4
    return struct.pack("!HHIIBBHHH", 1, 2, sequence, 9, offset, flags, 500, 0, 0) + options + payload


@pytest.mark.parametrize("inner", RFC6040)
@pytest.mark.parametrize("outer", range(4))
@pytest.mark.parametrize("make", [v4, v6])
def test_ecn_is_carried_as_rfc_6040_says(inner: int, outer: int, make: object) -> None:
    packet = v4(b"x" * 20, ecn=inner) if make is v4 else v6(b"x" * 20, ecn=inner)
    after = tunnel.decapsulate_ecn(packet, outer)
    expected = RFC6040[inner][outer]
    if expected is None:
        assert after is None
        return
    assert after is not None
    assert tunnel.ecn_of(after) == expected
    if make is v4:
        assert internet_sum(after[:20]) == 0xFFFF
    assert after[20:] == packet[20:]


def test_too_big_v4_names_the_mtu_and_quotes_the_packet() -> None:
    packet = v4(tcp(5, bytes(1480)), fragment=0x4000)
    answer = tunnel.too_big(packet, 1426)
    assert answer is not None
    assert internet_sum(answer[:20]) == 0xFFFF
    assert internet_sum(answer[20:]) == 0xFFFF
    assert answer[12:20] == packet[16:20] + packet[12:16]
    kind, code, _, _, mtu = struct.unpack_from("!BBHHH", answer, 20)
    assert (kind, code, mtu) == (3, 4, 1426)
    assert answer[28:56] == packet[:28]


def test_too_big_v6_is_at_most_1280_bytes_and_checks() -> None:
    packet = v6(tcp(5, bytes(1480)))
    answer = tunnel.too_big(packet, 1426)
    assert answer is not None
    assert len(answer) <= 1280
    pseudo = answer[8:40] + struct.pack("!IHBB", len(answer) - 40, 0, 0, 58)
    assert internet_sum(pseudo + answer[40:]) == 0xFFFF
    assert answer[40:42] == b"\x02\x00"
    assert int.from_bytes(answer[44:48], "big") == 1426


def test_no_icmp_error_about_an_icmp_error() -> None:
    assert tunnel.too_big(v4(b"\x03\x01" + bytes(1500), protocol=1), 1426) is None
    assert tunnel.too_big(v6(b"\x01\x00" + bytes(1500), following=58), 1426) is None


@given(st.binary(min_size=1, max_size=4000), st.integers(68, 1500))
def test_fragments_come_together_again(payload: bytes, mtu: int) -> None:
    packet = v4(payload, protocol=17)
    body = bytearray(len(payload))
    pieces = tunnel.fragment(packet, mtu)
    for index, piece in enumerate(pieces):
        assert len(piece) <= mtu
        assert internet_sum(piece[:20]) == 0xFFFF
        field = int.from_bytes(piece[6:8], "big")
        assert bool(field & 0x2000) == (index < len(pieces) - 1)
        start = (field & 0x1FFF) * 8
        body[start : start + len(piece) - 20] = piece[20:]
    assert bytes(body) == payload


@given(
    st.binary(min_size=1, max_size=20000),
    st.integers(100, 1400),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0x10, 0x18, 0x11, 0x19]),
    st.booleans(),
    st.sampled_from([b"", bytes(12)]),
)
def test_super_packets_are_cut_as_the_kernel_would_and_put_together_again(
    payload: bytes, size: int, sequence: int, flags: int, four: bool, options: bytes
) -> None:
    segment = tcp(sequence, payload, flags, options)
    packet = v4(segment, fragment=0x4000) if four else v6(segment)
    kind = offload.GSO_TCP4 if four else offload.GSO_TCP6
    read = offload.VNET_HEADER.pack(1, kind, 0, size, 20 if four else 40, 16) + packet
    pieces = offload.segments(read)
    joined = b""
    for index, piece in enumerate(pieces):
        seen = look(piece)
        assert seen.payload <= size
        at = seen.transport
        if four:
            assert internet_sum(piece[:20]) == 0xFFFF
        assert int.from_bytes(piece[at + 4 : at + 8], "big") == (sequence + len(joined)) % 2**32
        last = index == len(pieces) - 1
        assert piece[at + 13] == (flags if last else flags & ~0x09)
        joined += piece[at + 20 + len(options) :]
    assert joined == payload

    writes = offload.coalesce(pieces)
    delivered = b"".join(write[10 + look(write[10:]).transport + 20 + len(options) :] for write in writes)
    assert delivered == payload
    if flags in (0x10, 0x18):
        assert len(writes) == 1
        if four:
            assert internet_sum(writes[0][10:30]) == 0xFFFF


def test_segments_of_different_flows_or_with_gaps_are_not_joined() -> None:
    first, second = v4(tcp(0, bytes(100))), v4(tcp(200, bytes(100)))
    other = v4(tcp(100, bytes(100)), source="10.128.1.9")
    assert len(offload.coalesce([first, second, other])) == 3
    assert len(offload.coalesce([first, v4(tcp(100, bytes(100))), other])) == 2


@given(st.binary(max_size=80))
def test_what_is_no_packet_raises_only_packet_errors(data: bytes) -> None:
    for call in (look, offload.segments):
        try:
            call(data)
        except PacketError as error:
            assert error.reason.startswith("inner_")  # noqa: PT017


@given(st.binary(max_size=300), st.sampled_from([6, 17]), st.booleans())
def test_completed_checksums_verify(payload: bytes, protocol: int, four: bool) -> None:
    segment = tcp(1, payload) if protocol == 6 else struct.pack("!HHHH", 1, 2, 8 + len(payload), 0) + payload
    packet = v4(segment, protocol) if four else v6(segment, protocol)
    done = complete(packet, look(packet))
    at = 20 if four else 40
    addresses = done[12:20] if four else done[8:40]
    assert internet_sum(addresses + struct.pack("!IHH", len(segment), 0, protocol) + done[at:]) == 0xFFFF


def test_the_reverse_of_a_flow_is_that_of_its_answers() -> None:
    packet = v4(tcp(0, b""))
    answer = bytearray(packet)
    answer[12:16], answer[16:20] = packet[16:20], packet[12:16]
    answer[20:22], answer[22:24] = packet[22:24], packet[20:22]
    assert reverse_flow(look(packet).flow) == look(bytes(answer)).flow
