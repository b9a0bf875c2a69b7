"""The switches' side of OpenFlow: one session without a socket, and a running controller."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from typing import Final

from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.control_plane import ControlPlane
from controller.fabric.arp import Arp
from controller.openflow.cookies import Rule
from controller.openflow.errors import PeerError
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import Ready
from controller.openflow.tables import Table
from controller.openflow.wanted import FlowRule, Match, Output, SetField
from controller.process.control_thread import check_control_threads
from controller.shell.shell import OpenFlowShell
from tests.fuzz.target import Target
from tests.unit.raw_switch import raw_switch
from tests.unit.switch_messages import (
    features,
    flow_description,
    hello,
    message,
    multipart,
    packet_in,
    port,
    sent,
)
from tests.waiting import eventually

ASKED_XID: Final = 0xFEEDFACE
"""In a sample: the transaction id of the last request stands here."""


def _openflow_samples() -> list[bytes]:
    deliver = (SetField("eth_dst", "02:00:00:00:00:01"), Output(3))
    flow = FlowRule(
        Table.DELIVER, 10, Match(eth_type=0x800, ipv4_dst="10.0.1.1"), deliver, cookie=Rule.DELIVER
    )
    bodies = {
        ofp.OFPMP_PORT_DESC: port(1, b"p1") + port(2, b"p2") + port(ofp.OFPP_LOCAL, b"l1"),
        ofp.OFPMP_FLOW_DESC: flow_description(flow, 6) + flow_description(flow, 7),
        ofp.OFPMP_GROUP_DESC: b"",
        ofp.OFPMP_METER_DESC: b"",
        ofp.OFPMP_PORT_STATS: b"\0\x50\0\0" + bytes(76),
        ofp.OFPMP_METER_STATS: b"\0\0\0\x01\0\x28" + bytes(34),
    }
    return [
        hello(6),
        hello(4),
        *(features(xid, dpid) for xid in (1, ASKED_XID) for dpid in (0x11, 0x12)),
        *(multipart(kind, ASKED_XID, body, more) for kind, body in bodies.items() for more in (False, True)),
        packet_in(1, int(Rule.ARP), Arp("ff:ff:ff:ff:ff:ff", "02:00:00:00:00:09", 1, "02:00:00:00:00:09", "10.0.1.9",
                                        "00:00:00:00:00:00", "10.0.1.8").encode()),
        packet_in(1, int(Rule.FIRST_SHORT), bytes(64)),
        message(ofp.OFPT_PORT_STATUS, 0, b"\0" + bytes(7) + port(1, b"p1")),
        message(ofp.OFPT_ERROR, ASKED_XID, b"\0\x05\0\x02" + bytes(64)),
        message(ofp.OFPT_BARRIER_REPLY, ASKED_XID),
        message(ofp.OFPT_ECHO_REQUEST, 9, b"echo"),
        message(ofp.OFPT_ECHO_REPLY, ASKED_XID),
        message(ofp.OFPT_BUNDLE_CONTROL, ASKED_XID, bytes(8)),
        message(ofp.OFPT_EXPERIMENTER, 5, bytes(8)),
    ]  # fmt: skip


def _with_xid(data: bytes, xid: int) -> bytes:
    return data.replace(ASKED_XID.to_bytes(4, "big"), xid.to_bytes(4, "big"))


class SwitchSession(Target):
    """A session without a socket, from its first byte on or after a handshake: it refuses by PeerError or goes on."""

    samples = (*_openflow_samples(), b"")

    def run(self, messages: Sequence[bytes]) -> None:
        session, xid = OpenFlowSession(0.0), 0
        shake = [] if messages[0] == b"" else self._handshake()
        for number, data in enumerate((*shake, *messages)):
            try:
                list(session.receive(_with_xid(data, xid), number * 0.001))
                session.timer(number * 0.001)
            except PeerError:
                return
            for _, asked, _ in sent(session.data_to_send()):
                xid = asked

    def _handshake(self) -> list[bytes]:
        return [hello(6), features(ASKED_XID)]

    def close(self) -> None:
        session, ready = OpenFlowSession(0.0), False
        queue = [hello(6)]
        while queue:
            ready |= any(isinstance(event, Ready) for event in session.receive(queue.pop(0), 0.0))
            for kind, xid, asked in sent(session.data_to_send()):
                if kind == ofp.OFPT_FEATURES_REQUEST:
                    queue.append(features(xid))
                elif kind == ofp.OFPT_MULTIPART_REQUEST:
                    queue.append(multipart(int.from_bytes(asked[8:10], "big"), xid))
        assert ready, "a good switch is not ready any more"


class RunningController(Target):
    """Two connections of equal datapath ids at a running controller, closed in any order; a good switch stays, and is
    sent what a change of its ports needs."""

    samples = tuple(_openflow_samples())
    LAST_PORT: Final = 60
    """A port that is new needs entries; after so many another good switch takes the place of the last."""

    def __init__(self) -> None:
        self._plane = ControlPlane(b"0123456789abcdef")
        self._shell = OpenFlowShell(self._plane, "127.0.0.1", 0, on_event=lambda event: None)
        self._shell.start()
        self._ends = contextlib.ExitStack()
        self._ends.callback(self._shell.stop)
        self._dpid = 0xC0FFEE
        self._join()

    def _join(self) -> None:
        self._dpid += 1
        self._good_ends = contextlib.ExitStack()
        self._good = self._good_ends.enter_context(raw_switch(self._shell.port, self._dpid))
        self._next_port = 3
        eventually(lambda: self._updates(), "the good switch's state")

    def _updates(self) -> int:
        """Return how many entries the good switch was sent, once it is connected; until then 0."""
        return (
            self._good.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE) if self._dpid in self._connected() else 0
        )

    def _connected(self) -> set[int]:
        return {one.dpid for one in self._shell.call(self._plane.snapshot).switches if one.connected}

    def run(self, messages: Sequence[bytes]) -> None:
        with contextlib.ExitStack() as ends:
            pair = [
                ends.enter_context(socket.create_connection(("127.0.0.1", self._shell.port)))
                for _ in range(2)
            ]
            for data in messages:
                with contextlib.suppress(OSError):
                    pair[len(data) % 2].sendall(data)
        eventually(lambda: self._connected() <= {self._dpid}, "both connections are over")
        assert self._dpid in self._connected(), "the good switch has lost its place"
        before, name = self._updates(), b"p%d" % self._next_port
        self._good.send(message(ofp.OFPT_PORT_STATUS, 0, b"\0" + bytes(7) + port(self._next_port, name)))
        eventually(lambda: self._updates() > before, "the good switch's update after a case")
        self._next_port += 1
        if self._next_port > self.LAST_PORT:
            self._good_ends.close()
            self._join()

    def close(self) -> None:
        with raw_switch(self._shell.port, 0xBEEF):
            eventually(lambda: {self._dpid, 0xBEEF} <= self._connected(), "a new switch after all cases")
        check_control_threads()
        assert self._shell.counters().get("faults", 0) == 0, "the control plane raised; its log says what"
        self._good_ends.close()
        self._ends.close()
