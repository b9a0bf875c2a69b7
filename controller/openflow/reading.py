"""Reads what switches send: messages and replies' bodies in, plain data out, every length checked.

os-ken parses nothing that a switch sends (`controller.openflow.lengths` says why); it makes what we send.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.switch_data import LOCAL_PORT_FIRST, MOST_PORTS, MeterReading, Port
from controller.openflow.lengths import EntryForm, MalformedError, Span, entries, need
from controller.openflow.osken import ofp

HEADER: Final = struct.Struct("!BBHI")
"""Version, type, length, transaction id."""
MULTIPART: Final = struct.Struct("!HH4x")
_U16: Final = struct.Struct("!H")
_U32: Final = struct.Struct("!I")
_FEATURES: Final = struct.Struct("!8xQ16x")
_ERROR: Final = struct.Struct("!8xHH")
_PACKET_IN: Final = struct.Struct("!8x4xHxxQ")
"""Length of the whole packet, cookie."""
_PORT_STATUS: Final = struct.Struct("!8xB7x")
_PORT: Final = struct.Struct("!IH2x6s2x16sII")
_FLOW: Final = struct.Struct("!H2xBxHHHHHQ")
_METER: Final = struct.Struct("!IH6xIQQ")
_OXM: Final = struct.Struct("!HBB")

_HELLO_ELEMENT: Final = EntryForm("hello element", 2, 4, aligned=False, padded=True)
PORT_FORM: Final = EntryForm("port", 4, _PORT.size, most=MOST_PORTS)
_PORT_PROPERTY: Final = EntryForm("port property", 2, 4, aligned=False, padded=True)
FLOW_FORM: Final = EntryForm("flow description", 0, _FLOW.size + 16, most=1 << 17)
"""Match and statistics of nothing take 8 B each. A leaf has three entries for each host of another leaf."""
_PADDED_LIST: Final = {
    name: EntryForm(name, 2, 4, aligned=False, padded=True) for name in ("match", "flow statistics")
}
_INSTRUCTION: Final = EntryForm("instruction", 2, 8)
_ACTION: Final = EntryForm("action", 2, 8)
GROUP_FORM: Final = EntryForm("group statistics", 0, 40)
METER_FORM: Final = EntryForm("meter statistics", 4, 40, most=1 << 14)
_PORT_COUNTERS: Final = EntryForm("port statistics", 0, 80, most=MOST_PORTS)

_ETHERNET_PROPERTY: Final = 32
_CURRENT_SPEED_AT: Final = 24
_ACTIONS_AT: Final = 8
_OXM_CLASS: Final = 0x8000
_IN_PORT, _ETH_DST, _IPV4_DST, _UDP_DST = 0, 3, 12, 16
_FIELD_BYTES: Final = {_IN_PORT: 4, _ETH_DST: 6, _IPV4_DST: 4, _UDP_DST: 2}
"""Fields that are read, by their number in OFPXMC_OPENFLOW_BASIC."""


@dataclass(frozen=True, slots=True)
class PacketInMessage:
    """A packet that an entry with this cookie (as on the wire) sent up."""

    in_port: int
    cookie: int
    data: bytes


@dataclass(slots=True)
class FlowDescription:
    """What counts of a flow entry for us. Addresses are text; None: not matched as a whole, or not written."""

    table: int
    cookie: int
    """As on the wire."""
    ipv4_dst: str | None = None
    eth_dst: str | None = None
    written_eth_dst: str | None = None
    writes_udp_dst: bool = False
    outputs: list[int] = field(default_factory=list)


def hello_versions(message: bytes) -> int:
    """Return the versions that a hello offers, a bit each: its bitmap, or all up to the header's if it has none."""
    need("hello", message, HEADER.size)
    bitmap = (2 << message[0]) - 1
    for element in entries(_HELLO_ELEMENT, message, HEADER.size, len(message)):
        if _U16.unpack_from(message, element.begin)[0] == ofp.OFPHET_VERSIONBITMAP and (
            element.end - element.begin >= 8
        ):
            (bitmap,) = _U32.unpack_from(message, element.begin + 4)
    return int(bitmap)


