"""A switch made of bytes, for tests of sessions."""

from __future__ import annotations

import struct

from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.openflow.cookies import Rule
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import Ready
from controller.openflow.wanted import (
    FlowRule,
    Match,
    Output,
)
from tests.unit.switch_messages import (
    features,
    hello,
    message,
    multipart,
    port,
    sent,
)


def handshake(
    flows: bytes = b"", groups: bytes = b"", meters: bytes = b"", more: bool = False
) -> tuple[OpenFlowSession, Ready]:
    """Return a session that is ready, and its event; *more*: each reply comes in two parts."""
    one = OpenFlowSession(0.0)
    ((kind, _, _),) = sent(one.data_to_send())
    assert kind == ofp.OFPT_HELLO
    assert not list(one.receive(hello(6), 0.0))
    ((kind, xid, _),) = sent(one.data_to_send())
    assert kind == ofp.OFPT_FEATURES_REQUEST
    assert not list(one.receive(features(xid), 0.0))
    bodies = {
        ofp.OFPMP_PORT_DESC: port(1, b"p1")
        + port(2, b"p2", ofp.OFPPS_LINK_DOWN)
        + port(ofp.OFPP_LOCAL, b"l1"),
        ofp.OFPMP_FLOW_DESC: flows,
        ofp.OFPMP_GROUP_STATS: groups,
        ofp.OFPMP_METER_STATS: meters,
    }
    events: list[object] = []
    for kind, xid, request in sent(one.data_to_send()):
        assert kind == ofp.OFPT_MULTIPART_REQUEST
        (what,) = struct.unpack_from("!H", request, 8)
        if more:
            cut = 72 if what == ofp.OFPMP_PORT_DESC else len(bodies[what]) // 3
            events += one.receive(multipart(what, xid, bodies[what][:cut], more=True), 0.0)
            events += one.receive(multipart(what, xid, bodies[what][cut:]), 0.0)
        else:
            events += one.receive(multipart(what, xid, bodies[what]), 0.0)
    (ready,) = events
    assert isinstance(ready, Ready)
    return one, ready


FLOW = FlowRule(1, 10, Match(eth_type=0x800, ipv4_dst="10.0.1.1"), (Output(1),), cookie=Rule.DELIVER)


def meters(*numbers: int) -> bytes:
    return b"".join(struct.pack("!IHxxxxxxIQQII", number, 40, 1, 17, 0, 0, 0) for number in numbers)


def status(number: int) -> bytes:
    return message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", ofp.OFPPR_ADD) + port(number, b"p"))
