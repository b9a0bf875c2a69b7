"""A session against a switch made of bytes: handshake, inventory, updates, errors, silence, and nonsense."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.fabric.switch_data import Held, HeldHost, MeterReading
from controller.openflow.cookies import Rule
from controller.openflow.holdings import UNUSED_GROUP_S
from controller.openflow.session_events import MeterCount, PacketIn, PortStatus, Refused, UpdateDone
from controller.openflow.tables import PORT_METERS, PUNT_METER, Table
from controller.openflow.wanted import (
    Bucket,
    Difference,
    FlowRule,
    Group,
    Match,
    Meter,
    Output,
    SetField,
)
from tests.unit.controller.openflow.bytes_switch import FLOW, handshake, meters
from tests.unit.switch_messages import (
    DPID,
    flow_description,
    message,
    multipart,
    packet_in,
    port,
    sent,
)

GROUP = Group(4, "dp_hash", 1, (Bucket((Output(1),), 1),))


def held_switch() -> dict[str, bytes]:
    """Return what an earlier controller left: hosts with and without agents, a remote host, another program's flow."""
    mac = "02:00:00:00:00:%02x"
    descriptions = [
        FlowRule(
            Table.DELIVER,
            10,
            Match(eth_type=0x800, ipv4_dst="10.0.1.1"),
            (SetField("eth_dst", mac % 1), Output(3)),
            cookie=Rule.DELIVER,
        ),
        FlowRule(
            Table.DELIVER,
            20,
            Match(eth_type=0x800, ip_proto=17, ipv4_dst="10.0.1.1", metadata=(1 << 18, 1 << 18)),
            (SetField("udp_dst", 47000), SetField("eth_dst", mac % 1), Output(3)),
            cookie=Rule.DELIVER,
        ),
        FlowRule(
            Table.DELIVER,
            10,
            Match(eth_type=0x800, ipv4_dst="10.0.1.2"),
            (SetField("eth_dst", mac % 2), Output(4)),
            cookie=Rule.DELIVER,
        ),
        FlowRule(
            Table.DELIVER,
            10,
            Match(eth_type=0x800, ipv4_dst="10.0.2.1"),
            goto=Table.CLASS,
            metadata=(2, 0xFFFF),
            cookie=Rule.REMOTE,
        ),
        FlowRule(Table.CLASSIFY, 10, Match(eth_type=0x800), goto=Table.SOURCE, cookie=Rule.CLASSIFY),
    ]
    flows = b"".join(flow_description(flow, 6 + index % 2) for index, flow in enumerate(descriptions))
    flows += flow_description(
        FlowRule(Table.DELIVER, 7, Match(eth_type=0x800, ipv4_dst="10.9.9.9"), (Output(9),)), 0
    )
    groups = b"".join(struct.pack("!HxxI32x", 40, number) for number in (256, 320))
    return {"flows": flows, "groups": groups, "meters": meters(1, 5)}


@pytest.mark.parametrize("more", [False, True])
def test_a_switch_is_ready_with_its_ports_and_inventory(more: bool) -> None:
    _, ready = handshake(**held_switch(), more=more)
    assert ready.dpid == DPID
    assert {(one.number, one.name, one.up, one.speed_kbps) for one in ready.ports} == {
        (1, "p1", True, 10_000_000),
        (2, "p2", False, 10_000_000),
        (ofp.OFPP_LOCAL, "l1", True, 10_000_000),
    }
    assert ready.inventory.generations == {0, 6, 7}
    assert ready.inventory.groups == {256, 320}
    assert ready.inventory.meters == {1, 5}
    assert ready.inventory.held == Held(
        (
            HeldHost("10.0.1.1", "02:00:00:00:00:01", 3, agent=True),
            HeldHost("10.0.1.2", "02:00:00:00:00:02", 4, agent=False),
        ),
        frozenset({"10.0.2.1"}),
    )


def test_an_empty_switch_holds_nothing() -> None:
    _, ready = handshake()
    assert ready.inventory.held is None


