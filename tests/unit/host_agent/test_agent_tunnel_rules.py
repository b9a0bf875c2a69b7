"""Tunnel rules of an agent: ECN (RFC 6040), ICMP errors, fragments; checksums are computed by other code than its."""

from __future__ import annotations

import ipaddress

import numpy as np
import pytest
from capstan_native import complete_checksum
from hypothesis import given
from hypothesis import strategies as st

from host_agent.checksum import checksum
from host_agent.core import AgentCore
from host_agent.inner_packet import PacketError, look
from protocol.datagram import HEADER_BYTES
from tests.unit.agent_relay import PEERS, SESSIONS, UNDERLAY, core
from tests.unit.inner_packets import (
    HOST1,
    HOST1_V6,
    HOST2,
    HOST2_V6,
    ICMP,
    ICMPV6,
    TCP,
    UDP,
    check_ip,
    check_transport,
    ip,
    reassembled,
    tcp,
    udp,
    words_sum,
)

NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
RFC_6040_FIGURE_4 = {
    # (inner, outer): what leaves the tunnel; None: dropped
    (NOT_ECT, NOT_ECT): NOT_ECT,
    (NOT_ECT, ECT0): NOT_ECT,
    (NOT_ECT, ECT1): NOT_ECT,
    (NOT_ECT, CE): None,
    (ECT0, NOT_ECT): ECT0,
    (ECT0, ECT0): ECT0,
    (ECT0, ECT1): ECT1,
    (ECT0, CE): CE,
    (ECT1, NOT_ECT): ECT1,
    (ECT1, ECT0): ECT1,
    (ECT1, ECT1): ECT1,
    (ECT1, CE): CE,
    (CE, NOT_ECT): CE,
    (CE, ECT0): CE,
    (CE, ECT1): CE,
    (CE, CE): CE,
}
PAIRS = [(HOST1, HOST2), (HOST1_V6, HOST2_V6)]


def agent(mtu: int = 1426) -> AgentCore:
    """Return the first host's agent; mtu: bytes of the largest packet that it takes."""
    made = AgentCore("h1", SESSIONS[0], mtu, np.random.default_rng(0))
    made.set_directory(PEERS, 0.0)
    return made


def sent(packet: bytes, mtu: int) -> tuple[list[bytes], list[bytes]]:
    """Return what leaves in datagrams when the host sends *packet*, and what the host gets."""
    made = agent(mtu)
    made.packet_from_host(packet, 0.0)
    return [out.data[HEADER_BYTES:] for out in made.datagrams_to_send()], made.packets_to_deliver()


def too_big(packet: bytes, mtu: int) -> bytes | None:
    """Return the error that the host gets for a packet above the MTU, None if none; assert that nothing leaves."""
    left, answers = sent(packet, mtu)
    assert left == []
    assert len(answers) <= 1
    return answers[0] if answers else None


def elsewhere(packet: bytes) -> bytes:
    """Return *packet* with a destination address that no host has."""
    other = ipaddress.ip_address("10.128.9.9" if packet[0] >> 4 == 4 else "fd00:ca::9:9").packed
    at = 16 if len(other) == 4 else 24
    return packet[:at] + other + packet[at + len(other) :]


def unreachable(packet: bytes) -> bytes | None:
    """Return the error that the host gets for an address that no host has, None if it gets none."""
    made = agent(9000)
    made.packet_from_host(elsewhere(packet), 0.0)
    assert made.datagrams_to_send() == []
    answers = made.packets_to_deliver()
    return answers[0] if answers else None


@pytest.mark.parametrize(("source", "destination"), PAIRS)
@pytest.mark.parametrize(("inner", "outer"), RFC_6040_FIGURE_4)
def test_ecn_leaves_the_tunnel_as_rfc_6040_says(
    inner: int, outer: int, source: str, destination: str
) -> None:
    sender, receiver = core(0), core(1)
    sender.packet_from_host(tcp(b"x" * 9, source, destination, tos=0xB8 | inner), 0.0)
    (out,) = sender.datagrams_to_send()
    assert out.tos & 3 == inner, "RFC 6040, 4.1: the outer header gets the inner one's field"
    receiver.receive_datagram(out.data, UNDERLAY[0], out.source_port, out.tos & ~3 | outer, now=0.0)
    expected = RFC_6040_FIGURE_4[inner, outer]
    got = receiver.packets_to_deliver()
    if expected is None:
        assert got == []
        return
    assert got == [tcp(b"x" * 9, source, destination, tos=0xB8 | expected)]


