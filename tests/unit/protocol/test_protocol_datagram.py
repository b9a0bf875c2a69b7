"""The datagram format: what is encoded comes back, and nothing that a peer sends does harm."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.datagram import CodeId
from protocol.underlay import TrafficClass, class_of_dscp, dscp
from tests.unit import datagram_reference as datagram
from tests.unit.datagram_reference import DatagramError, Feedback, Header, Kind, Receipt, RepairHead

u32 = st.integers(0, 2**32 - 1)
headers = st.builds(
    Header,
    kind=st.sampled_from(Kind),
    traffic_class=st.sampled_from(TrafficClass),
    session=u32,
    number=u32,
    sent_us=u32,
    flow=u32,
    position=u32,
    coded=st.booleans(),
)


def crc32c_bitwise(data: bytes) -> int:
    """Return the CRC-32C by its definition (reflected polynomial 0x82F63B78), a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(headers, st.binary(max_size=1500))
def test_a_datagram_comes_back_as_it_was(header: Header, body: bytes) -> None:
    decoded, rest = datagram.decode(datagram.encode(header, body))
    assert decoded == header
    assert bytes(rest) == body


@given(headers, st.binary(max_size=40))
def test_the_crc_is_crc32c_of_the_datagram_with_a_zero_crc(header: Header, body: bytes) -> None:
    wire = datagram.encode(header, body)
    zeroed = wire[: datagram.CRC_OFFSET] + bytes(4) + wire[datagram.CRC_OFFSET + 4 :]
    assert int.from_bytes(wire[28:32], "big") == crc32c_bitwise(zeroed)


@given(headers, st.binary(max_size=200), st.data())
def test_any_flipped_bit_is_noticed(header: Header, body: bytes, data: st.DataObject) -> None:
    wire = bytearray(datagram.encode(header, body))
    bit = data.draw(st.integers(0, len(wire) * 8 - 1))
    wire[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DatagramError):
        datagram.decode(bytes(wire))


@given(st.binary(max_size=300))
@example(b"\xca\x11" + bytes(30))
def test_arbitrary_bytes_raise_only_datagram_errors(wire: bytes) -> None:
    with pytest.raises(DatagramError) as caught:
        datagram.decode(wire)
    assert caught.value.reason in {"truncated", "foreign", "version", "kind", "crc"}


@given(
    st.sampled_from(CodeId), st.integers(1, 255), st.integers(1, 255), u32, st.binary(min_size=2, max_size=50)
)
def test_repair_heads_come_back(code: CodeId, k: int, r: int, seed: int, symbol: bytes) -> None:
    head = RepairHead(code, k, r, r - 1, seed)
    decoded, rest = datagram.decode_repair(memoryview(datagram.encode_repair(head) + symbol))
    assert decoded == head
    assert bytes(rest) == symbol


@given(st.binary(max_size=80))
def test_arbitrary_bodies_raise_only_datagram_errors(body: bytes) -> None:
    for decode in (datagram.decode_repair, Feedback.decode):
        with contextlib.suppress(DatagramError):
            decode(memoryview(body))


@given(
    u32, st.lists(st.tuples(st.integers(-32768, 32767), st.integers(0, 4095), u32), max_size=128), st.data()
)
def test_feedback_comes_back_also_across_the_wrap(
    first: int, rest: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    receipts = [Receipt((first + offset) % 2**32, stamp, delay) for offset, stamp, delay in rest]
    if receipts:
        receipts[0] = Receipt(first, receipts[0].stamp, receipts[0].delay_us)
    lost = data.draw(st.lists(st.tuples(u32, u32), max_size=32))
    feedback = Feedback(tuple(receipts), tuple(lost), recovered=7)
    assert Feedback.decode(memoryview(feedback.encode())) == feedback


def test_dscp_carries_class_and_priority_in_six_bits() -> None:
    seen = {dscp(kind, level): kind for kind in TrafficClass for level in range(8)}
    assert len(seen) == 32
    assert max(seen) < 64
    assert all(class_of_dscp(value) is kind for value, kind in seen.items())
    assert class_of_dscp(46) is TrafficClass.NONE