def inner_messages(data: bytes) -> list[tuple[int, bytes]]:
    """Return types and bytes of an update's messages, those in bundles unwrapped; check the wrapping."""
    unwrapped = []
    bundle, state = None, "outside"
    for kind, xid, one in sent(data):
        if kind == ofp.OFPT_BUNDLE_CONTROL:
            number, what, flags = struct.unpack_from("!IHH", one, 8)
            assert flags == ofp.OFPBF_ATOMIC | ofp.OFPBF_ORDERED
            if what == ofp.OFPBCT_OPEN_REQUEST:
                assert state == "outside"
                bundle, state = number, "inside"
            else:
                assert (what, number, state) == (ofp.OFPBCT_COMMIT_REQUEST, bundle, "inside")
                state = "outside"
        elif kind == ofp.OFPT_BUNDLE_ADD_MESSAGE:
            assert struct.unpack_from("!I", one, 8)[0] == bundle
            assert struct.unpack_from("!I", one, 20)[0] == xid
            assert state == "inside"
            unwrapped.append((one[17], one[16:]))
        else:
            assert state == "outside"
            unwrapped.append((kind, one))
    return unwrapped


def test_a_change_is_one_bundle_with_groups_first_and_meters_outside() -> None:
    one, _ = handshake()
    difference = Difference(
        add_meters=(Meter(1),),
        add_groups=(GROUP,),
        add_flows=(FLOW,),
        delete_flows=(FlowRule(2, 1, Match()),),
        delete_groups=(9,),
        delete_meters=(7,),
    )
    one.apply(difference, whole=False, now=1.0)
    kinds = [kind for kind, _ in inner_messages(one.data_to_send())]
    assert kinds == [
        ofp.OFPT_METER_MOD,
        ofp.OFPT_GROUP_MOD,
        ofp.OFPT_FLOW_MOD,
        ofp.OFPT_FLOW_MOD,
        ofp.OFPT_METER_MOD,
        ofp.OFPT_BARRIER_REQUEST,
    ]


def flow_mods(data: bytes) -> list[tuple[int, int, int]]:
    """Return (command, cookie, cookie mask) of each flow-mod."""
    return [
        (one[25], *struct.unpack_from("!QQ", one, 8))
        for kind, one in inner_messages(data)
        if kind == ofp.OFPT_FLOW_MOD
    ]


def group_mods(data: bytes) -> list[tuple[int, int]]:
    """Return (command, group) of each group-mod."""
    return [
        (struct.unpack_from("!H", one, 8)[0], struct.unpack_from("!I", one, 12)[0])
        for kind, one in inner_messages(data)
        if kind == ofp.OFPT_GROUP_MOD
    ]


def test_a_whole_state_deletes_all_that_is_older_and_not_named() -> None:
    one, _ = handshake(**held_switch())
    kept = Group(320, "dp_hash", 1, GROUP.buckets)
    one.apply(
        Difference(add_meters=(Meter(1),), add_groups=(GROUP, kept), add_flows=(FLOW,)), whole=True, now=1.0
    )
    data = one.data_to_send()
    mask = 0xFFFF << 48
    (added, *deleted) = flow_mods(data)
    assert added[0] == ofp.OFPFC_ADD
    generation = added[1] >> 48
    assert generation not in (0, 6, 7)
    assert deleted == [(ofp.OFPFC_DELETE, old << 48, mask) for old in (0, 6, 7)]
    assert group_mods(data) == [(0x8000, 4), (0x8000, 320)]
    meter_mods = [
        (struct.unpack_from("!H", message, 8)[0], struct.unpack_from("!I", message, 12)[0])
        for kind, message in inner_messages(data)
        if kind == ofp.OFPT_METER_MOD
    ]
    assert meter_mods == [(ofp.OFPMC_MODIFY, 1), (ofp.OFPMC_DELETE, 5)], "another may have given it a rate"
    # a change keeps the generation; the next whole state deletes just that one
    one.apply(Difference(add_flows=(FLOW,)), whole=False, now=1.0)
    assert flow_mods(one.data_to_send()) == [(ofp.OFPFC_ADD, generation << 48 | Rule.DELIVER, 0)]
    one.apply(Difference(add_flows=(FLOW,)), whole=True, now=1.0)
    data = one.data_to_send()
    added, deleted_one = flow_mods(data)
    assert added[1] >> 48 not in (0, generation)
    assert deleted_one == (ofp.OFPFC_DELETE, generation << 48, mask)


