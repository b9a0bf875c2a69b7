"""LLDP and ARP frames on the wire."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from controller.fabric.arp import Arp, decode_arp, is_host_address, is_host_mac
from controller.fabric.graph import PortRef
from controller.fabric.lldp import MAX_AGE_S, decode_lldp, encode_lldp
from controller.openflow.arp_probes import ARP_BYTES
from controller.openflow.punts import LLDP_BYTES

KEY = b"k" * 16
refs = st.builds(PortRef, st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1))
macs = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
addresses = st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number)))


@given(refs, st.floats(0, 1e7))
def test_lldp_comes_back_as_it_was_sent_and_fits_a_packet_in(ref: PortRef, now: float) -> None:
    frame = encode_lldp(ref, now, KEY)
    assert decode_lldp(frame, now + 0.3, KEY) == ref
    assert decode_lldp(frame + bytes(10), now, KEY) == ref  # padded by a short-frame port
    assert len(frame) <= LLDP_BYTES


def test_lldp_is_what_ieee_802_1ab_says() -> None:
    """Chassis id, port id and time to live first, in this order; nearest bridge; an end."""
    frame = encode_lldp(PortRef(0x20003, 7), 5.0, KEY)
    assert frame[:6].hex() == "0180c200000e"
    assert frame[12:14].hex() == "88cc"
    kinds, offset = [], 14
    while offset < len(frame):
        head = int.from_bytes(frame[offset : offset + 2], "big")
        kinds.append((head >> 9, frame[offset + 2 : offset + 2 + (head & 0x1FF)]))
        offset += 2 + (head & 0x1FF)
    assert [kind for kind, _ in kinds] == [1, 2, 3, 127, 0]
    assert kinds[0][1] == b"\x070000000000020003"
    assert kinds[1][1] == b"\x077"


@given(refs, st.integers(0, 10_000), st.integers(1, 255))
def test_a_forged_lldp_frame_is_not_believed(ref: PortRef, position: int, flip: int) -> None:
    frame = bytearray(encode_lldp(ref, 1.0, KEY))
    signed = range(len(frame) - 2 - 36, len(frame) - 2)  # dpid, port, time, digest
    frame[signed[position % len(signed)]] ^= flip
    assert decode_lldp(bytes(frame), 1.0, KEY) is None


def test_others_lldp_is_not_ours() -> None:
    frame = encode_lldp(PortRef(1, 2), 100.0, KEY)
    assert decode_lldp(frame, 100.0, b"other key of 16 b") is None
    assert decode_lldp(frame, 100.0 + MAX_AGE_S + 1, KEY) is None
    assert decode_lldp(frame, 50.0, KEY) is None
    foreign = bytes.fromhex(
        "0180c200000e 02aabbccddee 88cc 0207 04 02aabbccddee 0405 05 65746830 0602 0078 0000"
    )
    assert decode_lldp(foreign, 100.0, KEY) is None


@given(st.binary(max_size=200), st.binary(max_size=100))
def test_nothing_that_arrives_breaks_a_decoder(data: bytes, tail: bytes) -> None:
    decode_lldp(data, 1.0, KEY)
    decode_arp(data)
    head = bytes(12)
    assert decode_lldp(head + b"\x88\xcc" + tail, 1.0, KEY) is None
    decode_arp(head + b"\x08\x06" + tail)


@given(macs, macs, st.sampled_from([1, 2]), macs, addresses, macs, addresses)
def test_arp_comes_back_as_it_was_sent(
    dst: str, src: str, operation: int, sha: str, spa: str, tha: str, tpa: str
) -> None:
    arp = Arp(dst, src, operation, sha, spa, tha, tpa)  # type: ignore[arg-type]
    frame = arp.encode()
    assert decode_arp(frame + bytes(18)) == arp
    assert len(frame) <= ARP_BYTES
    assert decode_arp(frame[:-1]) is None


def test_arp_against_a_frame_from_the_wire() -> None:
    frame = bytes.fromhex(
        "ffffffffffff02ca000100010806000108000604000102ca000100010a0001010000000000000a000201"
    )
    assert decode_arp(frame) == Arp(
        "ff:ff:ff:ff:ff:ff",
        "02:ca:00:01:00:01",
        1,
        "02:ca:00:01:00:01",
        "10.0.1.1",
        "00:00:00:00:00:00",
        "10.0.2.1",
    )


def test_addresses_that_a_host_can_have() -> None:
    assert is_host_address("10.0.1.1")
    for address in ("0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1", "240.0.0.1"):
        assert not is_host_address(address)
    assert is_host_mac("02:ca:00:01:00:01")
    for mac in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00", "02:ca:95:00:00:01"):
        assert not is_host_mac(mac)
