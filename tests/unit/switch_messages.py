"""Messages as switches send them, put together by hand: what a test has a session or a reader take."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.openflow import codec
from controller.openflow.session import OpenFlowSession
from controller.openflow.wanted import FlowRule

DPID = 0xCA5


def message(kind: int, xid: int, body: bytes = b"", version: int = 6) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def hello(*versions: int) -> bytes:
    bitmap = sum(1 << version for version in versions)
    return message(ofp.OFPT_HELLO, 1, struct.pack("!HHI", 1, 8, bitmap), max(versions))


def features(xid: int, dpid: int = DPID) -> bytes:
    return message(ofp.OFPT_FEATURES_REPLY, xid, struct.pack("!QIBBxxII", dpid, 0, 254, 0, 0x4F, 0))


def port(number: int, name: bytes, state: int = ofp.OFPPS_LIVE) -> bytes:
    ethernet = struct.pack("!HHxxxxIIIIII", 0, 32, 0, 0, 0, 0, 10_000_000, 0)
    return struct.pack("!IHxx6sxx16sII", number, 72, b"\x02\0\0\0\0\x01", name, 0, state) + ethernet


def multipart(kind: int, xid: int, body: bytes = b"", more: bool = False) -> bytes:
    return message(ofp.OFPT_MULTIPART_REPLY, xid, struct.pack("!HHxxxx", kind, int(more)) + body)


def flow_description(flow: FlowRule, generation: int) -> bytes:
    """Return a flow as the switch describes it: from the flow-mod that made it."""
    mod = codec.add_flow(flow, generation)
    length = struct.unpack_from("!H", mod, 50)[0]
    match = mod[48 : 48 + length + -length % 8]
    stats = struct.pack("!HHxxxx", 0x8002, 4)
    rest = match + stats + mod[48 + len(match) :]
    head = struct.pack(
        "!HxxBxHHHHHQ", 24 + len(rest), flow.table, flow.priority, 0, 0, 0, 0, generation << 48 | flow.cookie
    )
    return head + rest


def packet_in(in_port: int, cookie: int, data: bytes) -> bytes:
    match = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, in_port)
    head = struct.pack("!IHBBQ", 0xFFFFFFFF, len(data), 1, 2, cookie)
    return message(ofp.OFPT_PACKET_IN, 0, head + match + b"\0\0" + data)


def sent(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (type, xid, whole message) of each message in *data*."""
    while data:
        _, kind, length, xid = struct.unpack_from("!BBHI", data)
        yield kind, xid, data[:length]
        data = data[length:]


def ready_session(*ports: bytes) -> OpenFlowSession:
    """Return a session after a whole handshake with a switch that has these ports, and nothing else."""
    session = OpenFlowSession(0.0)
    session.data_to_send()
    list(session.receive(hello(6), 0.0))
    [(_, xid, _)] = sent(session.data_to_send())
    list(session.receive(features(xid), 0.0))
    for _, xid, request in sent(session.data_to_send()):
        (what,) = struct.unpack_from("!H", request, 8)
        body = b"".join(ports) if what == ofp.OFPMP_PORT_DESC else b""
        list(session.receive(multipart(what, xid, body), 0.0))
    assert session.ready
    return session
