"""A session against a switch that says nonsense, too much, or nothing."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.fabric.switch_data import MeterReading
from controller.openflow import reading, session
from controller.openflow.errors import PeerError
from controller.openflow.inventory import InventoryReader
from controller.openflow.replies import REPLY_LIMIT_BYTES, Replies, ReplyRoom
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import MeterCount, UpdateDone
from controller.openflow.wanted import (
    Difference,
)
from tests.unit.controller.openflow.bytes_switch import FLOW, handshake, meters, status
from tests.unit.switch_messages import (
    features,
    flow_description,
    hello,
    message,
    multipart,
    sent,
)


@settings(max_examples=200)
@given(st.integers(0, 40), st.integers(0, 0xFFFF) | st.integers(0, 8), st.binary(max_size=120), st.booleans())
def test_nonsense_ends_the_connection_and_nothing_else(kind: int, xid: int, body: bytes, ready: bool) -> None:
    one = handshake()[0] if ready else OpenFlowSession(0.0)
    try:
        list(one.receive(message(kind, xid, body), 1.0))
        list(one.receive(body, 1.0))
    except PeerError:
        return
    one.data_to_send()


def test_a_switch_of_an_older_version_gets_the_reason() -> None:
    one = OpenFlowSession(0.0)
    with pytest.raises(PeerError, match="protocols=OpenFlow15"):
        list(one.receive(hello(1, 4), 0.0))
    two = OpenFlowSession(0.0)
    with pytest.raises(PeerError, match="wire version 4"):
        list(two.receive(hello(4, 6)[:1].replace(b"\x06", b"\x04") + features(1)[1:], 0.0))


def test_a_hello_without_bitmap_speaks_by_its_header() -> None:
    one = OpenFlowSession(0.0)
    one.data_to_send()
    list(one.receive(message(ofp.OFPT_HELLO, 1), 0.0))
    assert [kind for kind, _, _ in sent(one.data_to_send())] == [ofp.OFPT_FEATURES_REQUEST]


def test_silence_is_noticed() -> None:
    one, _ = handshake()
    assert one.deadline() == session.ECHO_INTERVAL_S
    one.timer(session.ECHO_INTERVAL_S)
    ((kind, xid, _),) = sent(one.data_to_send())
    assert kind == ofp.OFPT_ECHO_REQUEST
    assert one.deadline() == session.SILENCE_LIMIT_S
    list(one.receive(message(ofp.OFPT_ECHO_REPLY, xid), 6.0))
    assert one.deadline() == 6.0 + session.ECHO_INTERVAL_S
    one.timer(6.0 + session.ECHO_INTERVAL_S)
    with pytest.raises(PeerError, match="silent for 15 s"):
        one.timer(6.0 + session.SILENCE_LIMIT_S)
    slow = OpenFlowSession(0.0)
    list(slow.receive(hello(6), 9.0))
    assert slow.deadline() == session.HANDSHAKE_LIMIT_S
    with pytest.raises(PeerError, match="no handshake within 10 s"):
        slow.timer(session.HANDSHAKE_LIMIT_S)


def test_a_pause_of_the_controller_is_no_silence_of_a_switch() -> None:
    """A stopped process, say: what came meanwhile may still be unread, and the switch may have been stopped, too."""
    one, _ = handshake()
    one.timer(60.0)
    ((kind, xid, _),) = sent(one.data_to_send())
    assert kind == ofp.OFPT_ECHO_REQUEST
    one.timer(60.0 + session.ECHO_LIMIT_S - 0.1)
    list(one.receive(message(ofp.OFPT_ECHO_REPLY, xid), 69.95))
    one.timer(69.95 + session.ECHO_INTERVAL_S)
    with pytest.raises(PeerError, match="silent for 15 s"):
        one.timer(69.95 + session.SILENCE_LIMIT_S)


def test_a_switch_with_too_many_ports_is_refused() -> None:
    one, _ = handshake()
    list(one.receive(b"".join(map(status, range(3, reading.MOST_PORTS))), 1.0))
    list(one.receive(status(1) * 100, 1.0))  # the same port again is no other port
    with pytest.raises(PeerError, match="more than 4096 ports"):
        list(one.receive(b"".join(map(status, range(5000, 5010))), 1.0))


def test_a_reply_that_is_too_long_is_refused() -> None:
    one, _ = handshake(meters=meters(1))
    one.read_meters()
    ((_, xid, _),) = sent(one.data_to_send())
    part = multipart(ofp.OFPMP_METER_STATS, xid, bytes(65_000), more=True)
    for _ in range(REPLY_LIMIT_BYTES // 65_000):
        list(one.receive(part, 1.0))
    with pytest.raises(PeerError, match="longer than 32 MiB together"):
        list(one.receive(part, 1.0))


def test_a_reply_of_another_kind_than_was_asked_for_is_refused() -> None:
    one, _ = handshake(meters=meters(1))
    one.read_meters()
    ((_, xid, _),) = sent(one.data_to_send())
    with pytest.raises(PeerError, match="multipart reply of kind"):
        list(one.receive(multipart(ofp.OFPMP_FLOW_DESC, xid), 1.0))


def test_errors_about_one_update_are_kept_up_to_a_limit() -> None:
    one, _ = handshake()
    one.apply(Difference(add_flows=(FLOW,)), whole=False, now=1.0)
    (*_, (_, flow_xid, _), _, (_, barrier, _)) = sent(one.data_to_send())
    error = message(ofp.OFPT_ERROR, flow_xid, struct.pack("!HH", ofp.OFPET_BAD_MATCH, 9))
    list(one.receive(error * 1000, 1.0))
    (done,) = one.receive(message(ofp.OFPT_BARRIER_REPLY, barrier), 1.0)
    assert isinstance(done, UpdateDone)
    assert len(done.errors) == session.MOST_ERRORS


@pytest.mark.parametrize("what", ["updates", "meters"])
def test_a_switch_that_answers_nothing_is_refused_at_last(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lives, by its echo requests, and would have each update and each request for counters kept."""
    monkeypatch.setattr(session, "MOST_UNCONFIRMED", 20)
    open_session, _ = handshake(meters=meters(1))
    echo = message(ofp.OFPT_ECHO_REQUEST, 1)
    for _ in range(20):
        if what == "updates":
            open_session.apply(Difference(add_flows=(FLOW,)), whole=False, now=1.0)
        else:
            open_session.read_meters()
        assert not list(open_session.receive(echo, 1.0))
    open_session.apply(Difference(add_flows=(FLOW,)), whole=False, now=1.0)
    open_session.read_meters()
    with pytest.raises(PeerError, match="leaves more than 20 updates or requests unanswered"):
        list(open_session.receive(echo, 1.0))