def test_a_group_is_deleted_long_after_the_last_entry_that_led_to_it() -> None:
    """Packets that were hashed for it before may still be on their way to it."""
    one, _ = handshake(**held_switch())
    one.apply(Difference(add_groups=(GROUP,), add_flows=(FLOW,)), whole=True, now=1.0)  # neither 256 nor 320
    one.data_to_send()
    list(one.receive(message(ofp.OFPT_ECHO_REPLY, 0), 3.0))
    one.apply(Difference(add_groups=(replace(GROUP, id=320),)), whole=False, now=2.0)  # used again
    one.apply(Difference(delete_groups=(GROUP.id,)), whole=False, now=3.0)
    assert ofp.OFPGC_DELETE not in [command for command, _ in group_mods(one.data_to_send())]
    assert one.deadline() <= 1.0 + UNUSED_GROUP_S
    one.timer(0.9 + UNUSED_GROUP_S)
    assert not group_mods(one.data_to_send())
    one.timer(1.0 + UNUSED_GROUP_S)
    assert group_mods(one.data_to_send()) == [(ofp.OFPGC_DELETE, 256)]
    one.timer(3.0 + UNUSED_GROUP_S)
    assert group_mods(one.data_to_send()) == [(ofp.OFPGC_DELETE, GROUP.id)]
    assert one.deadline() > 3.0 + UNUSED_GROUP_S, "nothing more is due at once"
    one.apply(Difference(add_groups=(replace(GROUP, id=8),)), whole=True, now=9.0)
    one.timer(9.0 + UNUSED_GROUP_S)
    assert group_mods(one.data_to_send())[1:] == [(ofp.OFPGC_DELETE, 320)], "the others are gone"


def test_entries_added_before_the_whole_state_are_older_than_it() -> None:
    """A switch that is taken over gets a few entries first; they must not outlive the whole state that follows."""
    for held in ({}, {"flows": flow_description(FLOW, 0)}, held_switch()):
        one, _ = handshake(**held)
        one.apply(Difference(add_flows=(FlowRule(0, 9, Match()),)), whole=False, now=1.0)
        ((_, cookie, _),) = flow_mods(one.data_to_send())
        one.apply(Difference(add_flows=(FLOW,)), whole=True, now=1.0)
        _, *deleted = flow_mods(one.data_to_send())
        assert (ofp.OFPFC_DELETE, cookie, 0xFFFF << 48) in deleted


@given(st.lists(st.integers(0, 0xFFFF), max_size=20))
def test_a_new_generation_is_never_one_that_is_there(used: list[int]) -> None:
    flows = b"".join(flow_description(FLOW, generation) for generation in used)
    one, _ = handshake(flows=flows)
    for _ in range(3):
        one.apply(Difference(add_flows=(FLOW,)), whole=True, now=1.0)
        added, *deleted = flow_mods(one.data_to_send())
        assert added[1] >> 48 not in (0, *(cookie >> 48 for _, cookie, _ in deleted))


