"""From wanted switch state to OpenFlow 1.5 messages, as bytes with transaction id 0.

All functions are pure, and what they make is kept: mode changes send the same few flow entries again and
again, and encoding one takes os-ken 0.2 ms. `with_xid` gives a message its transaction id.

A cookie on the wire is 16 bits of *generation*, then the 48 bits of `FlowRule.cookie`. A controller that brings a
switch to a whole state does so under a new generation and then deletes every entry of the older ones.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import struct
from functools import lru_cache
from typing import Any, Final

from capstan_client.errors import CapstanError
from controller.openflow.osken import Protocol, ofp, parser
from controller.openflow.selection_method import SelectionMethod
from controller.openflow.wanted import (
    Action,
    Bucket,
    CopyField,
    FlowRule,
    Group,
    Masked,
    Match,
    Meter,
    Output,
    SetField,
    ThroughMeter,
    ToController,
    ToGroup,
    ToQueue,
)

VERSION: Final = 0x06
"""OpenFlow 1.5 in a message's first byte."""
COOKIE_BITS: Final = 48
GENERATIONS: Final = 1 << 16
_COOKIE_MASK: Final = (1 << COOKIE_BITS) - 1
_GENERATION_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF ^ _COOKIE_MASK

METER_RATE_PPS: Final = 4_000_000_000
"""Packets per second above which a meter that should only count would drop: more than any port carries."""
_ADD_OR_MODIFY: Final = 0x8000
"""Open vSwitch's group command that replaces a group or makes it (OFPGC_ADD_OR_MOD)."""

PROTOCOL: Final = Protocol()
"""What os-ken wants where it expects a connected switch."""
_XID: Final = struct.Struct("!I")
_LENGTH: Final = struct.Struct("!H")
_PORT: Final = struct.Struct("!I")


class EncodingError(CapstanError, ValueError):
    """Wanted state that OpenFlow cannot say; the text says what and why."""


def with_xid(message: bytes, xid: int) -> bytes:
    """Return *message* with transaction id *xid*."""
    return message[:4] + _XID.pack(xid) + message[8:]


def cookie_of(wire_cookie: int) -> int:
    """Return `FlowRule.cookie` of a cookie that the switch sent."""
    return wire_cookie & _COOKIE_MASK


def generation_of(wire_cookie: int) -> int:
    """Return the generation of a cookie that the switch sent."""
    return wire_cookie >> COOKIE_BITS


@lru_cache(maxsize=1 << 16)
def add_flow(flow: FlowRule, generation: int) -> bytes:
    """Return the message that adds *flow*, or replaces the one with its table, priority and match."""
    instructions: list[Any] = []
    if flow.actions:
        actions = [_action(action) for action in flow.actions]
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
    if flow.metadata is not None:
        value, mask = _checked_mask("metadata to write", flow.metadata, 64)
        instructions.append(parser.OFPInstructionWriteMetadata(value, mask))
    if flow.goto is not None:
        if flow.goto <= flow.table:
            raise EncodingError(f"flow {flow}: goto {flow.goto} must lead to a later table than {flow.table}")
        instructions.append(parser.OFPInstructionGotoTable(flow.goto))
    return serialized(
        parser.OFPFlowMod(
            PROTOCOL,
            command=ofp.OFPFC_ADD,
            table_id=flow.table,
            priority=flow.priority,
            match=_match(flow.match),
            cookie=_wire_cookie(flow, generation),
            instructions=instructions,
        )
    )


@lru_cache(maxsize=1 << 14)
def delete_flow(flow: FlowRule) -> bytes:
    """Return the message that deletes exactly the entry with *flow*'s table, priority and match."""
    return serialized(
        parser.OFPFlowMod(
            PROTOCOL,
            command=ofp.OFPFC_DELETE_STRICT,
            table_id=flow.table,
            priority=flow.priority,
            match=_match(flow.match),
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
        )
    )


def delete_generation(generation: int) -> bytes:
    """Return the message that deletes all entries, in all tables, whose cookie is of *generation*."""
    return serialized(
        parser.OFPFlowMod(
            PROTOCOL,
            command=ofp.OFPFC_DELETE,
            table_id=ofp.OFPTT_ALL,
            cookie=generation << COOKIE_BITS,
            cookie_mask=_GENERATION_MASK,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
        )
    )