@given(st.binary(max_size=90))
def test_checksum_is_that_of_rfc_1071(data: bytes) -> None:
    assert checksum(data) == 0xFFFF - words_sum(data)


@pytest.mark.parametrize(("source", "destination"), PAIRS)
@given(size=st.integers(0, 1400))
def test_an_unfinished_checksum_is_finished(source: str, destination: str, size: int) -> None:
    payload = bytes(range(256)) * 6
    for build in (tcp, udp):
        packet = build(payload[:size], source, destination, partial=True)  # type: ignore[operator]
        assert complete_checksum(packet) == build(payload[:size], source, destination)  # type: ignore[operator]


@pytest.mark.parametrize("options", [b"", b"\x94\x04\0\0"])
@given(more=st.integers(1, 100), mtu=st.integers(576, 1480))
def test_icmp_says_what_fits(more: int, mtu: int, options: bytes) -> None:
    packet = ip(UDP, bytes(mtu - 20 - len(options) + more), options=options)
    error = too_big(packet, mtu)
    assert error is not None
    check_ip(error)
    assert error[12:20] == packet[16:20] + packet[12:16], "from where it went, to where it came from"
    assert error[9] == ICMP
    message = error[20:]
    assert words_sum(message) == 0xFFFF
    assert message[:2] == bytes((3, 4))
    assert int.from_bytes(message[6:8], "big") == mtu
    assert message[8:] == packet[: 20 + len(options) + 8]


@given(st.integers(1, 200), st.integers(1280, 1480))
def test_icmpv6_says_what_fits(more: int, mtu: int) -> None:
    packet = udp(bytes(mtu - 48 + more), HOST1_V6, HOST2_V6)
    error = too_big(packet, mtu)
    assert error is not None
    check_ip(error)
    check_transport(error, 40, ICMPV6)
    assert error[8:40] == packet[24:40] + packet[8:24]
    assert error[40:42] == bytes((2, 0))
    assert int.from_bytes(error[44:48], "big") == mtu
    assert packet.startswith(error[48:])
    assert len(error) == 1280


def test_unreachable_hosts_are_answered() -> None:
    answer = unreachable(tcp(b"data"))
    assert answer is not None
    check_ip(answer)
    assert answer[20:22] == bytes((3, 1))
    answer = unreachable(tcp(b"data", HOST1_V6, HOST2_V6))
    assert answer is not None
    check_transport(answer, 40, ICMPV6)
    assert answer[40:42] == bytes((1, 3))


@pytest.mark.parametrize(
    "packet",
    [
        ip(ICMP, bytes((3, 1, 0, 0)) + bytes(1424)),
        ip(ICMP, bytes((11, 0, 0, 0)) + bytes(1424)),
        ip(UDP, bytes(1440), word=100),
        ip(ICMPV6, bytes((1, 3, 0, 0)) + bytes(1448), HOST1_V6, HOST2_V6),
    ],
    ids=["unreachable", "time exceeded", "later fragment", "unreachable v6"],
)
def test_no_errors_about_errors_or_later_fragments(packet: bytes) -> None:
    assert unreachable(packet) is None
    assert too_big(packet, 1280) is None


@pytest.mark.parametrize(
    "packet",
    [
        ip(ICMP, b""),
        ip(ICMPV6, b"", HOST1_V6, HOST2_V6),
        ip(UDP, bytes(40), source="0.0.0.0"),
        ip(UDP, bytes(40), source="224.0.0.9"),
        ip(UDP, bytes(40), "::", HOST2_V6),
        ip(UDP, bytes(40), "ff02::1", HOST2_V6),
    ],
    ids=["empty icmp", "empty icmpv6", "no source", "group source", "no source v6", "group source v6"],
)
def test_no_errors_to_groups_and_about_nothing(packet: bytes) -> None:
    assert unreachable(packet) is None