def test_counts_of_meters_that_were_not_asked_for_are_not_kept() -> None:
    open_session, _ = handshake(meters=meters(1, 2))
    open_session.read_meters()
    ((_, first, _), (_, last, _)) = sent(open_session.data_to_send())
    row = struct.Struct("!IHxxxxxxIQQIIQQ")
    rows = [row.pack(meter, row.size, 1, 7, 8, 0, 0, 0, 0) for meter in range(1, 1000)]
    replies = multipart(ofp.OFPMP_METER_STATS, first, b"".join(rows)) + multipart(ofp.OFPMP_METER_STATS, last)
    assert list(open_session.receive(replies, 1.0)) == [
        MeterCount({1: MeterReading(7, 8), 2: MeterReading(7, 8)})
    ]


def test_replies_of_all_switches_together_have_room_and_give_it_back() -> None:
    room = ReplyRoom(most=200_000)
    part = multipart(ofp.OFPMP_FLOW_DESC, 1, bytes(60_000), more=True)

    def asking() -> Replies:
        made = Replies(Counter(), room)
        made.ask(1, ofp.OFPMP_FLOW_DESC)
        return made

    first, second = asking(), asking()
    for _ in range(3):
        assert first.take(1, part) is None
    with pytest.raises(PeerError, match="together to say"):
        second.take(1, part)
    second.close()
    first.close()
    assert room.taken == 0
    third = asking()
    assert third.take(1, part) is None
    assert third.take(1, multipart(ofp.OFPMP_FLOW_DESC, 1)) is not None
    assert room.taken == 0, "it is whole"


def test_above_half_of_the_room_a_switch_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.openflow.replies.REPLY_SHARE_BYTES", 70_000)
    room = ReplyRoom(most=400_000)
    part = multipart(ofp.OFPMP_FLOW_DESC, 1, bytes(60_000), more=True)
    large, small = Replies(Counter(), room), Replies(Counter(), room)
    for replies in (large, small):
        replies.ask(1, ofp.OFPMP_FLOW_DESC)
    for _ in range(3):
        large.take(1, part)
    assert small.take(1, part) is None
    with pytest.raises(PeerError, match="it may try again"):
        large.take(1, part)


@pytest.mark.parametrize("cut", range(0, 200, 8))
def test_an_inventory_is_the_same_however_its_replies_are_cut(cut: int) -> None:
    flows = flow_description(FLOW, 7) + flow_description(FLOW, 8) + flow_description(FLOW, 9)
    whole, parts = InventoryReader(), InventoryReader()
    whole.flows(flows, True)
    whole.meters(meters(1, 2, 3), True)
    for read, body in ((parts.flows, flows), (parts.meters, meters(1, 2, 3))):
        read(body[:cut], False)
        read(body[cut:], True)
    assert whole.inventory() == parts.inventory()
    assert whole.inventory().meters == {1, 2, 3}


def test_entries_of_all_parts_together_have_a_number() -> None:
    reader, part = InventoryReader(), meters(*range(1, 1001))
    for _ in range(16):
        reader.meters(part, False)
    with pytest.raises(PeerError, match="more than 16384 entries: meter statistics"):
        reader.meters(part, True)


@pytest.mark.slow
def test_a_leaf_of_30_000_hosts_connects_again() -> None:
    """It has three entries for each host of another leaf."""
    reader, part = InventoryReader(), flow_description(FLOW, 7) * 500
    for _ in range(3 * 30_000 // 500):
        reader.flows(part, False)
    reader.flows(b"", True)
    assert reader.inventory().generations == {7}


def test_a_reply_is_read_as_it_comes_and_not_in_one_step_at_its_end() -> None:
    """32 MiB of entries took seconds in which no other switch was served; a part of them is refused as it comes."""
    one = OpenFlowSession(0.0)
    one.data_to_send()
    list(one.receive(hello(6), 0.0))
    ((_, xid, _),) = sent(one.data_to_send())
    list(one.receive(features(xid), 0.0))
    flow_xid = next(
        xid
        for _, xid, request in sent(one.data_to_send())
        if request[8:10] == struct.pack("!H", ofp.OFPMP_FLOW_DESC)
    )
    wrong = bytearray(flow_description(FLOW, 7))
    wrong[26:28] = struct.pack("!H", 2)  # the length of its match
    with pytest.raises(PeerError):
        list(one.receive(multipart(ofp.OFPMP_FLOW_DESC, flow_xid, bytes(wrong) * 3, more=True), 0.0))