def error_numbers(message: bytes) -> tuple[int, int]:
    """Return type and code of an OFPT_ERROR."""
    need("error", message, _ERROR.size)
    kind, code = _ERROR.unpack_from(message)
    return int(kind), int(code)


def datapath_id(message: bytes) -> int:
    """Return the datapath id in an OFPT_FEATURES_REPLY."""
    need("features reply", message, _FEATURES.size)
    return int(_FEATURES.unpack_from(message)[0])


def packet_in(message: bytes) -> PacketInMessage:
    """Return what an OFPT_PACKET_IN carries."""
    need("packet-in", message, _PACKET_IN.size + 8 + 2)
    total, cookie = _PACKET_IN.unpack_from(message)
    match, after = _padded_list("match", message, _PACKET_IN.size, len(message))
    need("packet-in", message, after + 2)
    port = None
    for number, masked, value in _oxm_fields(message, match):
        if number == _IN_PORT and not masked:
            (port,) = _U32.unpack_from(value)
    if port is None:
        raise MalformedError("packet-in that does not say at which port the packet came in")
    return PacketInMessage(port, cookie, message[after + 2 :][:total])


def port_status(message: bytes) -> Port | None:
    """Return the port that an OFPT_PORT_STATUS is about (down, if it was removed); None for a reserved one."""
    need("port status", message, _PORT_STATUS.size + _PORT.size)
    (reason,) = _PORT_STATUS.unpack_from(message)
    (span, *more) = entries(PORT_FORM, message, _PORT_STATUS.size, len(message))
    if more:
        raise MalformedError("port status of more than one port")
    return _port(message, span, removed=reason == ofp.OFPPR_DELETE)


def ports_in(body: bytes) -> list[Port]:
    """Return the ports in the body of an OFPMP_PORT_DESC reply, without the reserved ones but OFPP_LOCAL."""
    ports = (_port(body, span) for span in entries(PORT_FORM, body, 0, len(body)))
    return [port for port in ports if port is not None]


def flows_in(body: bytes) -> Iterator[FlowDescription]:
    """Yield the entries in the body of an OFPMP_FLOW_DESC reply."""
    for span in entries(FLOW_FORM, body, 0, len(body)):
        yield _flow(body, span)


def groups_in(body: bytes) -> frozenset[int]:
    """Return the group ids in the body of an OFPMP_GROUP_STATS reply."""
    return frozenset(
        _U32.unpack_from(body, span.begin + 4)[0] for span in entries(GROUP_FORM, body, 0, len(body))
    )


def meters_in(body: bytes) -> dict[int, MeterReading]:
    """Return what each meter has counted, from the body of an OFPMP_METER_STATS reply."""
    readings = {}
    for span in entries(METER_FORM, body, 0, len(body)):
        meter, _, _, packets, octets = _METER.unpack_from(body, span.begin)
        readings[meter] = MeterReading(packets, octets)
    return readings


def check_port_counters(body: bytes) -> None:
    """Raise MalformedError if *body* is not that of an OFPMP_PORT_STATS reply."""
    for span in entries(_PORT_COUNTERS, body, 0, len(body)):
        for _ in entries(_PORT_PROPERTY, body, span.begin + _PORT_COUNTERS.least, span.end):
            pass


def _port(data: bytes, span: Span, removed: bool = False) -> Port | None:
    number, _, mac, name, config, state = _PORT.unpack_from(data, span.begin)
    speed = 0
    for item in entries(_PORT_PROPERTY, data, span.begin + _PORT.size, span.end):
        if _U16.unpack_from(data, item.begin)[0] == ofp.OFPPDPT_ETHERNET:
            if item.end - item.begin < _ETHERNET_PROPERTY:
                raise MalformedError(f"Ethernet property of {item.end - item.begin} B at byte {item.begin}")
            speed = max(speed, _U32.unpack_from(data, item.begin + _CURRENT_SPEED_AT)[0])
    if number >= LOCAL_PORT_FIRST and number != ofp.OFPP_LOCAL:
        return None
    down = config & ofp.OFPPC_PORT_DOWN or state & ofp.OFPPS_LINK_DOWN
    text = name.partition(b"\0")[0].decode(errors="replace")
    return Port(number, text, mac.hex(":"), not (down or removed), speed)


