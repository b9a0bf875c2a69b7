"""Wanted state as OpenFlow 1.5 messages: read back by os-ken's parser, and by layout where os-ken has none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_5 as ofp
from os_ken.ofproto import ofproto_v1_5_parser as parser

from controller.openflow import bundle, codec
from controller.openflow.codec import EncodingError
from controller.openflow.selection_method import SelectionMethod
from controller.openflow.wanted import (
    Bucket,
    CopyField,
    FlowRule,
    Group,
    Match,
    Meter,
    Output,
    SetField,
    ThroughMeter,
    ToController,
    ToGroup,
    ToQueue,
)
from tests.unit.counted_calls import calls


def read(message: bytes):
    version, kind, length, xid = struct.unpack_from("!BBHI", message)
    assert length == len(message)
    return ofproto_parser.msg(codec.PROTOCOL, version, kind, length, xid, bytearray(message))


def masked(bits: int) -> st.SearchStrategy[tuple[int, int]]:
    masks = st.integers(1, (1 << bits) - 1)
    return masks.flatmap(
        lambda mask: st.tuples(st.integers(0, (1 << bits) - 1).map(lambda v: v & mask), st.just(mask))
    )


MACS = st.integers(0, (1 << 48) - 1).map(lambda n: ":".join(f"{b:02x}" for b in n.to_bytes(6, "big")))
ADDRESSES = st.integers(0, (1 << 32) - 1).map(lambda n: ".".join(str(b) for b in n.to_bytes(4, "big")))
MATCHES = st.builds(
    Match,
    in_port=st.none() | st.integers(1, 0xFFFFFF00),
    eth_type=st.none() | st.integers(0x600, 0xFFFF),
    eth_dst=st.none() | MACS,
    ip_proto=st.none() | st.integers(0, 255),
    ip_dscp=st.none() | st.integers(0, 63),
    ipv4_src=st.none() | ADDRESSES,
    ipv4_dst=st.none() | ADDRESSES,
    udp_src=st.none() | masked(16),
    udp_dst=st.none() | masked(16),
    arp_op=st.none() | st.integers(0, 0xFFFF),
    metadata=st.none() | masked(64),
)
ACTIONS = st.one_of(
    st.builds(Output, st.integers(1, 0xFFFFFF00)),
    st.builds(ToController, st.integers(0, 0xFFE5)),
    st.builds(ToGroup, st.integers(0, 0xFFFFFF00)),
    st.builds(ThroughMeter, st.integers(1, 0xFFFF0000)),
    st.builds(ToQueue, st.integers(0, 0xFFFFFFFE)),
    st.builds(SetField, st.sampled_from(["eth_src", "eth_dst"]), MACS),
    st.builds(SetField, st.sampled_from(["ipv4_src", "ipv4_dst"]), ADDRESSES),
    st.builds(SetField, st.sampled_from(["udp_src", "udp_dst"]), st.integers(0, 0xFFFF)),
    st.builds(SetField, st.just("ip_dscp"), st.integers(0, 63)),
    st.builds(SetField, st.sampled_from(["arp_sha", "arp_tha"]), MACS),
    st.builds(SetField, st.sampled_from(["arp_spa", "arp_tpa"]), ADDRESSES),
    st.builds(SetField, st.just("arp_op"), st.integers(0, 0xFFFF)),
    st.builds(SetField, st.just("metadata"), st.integers(0, (1 << 64) - 1)),
)


@st.composite
def flows(draw: st.DrawFn) -> FlowRule:
    table = draw(st.integers(0, 250))
    goto = draw(st.none() | st.integers(table + 1, 253))
    return FlowRule(
        table,
        draw(st.integers(0, 0xFFFF)),
        draw(MATCHES),
        tuple(draw(st.lists(ACTIONS, max_size=4))),
        goto,
        draw(masked(64)) if goto is not None and draw(st.booleans()) else None,
        draw(st.integers(0, (1 << 48) - 1)),
    )


def action_of(read_back) -> object:
    match read_back:
        case parser.OFPActionOutput() if read_back.port == ofp.OFPP_CONTROLLER:
            return ToController(read_back.max_len)
        case parser.OFPActionOutput():
            return Output(read_back.port)
        case parser.OFPActionGroup():
            return ToGroup(read_back.group_id)
        case parser.OFPActionMeter():
            return ThroughMeter(read_back.meter_id)
        case parser.OFPActionSetQueue():
            return ToQueue(read_back.queue_id)
        case parser.OFPActionSetField():
            return SetField(read_back.key, read_back.value)
    raise AssertionError(read_back)


@pytest.mark.slow
@given(flows(), st.integers(1, 0xFFFF))
def test_a_flow_entry_says_what_was_wanted(flow: FlowRule, generation: int) -> None:
    message = read(codec.add_flow(flow, generation))
    assert (message.command, message.table_id, message.priority) == (ofp.OFPFC_ADD, flow.table, flow.priority)
    assert message.cookie == generation << 48 | flow.cookie
    assert codec.cookie_of(message.cookie) == flow.cookie
    assert codec.generation_of(message.cookie) == generation
    wanted = {name: getattr(flow.match, name) for name in Match.__slots__}
    whole = {"udp_src": 0xFFFF, "udp_dst": 0xFFFF, "metadata": (1 << 64) - 1}
    expected = {
        name: value[0] if isinstance(value, tuple) and value[1] == whole[name] else value
        for name, value in wanted.items()
        if value is not None
    }
    assert dict(message.match.items()) == expected
    kinds = [type(item) for item in message.instructions]
    assert kinds == [
        kind
        for kind, there in (
            (parser.OFPInstructionActions, flow.actions),
            (parser.OFPInstructionWriteMetadata, flow.metadata is not None),
            (parser.OFPInstructionGotoTable, flow.goto is not None),
        )
        if there
    ]
    for item in message.instructions:
        if isinstance(item, parser.OFPInstructionActions):
            assert item.type == ofp.OFPIT_APPLY_ACTIONS
            assert tuple(map(action_of, item.actions)) == flow.actions
        elif isinstance(item, parser.OFPInstructionWriteMetadata):
            assert (item.metadata, item.metadata_mask) == flow.metadata
        else:
            assert item.table_id == flow.goto


@given(flows())
def test_deletions_hit_one_entry_or_one_generation(flow: FlowRule) -> None:
    one = read(codec.delete_flow(flow))
    same = read(codec.add_flow(flow, 1))
    assert one.command == ofp.OFPFC_DELETE_STRICT
    assert (one.table_id, one.priority, dict(one.match.items())) == (
        same.table_id,
        same.priority,
        dict(same.match.items()),
    )
    assert (one.out_port, one.out_group, one.cookie_mask) == (ofp.OFPP_ANY, ofp.OFPG_ANY, 0)
    many = read(codec.delete_generation(7))
    assert (many.command, many.table_id) == (ofp.OFPFC_DELETE, ofp.OFPTT_ALL)
    assert (many.cookie, many.cookie_mask) == (7 << 48, 0xFFFF << 48)
    assert not list(many.match.items())


@pytest.mark.parametrize(
    ("copy", "bits", "source", "target"),
    [
        (CopyField("eth_src", "eth_dst"), 48, 4, 3),
        (CopyField("arp_spa", "arp_tpa"), 32, 22, 23),
        (CopyField("arp_sha", "arp_tha"), 48, 24, 25),
    ],
)
def test_a_copied_field_is_laid_out_as_the_standard_says(
    copy: CopyField, bits: int, source: int, target: int
) -> None:
    message = codec.add_flow(FlowRule(0, 1, Match(eth_type=0x0806), (copy,)), 1)
    # OpenFlow 1.5.1, 7.2.6.10: type 28, length, bits, both offsets, padding; then two OXM headers without values
    ids = (0x8000 << 16 | number << 9 | bits // 8 for number in (source, target))
    assert struct.pack("!HHHHH2xII4x", 28, 24, bits, 0, 0, *ids) in message


def test_a_prefix_becomes_a_mask() -> None:
    flow = FlowRule(0, 1, Match(eth_type=0x800, ipv4_dst="10.0.0.0/9", ipv4_src="10.1.2.3/32"))
    match = dict(read(codec.add_flow(flow, 1)).match.items())
    assert match["ipv4_dst"] == ("10.0.0.0", "255.128.0.0")
    assert match["ipv4_src"] in ("10.1.2.3", ("10.1.2.3", "255.255.255.255"))


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        (
            FlowRule(0, 1, Match(udp_dst=(47000, 0xFFC0))),
            r"udp_dst: value 0xb798 has bits outside its mask 0xffc0",
        ),
        (FlowRule(0, 1, Match(udp_dst=(0, 0))), "udp_dst: mask 0x0 does not fit 16 bits"),
        (FlowRule(0, 1, Match(metadata=(0, 1 << 64))), "does not fit 64 bits"),
        (FlowRule(0, 1, Match(ipv4_dst="10.0.0.1/9")), "has host bits set"),
        (FlowRule(3, 1, Match(), goto=3), "later table"),
        (FlowRule(0, 1, Match(), goto=1, metadata=(8, 4)), "metadata to write"),
        (FlowRule(0, 1, Match(), cookie=1 << 48), "does not fit 48 bits"),
    ],
)
def test_what_openflow_cannot_say_is_refused(flow: FlowRule, text: str) -> None:
    with pytest.raises(EncodingError, match=text):
        codec.add_flow(flow, 1)


def test_groups_must_fit_their_method() -> None:
    buckets = (Bucket((Output(1),), 1),)
    with pytest.raises(EncodingError, match="needs the fields"):
        codec.set_group(Group(1, "hash", 0, buckets))
    with pytest.raises(EncodingError, match="dp_hash hashes no fields"):
        codec.set_group(Group(1, "dp_hash", 0, buckets, ("udp_dst",)))
    with pytest.raises(EncodingError, match="takes none"):
        codec.set_group(Group(1, "failover", 0, buckets, ("udp_dst",)))
    with pytest.raises(EncodingError, match="needs a port or group to watch"):
        codec.set_group(Group(1, "failover", 0, (*buckets, Bucket((Output(2),)))))


@pytest.mark.slow
@given(
    st.integers(1, 0xFFFFFF00),
    st.lists(
        st.builds(
            Bucket,
            st.lists(ACTIONS, max_size=3).map(tuple),
            st.none() | st.integers(1, 0xFFFFFF00),
            st.integers(1, 0xFFFF),
            st.none() | st.integers(1, 0xFFFFFF00),
        ),
        max_size=8,
    ),
    st.integers(0, (1 << 64) - 1),
    st.lists(st.sampled_from(["ipv4_src", "ipv4_dst", "udp_dst"]), unique=True),
)
def test_a_group_is_laid_out_as_the_standard_says(number, buckets, basis, fields) -> None:
    method = "hash" if fields else "dp_hash"
    message = codec.set_group(Group(number, method, basis, tuple(buckets), tuple(fields)))
    version, kind, length, _ = struct.unpack_from("!BBHI", message)
    assert (version, kind, length) == (6, ofp.OFPT_GROUP_MOD, len(message))
    command, select, group, array, command_bucket = struct.unpack_from("!HBxIH2xI", message, 8)
    assert (command, select, group) == (0x8000, ofp.OFPGT_SELECT, number)
    assert command_bucket == ofp.OFPG_BUCKET_ALL
    offset = 24
    for index, bucket in enumerate(buckets):
        size, actions, bucket_id = struct.unpack_from("!HHI", message, offset)
        assert (bucket_id, size % 8, actions % 8) == (index, 0, 0)
        seen, at = [], offset + 8
        while at < offset + 8 + actions:
            one = parser.OFPAction.parser(bytearray(message), at)
            seen.append(action_of(one))
            at += struct.unpack_from("!H", message, at + 2)[0]
        assert tuple(seen) == bucket.actions
        properties = {}
        while at < offset + size:
            what, eight = struct.unpack_from("!HH", message, at)
            assert eight == 8
            properties[what] = struct.unpack_from(
                "!H" if what == ofp.OFPGBPT_WEIGHT else "!I", message, at + 4
            )[0]
            at += 8
        expected = {ofp.OFPGBPT_WEIGHT: bucket.weight}
        if bucket.watch_port is not None:
            expected[ofp.OFPGBPT_WATCH_PORT] = bucket.watch_port
        if bucket.watch_group is not None:
            expected[ofp.OFPGBPT_WATCH_GROUP] = bucket.watch_group
        assert properties == expected
        offset += size
    assert offset == 24 + array
    assert message[offset:] == SelectionMethod(method, basis, tuple(fields)).serialize()


def test_a_failover_group_has_neither_weights_nor_a_selection_method() -> None:
    buckets = (Bucket((Output(7),), 7), Bucket((ToGroup(4),), watch_group=4))
    message = codec.set_group(Group(5, "failover", 0, buckets))
    expected = parser.OFPGroupMod(
        codec.PROTOCOL,
        0x8000,
        ofp.OFPGT_FF,
        5,
        command_bucket_id=ofp.OFPG_BUCKET_ALL,
        buckets=[
            parser.OFPBucket(
                bucket_id=0,
                actions=[parser.OFPActionOutput(7)],
                properties=[parser.OFPGroupBucketPropWatch(type_=ofp.OFPGBPT_WATCH_PORT, length=8, watch=7)],
            ),
            parser.OFPBucket(
                bucket_id=1,
                actions=[parser.OFPActionGroup(4)],
                properties=[parser.OFPGroupBucketPropWatch(type_=ofp.OFPGBPT_WATCH_GROUP, length=8, watch=4)],
            ),
        ],
    )
    expected.set_xid(0)
    expected.serialize()
    assert message == bytes(expected.buf)


def test_the_selection_method_is_laid_out_as_open_vswitch_reads_it() -> None:
    data = SelectionMethod("hash", 0x0123456789ABCDEF, ("ipv4_src", "ipv4_dst", "udp_dst")).serialize()
    assert (
        data
        == bytes.fromhex(
            "ffff 003e 0000154d 00000001 00000000"  # experimenter, 62 B without the padding, NTR, selection method
            "68617368 000000000000000000000000"  # hash
            "0123456789abcdef"
            "80001604ffffffff 80001804ffffffff 80002002ffff"  # whole ipv4_src, ipv4_dst, udp_dst
            "0000"  # to 64 B
        )
    )
    data = SelectionMethod("dp_hash", 5).serialize()
    assert struct.unpack_from("!HH", data) == (0xFFFF, 40)
    assert len(data) == 40


def test_meters_count_and_never_drop() -> None:
    message = read(codec.add_meter(Meter(3)))
    assert (message.command, message.meter_id) == (ofp.OFPMC_ADD, 3)
    assert message.flags == ofp.OFPMF_PKTPS | ofp.OFPMF_STATS
    assert [band.rate for band in message.bands] == [codec.METER_RATE_PPS]
    assert (read(codec.delete_meter(3)).command, read(codec.delete_meter(3)).meter_id) == (
        ofp.OFPMC_DELETE,
        3,
    )
    assert (read(codec.delete_group(9)).command, read(codec.delete_group(9)).group_id) == (
        ofp.OFPGC_DELETE,
        9,
    )


def test_a_meter_with_a_rate_drops_what_is_above() -> None:
    for command, data in (
        (ofp.OFPMC_ADD, codec.add_meter(Meter(0x10001, 100))),
        (ofp.OFPMC_MODIFY, codec.modify_meter(Meter(0x10001, 100))),
    ):
        message = read(data)
        assert (message.command, message.meter_id) == (command, 0x10001)
        assert message.flags == ofp.OFPMF_PKTPS | ofp.OFPMF_STATS
        assert [(band.type, band.rate) for band in message.bands] == [(ofp.OFPMBT_DROP, 100)]


@given(st.integers(1, 0xFFFFFF00), st.binary(max_size=300))
def test_a_packet_out_carries_the_frame(port: int, data: bytes) -> None:
    message = codec.packet_out(port, data)
    version, kind, length, _ = struct.unpack_from("!BBHI", message)
    assert (version, kind, length) == (6, ofp.OFPT_PACKET_OUT, len(message))
    buffer, actions = struct.unpack_from("!IH", message, 8)
    assert (buffer, actions) == (ofp.OFP_NO_BUFFER, 16)
    assert parser.OFPMatch.parser(bytearray(message), 16)["in_port"] == ofp.OFPP_CONTROLLER
    assert parser.OFPAction.parser(bytearray(message), 32).port == port
    assert message[48:] == data


def test_a_packet_out_costs_the_same_whichever_port_it_is_for() -> None:
    """Frames that find links go out of thousands of ports in turn: os-ken made 17 us of each that is not kept."""
    codec.packet_out(1, b"")
    assert calls(lambda: [codec.packet_out(port, b"") for port in range(2, 5002)]) < 2 * 5000


@given(flows(), st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))
def test_bundle_messages_are_laid_out_as_the_standard_says(flow: FlowRule, number: int, xid: int) -> None:
    inner = codec.add_flow(flow, 1)
    part = bundle.with_part_xid(bundle.add_to_bundle(number, inner), xid)
    version, kind, length, outer_xid, bundle_id, flags = struct.unpack_from("!BBHIIxxH", part)
    assert (version, kind, length) == (6, ofp.OFPT_BUNDLE_ADD_MESSAGE, len(part))
    assert (outer_xid, bundle_id, flags) == (xid, number, ofp.OFPBF_ATOMIC | ofp.OFPBF_ORDERED)
    assert part[16:] == codec.with_xid(inner, xid)
    for message, kind in (
        (bundle.open_bundle(number), ofp.OFPBCT_OPEN_REQUEST),
        (bundle.commit_bundle(number), ofp.OFPBCT_COMMIT_REQUEST),
    ):
        control = read(message)
        assert (control.bundle_id, control.type, control.flags) == (number, kind, flags)