def test_errors_are_reported_of_the_update_that_caused_them() -> None:
    one, _ = handshake()
    first = one.apply(Difference(add_groups=(GROUP,), add_flows=(FLOW,)), whole=False, now=1.0)
    messages = list(sent(one.data_to_send()))
    second = one.apply(Difference(add_flows=(FLOW,)), whole=False, now=1.0)
    (*_, (_, barrier2, _)) = sent(one.data_to_send())
    (_, _, (_, flow_xid, part), _, (_, barrier, _)) = messages
    error = struct.pack("!HH", ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_PREREQ) + part[:64]
    assert not list(one.receive(message(ofp.OFPT_ERROR, flow_xid, error), 5.0))
    assert one.unconfirmed == (first, second)
    (done,) = one.receive(message(ofp.OFPT_BARRIER_REPLY, barrier), 6.0)
    assert isinstance(done, UpdateDone)
    assert done.ticket == first
    (refused,) = done.errors
    assert (refused.dpid, refused.type, refused.code, refused.at) == (
        DPID,
        "OFPET_BAD_MATCH",
        "OFPBMC_BAD_PREREQ",
        5.0,
    )
    assert refused.what.startswith("flow eth_type=2048,ipv4_dst=10.0.1.1 in table 1 at priority 10")
    (done,) = one.receive(message(ofp.OFPT_BARRIER_REPLY, barrier2), 6.0)
    assert done == UpdateDone(second, ())
    assert one.unconfirmed == ()


def test_other_errors_come_up_on_their_own() -> None:
    one, _ = handshake()
    one.packet_out(77, b"x" * 60)
    ((_, xid, request),) = sent(one.data_to_send())
    error = struct.pack("!HH", ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_OUT_PORT) + request[:64]
    (event,) = one.receive(message(ofp.OFPT_ERROR, xid, error), 1.0)
    assert isinstance(event, Refused)
    assert event.error.what == f"message of type {ofp.OFPT_PACKET_OUT}"
    assert str(event.error) == "switch 0xca5 refused message of type 13: OFPET_BAD_ACTION OFPBAC_BAD_OUT_PORT"


def test_meter_counts_packets_and_ports_come_as_events() -> None:
    one, _ = handshake(meters=meters(1, 2, PUNT_METER, PORT_METERS + 7))
    expected = {1: MeterReading(12345, 99), 2: MeterReading(1 << 40, 1 << 50)}
    one.read_meters()
    one.read_meters()  # before the first answer: two samples all the same
    requests = list(sent(one.data_to_send()))
    asked = [struct.unpack_from("!HHxxxxI", request, 8) for _, _, request in requests]
    assert asked == 2 * [(ofp.OFPMP_METER_STATS, 0, 1), (ofp.OFPMP_METER_STATS, 0, 2)]
    answers = [
        multipart(
            ofp.OFPMP_METER_STATS,
            xid,
            struct.pack(
                "!IHxxxxxxIQQIIQQ", meter, 56, 1, expected[meter].packets, expected[meter].bytes, 0, 0, 0, 0
            ),
        )
        for (_, xid, _), (_, _, meter) in zip(requests, asked, strict=True)
    ]
    assert list(one.receive(b"".join(answers), 1.0)) == 2 * [MeterCount(expected)]
    assert not list(one.receive(b"".join(answers), 1.0))  # asked once, taken once
    data = packet_in(3, 5 << 48 | Rule.FIRST_SHORT, b"data")
    assert list(one.receive(data, 1.0)) == [PacketIn(3, Rule.FIRST_SHORT, b"data")]
    for reason, up in ((ofp.OFPPR_MODIFY, True), (ofp.OFPPR_DELETE, False)):
        status = message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", reason) + port(9, b"p9"))
        (event,) = one.receive(status, 1.0)
        assert isinstance(event, PortStatus)
        assert (event.port.number, event.port.up) == (9, up)


@settings(max_examples=50)
@given(st.data())
def test_however_bytes_are_cut_the_events_are_the_same(data: st.DataObject) -> None:
    one, _ = handshake()
    stream = b"".join(
        message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", ofp.OFPPR_MODIFY) + port(number, b"p"))
        + message(ofp.OFPT_ECHO_REQUEST, number, b"abc")
        for number in range(1, 5)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    events: list[object] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        events += one.receive(stream[begin:end], 1.0)
    assert [event.port.number for event in events if isinstance(event, PortStatus)] == [1, 2, 3, 4]
    echoes = list(sent(one.data_to_send()))
    assert echoes == [
        (ofp.OFPT_ECHO_REPLY, number, message(ofp.OFPT_ECHO_REPLY, number, b"abc")) for number in range(1, 5)
    ]