@lru_cache(maxsize=1 << 12)
def set_group(group: Group) -> bytes:
    """Return the message that makes *group*, or replaces the one with its id as a whole."""
    if group.method == "hash" and not group.fields:
        raise EncodingError(f"group {group.id}: method hash needs the fields to hash")
    if group.method != "hash" and group.fields:
        raise EncodingError(f"group {group.id}: {group.method} hashes no fields of its own, so it takes none")
    properties = []
    if group.method != "failover":
        properties.append(SelectionMethod(group.method, group.basis, group.fields))
    elif any(bucket.watch_port is None and bucket.watch_group is None for bucket in group.buckets):
        raise EncodingError(f"group {group.id}: failover needs a port or group to watch in every bucket")
    select = group.method != "failover"
    buckets = [_EncodedBucket(number, bucket, select) for number, bucket in enumerate(group.buckets)]
    return serialized(
        parser.OFPGroupMod(
            PROTOCOL,
            command=_ADD_OR_MODIFY,
            type_=ofp.OFPGT_SELECT if select else ofp.OFPGT_FF,
            group_id=group.id,
            command_bucket_id=ofp.OFPG_BUCKET_ALL,
            buckets=buckets,
            properties=properties,
        )
    )


def delete_group(group: int) -> bytes:
    """Return the message that deletes a group, and with it every flow entry that names it."""
    return serialized(
        parser.OFPGroupMod(
            PROTOCOL,
            command=ofp.OFPGC_DELETE,
            type_=ofp.OFPGT_SELECT,
            group_id=group,
            command_bucket_id=ofp.OFPG_BUCKET_ALL,
        )
    )


@lru_cache(maxsize=1 << 13)
def add_meter(meter: Meter) -> bytes:
    """Return the message that makes a meter; a switch that has it already answers with an error."""
    return _meter(meter, ofp.OFPMC_ADD)


@lru_cache(maxsize=1 << 13)
def modify_meter(meter: Meter) -> bytes:
    """Return the message that makes a meter of that number this one; its counts may begin anew then.

    A switch without it answers with an error.
    """
    return _meter(meter, ofp.OFPMC_MODIFY)


def _meter(meter: Meter, command: int) -> bytes:
    rate = METER_RATE_PPS if meter.most_pps is None else meter.most_pps
    return serialized(
        parser.OFPMeterMod(
            PROTOCOL,
            command=command,
            flags=ofp.OFPMF_PKTPS | ofp.OFPMF_STATS,
            meter_id=meter.id,
            bands=[parser.OFPMeterBandDrop(rate=rate)],
        )
    )


def delete_meter(meter: int) -> bytes:
    """Return the message that deletes a meter, and with it every flow entry that names it."""
    return serialized(parser.OFPMeterMod(PROTOCOL, command=ofp.OFPMC_DELETE, flags=0, meter_id=meter))


def packet_out(port: int, data: bytes) -> bytes:
    """Return the message that sends the frame *data* out of *port*."""
    length = _LENGTH.pack(len(_PACKET_OUT) + len(data))
    return b"".join((_BEFORE_LENGTH, length, _BEFORE_PORT, _PORT.pack(port), _AFTER_PORT, data))


class _EncodedBucket:
    """A bucket as os-ken's group message wants it: ``len`` and ``serialize``.

    os-ken's OFPBucket works too (its properties need type and length spelt out), but spray groups repeat
    each uplink's bucket many times, and this way only the number differs.
    """

    def __init__(self, number: int, bucket: Bucket, weighted: bool) -> None:
        tail, actions = _bucket_tail(bucket, weighted)
        self._data = _BUCKET_HEAD.pack(_BUCKET_HEAD.size + len(tail), actions, number) + tail
        self.len = len(self._data)

    def serialize(self, buffer: bytearray, offset: int) -> None:
        buffer.extend(bytes(offset - len(buffer)))  # os-ken writes the message's own head last
        buffer += self._data


_BUCKET_HEAD: Final = struct.Struct("!HHI")
_BUCKET_WEIGHT: Final = struct.Struct("!HHH2x")
_BUCKET_WATCH: Final = struct.Struct("!HHI")


