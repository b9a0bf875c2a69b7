"""A session against a switch that says nonsense, too much, or nothing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.openflow import reading, session
from controller.openflow.errors import PeerError
from controller.openflow.replies import REPLY_LIMIT_BYTES
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import UpdateDone
from controller.openflow.wanted import (
    Difference,
)
from tests.unit.controller.openflow.bytes_switch import FLOW, handshake, meters, status
from tests.unit.switch_messages import (
    features,
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


def test_a_switch_of_an_older_version_is_told_so() -> None:
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
    one.timer(12.0)
    with pytest.raises(PeerError, match="silent for 15 s"):
        one.timer(6.0 + session.SILENCE_LIMIT_S)
    slow = OpenFlowSession(0.0)
    list(slow.receive(hello(6), 9.0))
    assert slow.deadline() == session.HANDSHAKE_LIMIT_S
    with pytest.raises(PeerError, match="no handshake within 10 s"):
        slow.timer(session.HANDSHAKE_LIMIT_S)


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
    one.apply(Difference(add_flows=(FLOW,)), whole=False)
    (*_, (_, flow_xid, _), _, (_, barrier, _)) = sent(one.data_to_send())
    error = message(ofp.OFPT_ERROR, flow_xid, struct.pack("!HH", ofp.OFPET_BAD_MATCH, 9))
    list(one.receive(error * 1000, 1.0))
    (done,) = one.receive(message(ofp.OFPT_BARRIER_REPLY, barrier), 1.0)
    assert isinstance(done, UpdateDone)
    assert len(done.errors) == session.MOST_ERRORS