def _flow(data: bytes, span: Span) -> FlowDescription:
    _, table, *_, cookie = _FLOW.unpack_from(data, span.begin)
    flow = FlowDescription(table, cookie)
    match, after = _padded_list("match", data, span.begin + _FLOW.size, span.end)
    for number, masked, value in _oxm_fields(data, match):
        if number == _IPV4_DST and not masked:
            flow.ipv4_dst = ".".join(map(str, value))
        elif number == _ETH_DST and not masked:
            flow.eth_dst = value.hex(":")
    statistics, after = _padded_list("flow statistics", data, after, span.end)
    for _ in _oxms(data, statistics):
        pass
    for instruction in entries(_INSTRUCTION, data, after, span.end):
        (kind,) = _U16.unpack_from(data, instruction.begin)
        if kind in (ofp.OFPIT_APPLY_ACTIONS, ofp.OFPIT_WRITE_ACTIONS):
            for action in entries(_ACTION, data, instruction.begin + _ACTIONS_AT, instruction.end):
                _note_action(flow, data, action)
    return flow


def _note_action(flow: FlowDescription, data: bytes, span: Span) -> None:
    (kind,) = _U16.unpack_from(data, span.begin)
    if kind == ofp.OFPAT_OUTPUT:
        if span.end - span.begin != 16:
            raise MalformedError(f"output action of {span.end - span.begin} B at byte {span.begin}")
        flow.outputs.append(_U32.unpack_from(data, span.begin + 4)[0])
    elif kind == ofp.OFPAT_SET_FIELD:
        number, _, value = _set_field(data, span)
        if number == _ETH_DST:
            flow.written_eth_dst = value.hex(":")
        elif number == _UDP_DST:
            flow.writes_udp_dst = True


def _set_field(data: bytes, span: Span) -> tuple[int | None, bool, bytes]:
    """Return one OXM field, and zeros up to the action's end."""
    length = _OXM.size + _OXM.unpack_from(data, span.begin + 4)[2]
    return next(_oxm_fields(data, Span(span.begin + 4, min(span.begin + 4 + length, span.end))))


def _padded_list(name: str, data: bytes, begin: int, end: int) -> tuple[Span, int]:
    """Return where the fields of a match (or of flow statistics) lie, and where what follows it begins."""
    span = next(entries(_PADDED_LIST[name], data, begin, end), None)
    if span is None:
        raise MalformedError(f"{name} at byte {begin} is missing")
    return Span(begin + 4, span.end), begin + -(-(span.end - begin) // 8) * 8


def _oxms(data: bytes, span: Span) -> Iterator[tuple[int, int, Span]]:
    """Yield class, field number with its mask bit, and where the value lies."""
    begin = span.begin
    while begin < span.end:
        if span.end - begin < _OXM.size:
            raise MalformedError(f"field at byte {begin} is cut off: {span.end - begin} B are left")
        kind, number, length = _OXM.unpack_from(data, begin)
        begin += _OXM.size
        if not length or begin + length > span.end:
            raise MalformedError(
                f"field at byte {begin} has {length} B, {span.end - begin} B are left for it"
            )
        yield kind, number, Span(begin, begin + length)
        begin += length


def _oxm_fields(data: bytes, span: Span) -> Iterator[tuple[int | None, bool, bytes]]:
    """Yield each field of a match: number (None outside of OFPXMC_OPENFLOW_BASIC), whether it is masked, and value."""
    for kind, head, place in _oxms(data, span):
        number, masked = (head >> 1 if kind == _OXM_CLASS else None), bool(head & 1)
        value = data[place.begin : place.end]
        expected = _FIELD_BYTES.get(number, 0) if number is not None else 0
        if expected and len(value) != expected << masked:
            raise MalformedError(
                f"field {number} at byte {place.begin} has {len(value)} B, not {expected << masked}"
            )
        yield number, masked, value