@given(
    more=st.integers(1, 2600),
    mtu=st.integers(68, 1426),
    offset=st.integers(0, 1000),
    following=st.booleans(),
    options=st.sampled_from([b"", b"\x94\x04\0\0", b"\x01\x01\x01\x01"]),
)
def test_fragments_come_together_again(
    more: int, mtu: int, offset: int, following: bool, options: bytes
) -> None:
    body = bytes(index * 7 % 251 for index in range(mtu - 20 - len(options) + more))
    whole_word = offset | (0x2000 if following else 0)
    packet = ip(253, body, df=False, word=whole_word, options=options, number=99)
    parts, answers = sent(packet, mtu)
    assert answers == []
    assert all(len(part) <= mtu for part in parts)
    assert all(part[4:6] == (99).to_bytes(2, "big") and part[12:20] == packet[12:20] for part in parts)
    words = [int.from_bytes(part[6:8], "big") for part in parts]
    assert [bool(word & 0x2000) for word in words] == [True] * (len(parts) - 1) + [following]
    # as if the packet itself had been whole, so that offsets begin at 0
    shifted = []
    for part, word in zip(parts, words, strict=True):
        check_ip(part)
        last = part is parts[-1]
        plain = ip(
            253,
            part[(part[0] & 15) * 4 :],
            df=False,
            word=((word & 0x1FFF) - offset) | (0 if last else 0x2000),
        )
        shifted.append(plain)
    assert reassembled(shifted) == body


def test_a_checksum_that_fragments_cannot_finish_is_finished_before() -> None:
    parts, _ = sent(udp(bytes(range(250)) * 12, df=False, partial=True), 1400)
    body = reassembled(parts)
    assert body == udp(bytes(range(250)) * 12, df=False)[20:]


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        seen = look(data)
    except PacketError as error:
        assert error.reason.startswith("inner_")  # noqa: PT017
        return
    size = len(seen.destination)
    assert seen.flow[1 + size : 1 + 2 * size] == seen.destination
    assert 0 <= seen.payload <= len(data)
    assert 20 <= seen.transport <= len(data)


@given(
    st.binary(max_size=60),
    st.sampled_from([0x45, 0x46, 0x4F, 0x60]),
    st.sampled_from([TCP, UDP, ICMP, 44, 0, 60, 43]),
)
def test_what_looks_nearly_like_a_packet_is_read_or_refused(rest: bytes, first: int, protocol: int) -> None:
    if first == 0x60:
        data = (
            bytes((first, 0, 0, 0)) + len(rest).to_bytes(2, "big") + bytes((protocol, 64)) + bytes(32) + rest
        )
    else:
        head = bytearray(20)
        head[0], head[9] = first, protocol
        head[2:4] = (20 + len(rest)).to_bytes(2, "big")
        data = bytes(head) + rest
    try:
        seen = look(data)
    except PacketError:
        return
    assert 0 <= seen.payload <= len(data) - seen.transport


def test_headers_are_read() -> None:
    for source, destination, offset in ((HOST1, HOST2, 20), (HOST1_V6, HOST2_V6, 40)):
        seen = look(tcp(b"12345", source, destination, options=bytes(12), flags=0x18))
        assert (seen.protocol, seen.transport, seen.payload, seen.control, seen.push) == (
            TCP,
            offset,
            5,
            False,
            True,
        )
        assert seen.destination == ipaddress.ip_address(destination).packed
        assert seen.flow[-4:] == bytes.fromhex("9c400050")
        assert look(tcp(b"", destination, source, ports=(80, 40000))).control
    behind = ip(60, bytes((UDP, 0)) + bytes(6) + udp(b"abc", HOST1_V6, HOST2_V6)[40:], HOST1_V6, HOST2_V6)
    seen = look(behind)
    assert (seen.protocol, seen.transport, seen.payload) == (UDP, 48, 3)


def test_control_packets_are_those_without_data() -> None:
    assert look(tcp(flags=0x02)).control, "SYN"
    assert look(tcp(flags=0x12)).control, "SYN, ACK"
    assert look(tcp(flags=0x10)).control, "pure ACK"
    assert look(tcp(flags=0x11)).control, "FIN without data"
    assert look(tcp(flags=0x14)).control, "RST"
    assert look(ip(ICMP, b"\x08\0\0\0")).control
    assert not look(tcp(b"x", flags=0x19)).control, "the last data packet often carries the FIN"
    assert not look(tcp(b"x")).control
    assert not look(udp(b"x")).control


def test_all_fragments_of_a_packet_are_one_flow() -> None:
    parts, _ = sent(udp(bytes(3000), df=False), 1400)
    assert len(parts) == 3
    assert len({look(part).flow for part in parts}) == 1
    assert not any(look(part).control for part in parts), "they are data"
