"""What a session asks of a switch, as OpenFlow 1.5 messages without a transaction id yet (`codec.with_xid`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from controller.fabric.switch_data import Port
from controller.openflow import codec, reading
from controller.openflow.osken import ofp, parser

_HEADER: Final = reading.HEADER
_COUNTERS: Final = struct.Struct("!BBHIHH4xI4x")
_PORT_CHANGE: Final = struct.Struct("!BBHII4x6s2xII")

ECHO: Final = _HEADER.pack(codec.VERSION, ofp.OFPT_ECHO_REQUEST, _HEADER.size, 0)
BARRIER: Final = _HEADER.pack(codec.VERSION, ofp.OFPT_BARRIER_REQUEST, _HEADER.size, 0)


def hello() -> bytes:
    """Return the first message of a connection; it says that we speak OpenFlow 1.5 only."""
    versions = parser.OFPHelloElemVersionBitmap([codec.VERSION])
    return codec.serialized(parser.OFPHello(codec.PROTOCOL, [versions]))


def features() -> bytes:
    """Return the request for the switch's datapath id."""
    return codec.serialized(parser.OFPFeaturesRequest(codec.PROTOCOL))


def inventory() -> Mapping[int, bytes]:
    """Return the requests for all ports, flows, groups and meters, by the kind of their multipart replies."""
    requests = {
        ofp.OFPMP_PORT_DESC: parser.OFPPortDescStatsRequest(codec.PROTOCOL),
        ofp.OFPMP_FLOW_DESC: parser.OFPFlowDescStatsRequest(codec.PROTOCOL, table_id=ofp.OFPTT_ALL),
        ofp.OFPMP_GROUP_STATS: parser.OFPGroupStatsRequest(codec.PROTOCOL, group_id=ofp.OFPG_ALL),
        ofp.OFPMP_METER_STATS: parser.OFPMeterStatsRequest(codec.PROTOCOL, meter_id=ofp.OFPM_ALL),
    }
    return {kind: codec.serialized(request) for kind, request in requests.items()}


def meter_counts(meter: int) -> bytes:
    """Return the request for what one meter has counted."""
    return _counters(ofp.OFPMP_METER_STATS, meter)


def port_counters() -> bytes:
    """Return the request for all ports' counters."""
    return _counters(ofp.OFPMP_PORT_STATS, ofp.OFPP_ANY)


def _counters(kind: int, item: int) -> bytes:
    return _COUNTERS.pack(codec.VERSION, ofp.OFPT_MULTIPART_REQUEST, _COUNTERS.size, 0, kind, 0, item)


def port_change(port: Port, up: bool) -> bytes:
    """Return what takes *port* down, or up again (OFPT_PORT_MOD)."""
    address = bytes.fromhex(port.mac.replace(":", ""))
    head = (codec.VERSION, ofp.OFPT_PORT_MOD, _PORT_CHANGE.size, 0)
    config = 0 if up else ofp.OFPPC_PORT_DOWN
    return _PORT_CHANGE.pack(*head, port.number, address, config, ofp.OFPPC_PORT_DOWN)


def echo_reply(request: bytes, xid: int) -> bytes:
    """Return the answer to an echo request, with its data and its transaction id."""
    head = _HEADER.pack(codec.VERSION, ofp.OFPT_ECHO_REPLY, len(request), xid)
    return head + request[_HEADER.size :]