@lru_cache(maxsize=1 << 12)
def _bucket_tail(bucket: Bucket, weighted: bool) -> tuple[bytes, int]:
    """Return actions and properties, and the length of the actions. Only buckets of select groups may have a weight."""
    buffer = bytearray()
    for action in bucket.actions:
        encoded = _action(action)
        encoded.serialize(buffer, len(buffer))
    actions = len(buffer)
    if weighted:
        buffer += _BUCKET_WEIGHT.pack(ofp.OFPGBPT_WEIGHT, _BUCKET_WEIGHT.size, bucket.weight)
    if bucket.watch_port is not None:
        buffer += _BUCKET_WATCH.pack(ofp.OFPGBPT_WATCH_PORT, _BUCKET_WATCH.size, bucket.watch_port)
    if bucket.watch_group is not None:
        buffer += _BUCKET_WATCH.pack(ofp.OFPGBPT_WATCH_GROUP, _BUCKET_WATCH.size, bucket.watch_group)
    return bytes(buffer), actions


def _action(action: Action) -> Any:
    match action:
        case Output(port):
            return parser.OFPActionOutput(port)
        case ToController(max_bytes):
            return parser.OFPActionOutput(ofp.OFPP_CONTROLLER, max_bytes)
        case ToGroup(group):
            return parser.OFPActionGroup(group)
        case ThroughMeter(meter):
            # OpenFlow 1.5 made the meter an action; Open vSwitch 3.1 takes it as one (and only as one).
            return parser.OFPActionMeter(meter)
        case ToQueue(queue):
            return parser.OFPActionSetQueue(queue)
        case SetField(name, value):
            return parser.OFPActionSetField(**{name: value})
        case CopyField(source, target):
            return parser.OFPActionCopyField(_FIELD_BITS[source], oxm_ids=[source, target])


def _match(match: Match) -> Any:
    fields: dict[str, Any] = {}
    for name in _MATCHED:
        value, bits = getattr(match, name), _FIELD_BITS[name]
        if value is None:
            continue
        if isinstance(value, tuple):
            value = _checked_mask(name, value, bits)
            if value[1] == (1 << bits) - 1:
                value = value[0]
        elif isinstance(value, str) and "/" in value:
            value = _address_and_mask(name, value)
        fields[name] = value
    return parser.OFPMatch(**fields)


def _address_and_mask(name: str, text: str) -> tuple[str, str]:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise EncodingError(f"{name}: {error}") from None
    return str(network.network_address), str(network.netmask)


_FIELD_BITS: Final[dict[str, int]] = {
    "in_port": 32,
    "eth_type": 16,
    "eth_src": 48,
    "eth_dst": 48,
    "ip_proto": 8,
    "ip_dscp": 6,
    "ipv4_src": 32,
    "ipv4_dst": 32,
    "udp_src": 16,
    "udp_dst": 16,
    "arp_op": 16,
    "arp_spa": 32,
    "arp_tpa": 32,
    "arp_sha": 48,
    "arp_tha": 48,
    "metadata": 64,
}

_MATCHED: Final = tuple(field.name for field in dataclasses.fields(Match))


def _checked_mask(name: str, masked: Masked, bits: int) -> Masked:
    value, mask = masked
    if not 0 < mask < 1 << bits:
        raise EncodingError(f"{name}: mask {mask:#x} does not fit {bits} bits")
    if value & ~mask:
        # A switch drops the bits outside the mask silently and then matches more than was meant.
        raise EncodingError(f"{name}: value {value:#x} has bits outside its mask {mask:#x}")
    return masked


def _wire_cookie(flow: FlowRule, generation: int) -> int:
    if not 0 <= flow.cookie <= _COOKIE_MASK:
        raise EncodingError(f"flow {flow}: cookie {flow.cookie:#x} does not fit {COOKIE_BITS} bits")
    return generation << COOKIE_BITS | flow.cookie


def serialized(message: Any) -> bytes:
    """Return the bytes of a message of os-ken's."""
    message.set_xid(0)
    message.serialize()
    return bytes(message.buf)


_PACKET_OUT: Final = serialized(
    parser.OFPPacketOut(
        PROTOCOL,
        buffer_id=ofp.OFP_NO_BUFFER,
        match=parser.OFPMatch(in_port=ofp.OFPP_CONTROLLER),
        actions=[parser.OFPActionOutput(0)],
        data=b"",
    )
)
"""One without a frame, out of port 0. os-ken takes 17 us for one, and a port gets one every few seconds."""
_PORT_AT: Final = len(_PACKET_OUT) - 12
_BEFORE_LENGTH: Final = _PACKET_OUT[:2]
_BEFORE_PORT: Final = _PACKET_OUT[4:_PORT_AT]
_AFTER_PORT: Final = _PACKET_OUT[_PORT_AT + 4 :]
