"""What switches send is read in bounded steps, whatever lengths it says; what is valid reads as os-ken reads it."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp
from os_ken.ofproto import ofproto_v1_5_parser as osken

from controller.openflow import codec, reading
from controller.openflow.cookies import Rule
from controller.openflow.errors import PeerError
from controller.openflow.lengths import MalformedError
from controller.openflow.session import OpenFlowSession
from controller.openflow.tables import Table
from controller.openflow.wanted import (
    FlowRule,
    Match,
    Output,
    SetField,
    ThroughMeter,
    ToController,
    ToGroup,
    ToQueue,
)
from tests.unit.switch_messages import (
    features,
    flow_description,
    hello,
    message,
    multipart,
    packet_in,
    port,
)

STEPS_PER_BYTE = 40
"""Calls of any function, most that a reader may make for a byte of what it reads."""

MATCHES = st.builds(
    Match,
    in_port=st.none() | st.integers(1, 1 << 20),
    eth_type=st.just(0x800),
    eth_dst=st.none() | st.just("02:00:00:00:00:07"),
    ip_proto=st.just(17),
    ip_dscp=st.none() | st.integers(0, 63),
    ipv4_dst=st.none() | st.sampled_from(["10.0.1.1", "10.255.0.9", "10.0.0.0/9"]),
    udp_dst=st.none() | st.just((47000, 0xFFF8)),
    metadata=st.none() | st.just((1 << 18, 1 << 18)),
)
ACTIONS = st.lists(
    st.builds(Output, st.integers(1, 0xFFFFFF))
    | st.builds(SetField, st.just("eth_dst"), st.just("02:00:00:00:00:01"))
    | st.builds(SetField, st.just("udp_dst"), st.integers(0, 0xFFFF))
    | st.builds(SetField, st.just("ipv4_src"), st.just("10.1.2.3"))
    | st.builds(ToController)
    | st.builds(ToGroup, st.integers(1, 1000))
    | st.builds(ThroughMeter, st.integers(1, 9))
    | st.builds(ToQueue, st.integers(0, 7)),
    max_size=4,
).map(tuple)
FLOWS = st.builds(
    FlowRule,
    table=st.just(1),
    priority=st.integers(0, 0xFFFF),
    match=MATCHES,
    actions=ACTIONS,
    goto=st.none() | st.just(2),
    metadata=st.none() | st.just((3, 0xFFFF)),
    cookie=st.sampled_from([Rule.DELIVER, Rule.REMOTE, Rule.CLASSIFY]),
)
NICIRA_ACTION = struct.pack("!HHIH6x", 0xFFFF, 16, 0x2320, 18)
FLOW_BODIES = st.lists(FLOWS, max_size=4).map(
    lambda flows: b"".join(flow_description(flow, 5) for flow in flows)
)
PORT_BODIES = st.lists(st.integers(1, 0xFFFFFFFF), max_size=4).map(
    lambda numbers: b"".join(port(number, b"eth%d" % (number % 99)) for number in numbers)
)
GROUP_BODIES = st.lists(st.integers(0, 3), max_size=4).map(
    lambda buckets: b"".join(
        struct.pack("!HxxI32x", 40 + 16 * count, number) + bytes(16 * count)
        for number, count in enumerate(buckets)
    )
)
METER_BODIES = st.lists(st.integers(0, 3), max_size=4).map(
    lambda bands: b"".join(
        struct.pack("!IH6xIQQII", number, 40 + 16 * count, 1, 17, 1700, 0, 0) + bytes(16 * count)
        for number, count in enumerate(bands)
    )
)
PORT_COUNTERS = st.integers(0, 4).map(
    lambda ports: b"".join(
        struct.pack("!H2xIII8Q", 120, number, 1, 2, *range(8)) + struct.pack("!HH4x4Q", 0, 40, 1, 2, 3, 4)
        for number in range(ports)
    )
)


def hellos(versions: set[int]) -> bytes:
    return hello(*versions)


KINDS: dict[str, tuple[st.SearchStrategy[bytes], Callable[[bytes], object]]] = {
    "flows": (FLOW_BODIES, lambda body: list(reading.flows_in(body))),
    "ports": (PORT_BODIES, reading.ports_in),
    "groups": (GROUP_BODIES, reading.groups_in),
    "meters": (METER_BODIES, reading.meters_in),
    "port counters": (PORT_COUNTERS, reading.check_port_counters),
    "packet-in": (
        st.builds(
            packet_in, st.integers(0, 0xFFFFFFFF), st.integers(0, (1 << 64) - 1), st.binary(max_size=80)
        ),
        reading.packet_in,
    ),
    "port status": (
        st.integers(1, 0xFFFFFFFF).map(
            lambda number: message(
                ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", number % 3) + port(number, b"e")
            )
        ),
        reading.port_status,
    ),
    "hello": (st.sets(st.integers(0, 31), min_size=1).map(hellos), reading.hello_versions),
    "features": (st.integers(0, (1 << 64) - 1).map(lambda dpid: features(3, dpid)), reading.datapath_id),
    "error": (
        st.binary(max_size=80).map(lambda data: message(ofp.OFPT_ERROR, 9, struct.pack("!HH", 4, 1) + data)),
        reading.error_numbers,
    ),
}


def within_steps(work: Callable[[], object], limit: int) -> object:
    """Return what *work* returns; raise AssertionError as soon as it has called more than *limit* functions."""
    steps = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")
        if steps > limit:
            sys.setprofile(None)
            raise AssertionError(f"more than {limit} steps")

    sys.setprofile(count)
    try:
        return work()
    finally:
        sys.setprofile(None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_length_is_read_or_refused_in_bounded_steps(kind: str, data: st.DataObject) -> None:
    valid, read = KINDS[kind]
    body = bytearray(data.draw(valid))
    read(bytes(body))
    for _ in range(data.draw(st.integers(1, 2))):
        if len(body) >= 2:
            at = data.draw(st.integers(0, len(body) // 2 - 1)) * 2
            length = data.draw(
                st.sampled_from([0, 1, 3, 4, 7, 8, 9, 12, 16, 0x7FFF, 0xFFFF]) | st.integers(0, 200)
            )
            struct.pack_into("!H", body, at, length)
    cut = data.draw(st.none() | st.integers(0, len(body)))
    changed = bytes(body[:cut])
    with suppress(MalformedError):
        within_steps(lambda: read(changed), 200 + STEPS_PER_BYTE * len(changed))


def osken_flow(raw: bytes) -> Any:
    return osken.OFPFlowDesc.parser(bytearray(raw), 0)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(FLOWS)
def test_flow_descriptions_read_as_osken_reads_them(flow: FlowRule) -> None:
    raw = flow_description(flow, 5)
    [ours] = reading.flows_in(raw)
    theirs = osken_flow(raw)
    actions = [action for item in theirs.instructions for action in getattr(item, "actions", ())]
    written = {item.key: item.value for item in actions if isinstance(item, osken.OFPActionSetField)}
    ipv4 = theirs.match.get("ipv4_dst")
    assert (ours.table, ours.cookie) == (theirs.table_id, theirs.cookie)
    assert ours.ipv4_dst == (ipv4 if isinstance(ipv4, str) else None)
    assert ours.eth_dst == theirs.match.get("eth_dst")
    assert ours.written_eth_dst == written.get("eth_dst")
    assert ours.writes_udp_dst == ("udp_dst" in written)
    assert ours.outputs == [item.port for item in actions if isinstance(item, osken.OFPActionOutput)]


@settings(deadline=None)
@given(st.integers(1, 0xFFFFFF00 - 1), st.binary(max_size=16), st.sampled_from([0, 1, 4]))
def test_ports_read_as_osken_reads_them(number: int, name: bytes, state: int) -> None:
    raw = port(number, name, state)
    [ours] = reading.ports_in(raw)
    theirs = osken.OFPPort.parser(bytearray(raw), 0)
    assert (ours.number, ours.mac) == (theirs.port_no, theirs.hw_addr)
    assert ours.name == theirs.name.partition(b"\0")[0].decode(errors="replace")
    assert ours.up == (not state & ofp.OFPPS_LINK_DOWN)
    assert ours.speed_kbps == theirs.properties[0].curr_speed


@settings(deadline=None)
@given(st.integers(0, 0xFFFFFFFF), st.integers(0, (1 << 64) - 1), st.binary(max_size=99))
def test_packet_ins_read_as_osken_reads_them(in_port: int, cookie: int, frame: bytes) -> None:
    raw = packet_in(in_port, cookie, frame)
    version, kind, length, xid = reading.HEADER.unpack_from(raw)
    theirs = osken.msg_parser(codec.PROTOCOL, version, kind, length, xid, bytearray(raw))
    ours = reading.packet_in(raw)
    assert (ours.in_port, ours.cookie, ours.data) == (
        theirs.match["in_port"],
        theirs.cookie,
        bytes(theirs.data),
    )


def test_actions_of_others_are_passed_over() -> None:
    raw = bytearray(
        flow_description(FlowRule(Table.DELIVER, 1, Match(), (Output(4),), cookie=Rule.DELIVER), 5)
    )
    (size,) = struct.unpack_from("!H", raw)
    struct.pack_into("!H", raw, 0, size + len(NICIRA_ACTION))
    instruction = size - 24
    struct.pack_into("!H", raw, instruction + 2, 24 + len(NICIRA_ACTION))
    raw[instruction + 8 : instruction + 8] = NICIRA_ACTION
    [flow] = reading.flows_in(bytes(raw))
    assert flow.outputs == [4]


def delivery() -> bytes:
    """Return an entry with one instruction and two actions, the last 40 B of it."""
    flow = FlowRule(
        1,
        10,
        Match(eth_type=0x800, ipv4_dst="10.0.1.1"),
        (SetField("eth_dst", "02:00:00:00:00:01"), Output(3)),
        cookie=Rule.DELIVER,
    )
    return flow_description(flow, 5)


INSTRUCTION, FIRST_ACTION = -40, -32
"""Where they begin in `delivery`."""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (INSTRUCTION, ofp.OFPIT_APPLY_ACTIONS),
        (INSTRUCTION, ofp.OFPIT_WRITE_ACTIONS),
        (INSTRUCTION, ofp.OFPIT_STAT_TRIGGER),
        (FIRST_ACTION, ofp.OFPAT_SET_FIELD),
        (FIRST_ACTION, ofp.OFPAT_EXPERIMENTER),
    ],
)
@pytest.mark.parametrize("length", [0, 1, 4, 12, 0x4000])
def test_a_switch_whose_entries_have_lengths_that_cannot_be_is_refused(
    place: int, kind: int, length: int
) -> None:
    body = bytearray(delivery())
    at = len(body) + place
    assert struct.unpack_from("!H", body, at)[0] in (ofp.OFPIT_APPLY_ACTIONS, ofp.OFPAT_SET_FIELD)
    struct.pack_into("!HH", body, at, kind, length)
    session = OpenFlowSession(0.0)
    list(session.receive(hello(6), 0.0))
    session.data_to_send()
    list(session.receive(features(2), 0.0))
    requests = session.data_to_send()
    answers = b""
    while requests:
        _, _, size, xid = reading.HEADER.unpack_from(requests)
        (what,) = struct.unpack_from("!H", requests, 8)
        answers += multipart(what, xid, bytes(body) if what == ofp.OFPMP_FLOW_DESC else b"")
        requests = requests[size:]
    with pytest.raises(PeerError, match=r"(instruction|action) at byte \d+"):
        list(session.receive(answers, 0.0))
