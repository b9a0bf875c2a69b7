"""Connections that say much are read after others, and left unread for a moment where packets of theirs are dropped."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.control_plane import ControlPlane
from controller.fabric.graph import PortRef
from controller.fabric.lldp import encode_lldp
from controller.openflow.connection import UNREAD_S, ConnectionEnded, SwitchConnection
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.packet_allowance import BURST, MOST_PPS, PacketAllowance
from controller.openflow.punts import PORT_PPS, SHARED_PPS
from controller.openflow.read_pauses import MOST_S, PAUSE_S, ReadPauses
from controller.plane.effects import Effects
from controller.shell.shell import OpenFlowShell
from tests.unit.raw_switch import raw_switch
from tests.unit.running_shell import held, running_shell
from tests.unit.switch_messages import message, packet_in, port
from tests.waiting import eventually

LIMIT_S = 60.0
ECHO_REQUEST = message(ofp.OFPT_ECHO_REQUEST, 1)
Ends = tuple[SwitchConnection, socket.socket, selectors.BaseSelector]


@pytest.fixture
def ends() -> Iterator[Ends]:
    with (
        selectors.DefaultSelector() as selector,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
    ):
        accepted, _ = server.accept()
        connection = SwitchConnection(accepted, "test", selector, 0.0, counters=Counter())
        yield connection, caller, selector
        connection.close()


def test_it_is_not_read_before_the_pause_is_over(ends: Ends) -> None:
    connection, caller, selector = ends
    caller.sendall(b"something")
    assert [key.data for key, _ in selector.select(LIMIT_S)] == [connection]
    pauses = ReadPauses()
    pauses.pause(connection, 10.0)
    assert selector.select(0) == []
    assert pauses.deadline() == 10.0 + PAUSE_S
    pauses.resume(10.0)
    assert selector.select(0) == []
    pauses.resume(10.0 + PAUSE_S)
    assert [key.data for key, _ in selector.select(LIMIT_S)] == [connection]
    assert pauses.deadline() is None


def test_one_that_is_closed_meanwhile_is_left_alone(ends: Ends) -> None:
    connection, _, selector = ends
    pauses = ReadPauses()
    pauses.pause(connection, 0.0)
    connection.close()
    pauses.resume(PAUSE_S)
    assert not selector.get_map()


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 3000)), max_size=50), st.integers(0, 5000))
def test_no_more_packets_are_read_than_meters_would_let_through(
    reads: list[tuple[float, int]], ports: int
) -> None:
    """A reader that waits as long as it is asked to is at the burst and the rate, but for one read."""
    allowance, now, taken, pause = PacketAllowance(0.0), 0.0, 0, 0.0
    rate = min(MOST_PPS, SHARED_PPS + PORT_PPS * ports)
    for later_s, packets in reads:
        now += max(later_s, pause)
        pause = allowance.take(packets, ports, now)
        taken += packets
        assert taken <= BURST + rate * now + packets + 1e-6


def test_shorter_pauses_end_first(ends: Ends) -> None:
    connection, _, _ = ends
    pauses = ReadPauses()
    pauses.pause(connection, 0.0, 0.5)
    pauses.pause(connection, 0.0, 0.1)
    assert pauses.deadline() == 0.1
    pauses.resume(0.1)
    assert pauses.deadline() == 0.5
    pauses.pause(connection, 0.0, 1e9)
    pauses.resume(0.5)
    assert pauses.deadline() == MOST_S


def test_what_came_of_late_counts_half_after_a_second(ends: Ends) -> None:
    connection, caller, selector = ends
    assert connection.recent_bytes(5.0) == 0
    for at_s, expected in ((10.0, 8.0), (11.0, 12.0)):
        caller.sendall(ECHO_REQUEST)
        assert selector.select(LIMIT_S)
        assert list(connection.receive(at_s)) == []
        assert connection.recent_bytes(at_s) == expected
    assert connection.recent_bytes(13.0) == 3.0


def test_a_switch_that_sends_and_does_not_read_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    with selectors.DefaultSelector() as selector, ours, theirs:
        connection = SwitchConnection(OverTcp(ours), "test", selector, 0.0, counters=Counter())
        for _ in range(20):
            connection.session.packet_out(1, bytes(60_000))
        for now_s in range(int(UNREAD_S) * 3):  # it takes some of what waits, and more comes
            connection.session.packet_out(1, bytes(60_000))
            connection.flush()
            theirs.sendall(ECHO_REQUEST)
            assert list(connection.receive(float(now_s))) == []
            assert theirs.recv(60_000)
        began = UNREAD_S * 3
        connection.flush()
        for now_s in range(int(UNREAD_S)):
            theirs.sendall(ECHO_REQUEST)
            assert list(connection.receive(began + now_s)) == []
            connection.flush()
        theirs.sendall(ECHO_REQUEST)
        with pytest.raises(ConnectionEnded, match="it does not read"):
            list(connection.receive(began + UNREAD_S + 2.0))
        connection.close()


class OverTcp(socket.socket):
    """A Unix socket on which options of TCP have no effect."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(fileno=sock.detach())

    def setsockopt(self, *arguments: Any) -> None:
        """Set nothing."""


def test_a_switch_that_says_little_is_served_in_the_midst_of_many_floods() -> None:
    """Its signal is read before what thirty others have sent, however much that is."""
    signal = packet_in(1, Rule.FIRST_SHORT, bytes(64))
    flood = packet_in(1, Rule.ARP, bytes(64)) * 300
    dropped: list[int] = []

    class Plane(ControlPlane):
        def packet_in(self, dpid: int, *rest: Any, now: float) -> Effects:
            if dpid == 0x11:
                dropped.append(shell.counters().get("dropped-packet-ins", 0))
            return super().packet_in(dpid, *rest, now=now)

    plane = Plane(b"0123456789abcdef")
    with running_shell(plane) as shell, contextlib.ExitStack() as stack:
        loud = [stack.enter_context(raw_switch(shell.port, 0x100 + number)) for number in range(30)]
        quiet = stack.enter_context(raw_switch(shell.port, 0x11))
        eventually(
            lambda: sum(switch.connected for switch in shell.call(plane.snapshot).switches) == 31,
            "all switches",
        )
        for switch in loud:
            switch.send(packet_in(1, Rule.ARP, bytes(64)) * 10)
        eventually(lambda: shell.counters().get("packet-ins") == 300, "the first of them")
        with held(shell):
            for switch in loud:
                switch.send(flood)
            quiet.send(signal)
        eventually(lambda: bool(dropped), "the signal")
        eventually(lambda: shell.counters().get("dropped-packet-ins", 0) > 0, "more than there is room for")
        assert dropped == [0], "it was read before them"


def test_a_switch_with_links_is_served_before_those_that_have_said_nothing_yet() -> None:
    """Whatever reaches the port can connect, and its first bytes cost more than a signal."""
    refused: list[int] = []

    class Plane(ControlPlane):
        def packet_in(self, dpid: int, in_port: int, cookie: int, data: bytes, now: float) -> Effects:
            if rule_of(cookie) is Rule.FIRST_SHORT:
                refused.append(shell.counters().get("refused-peers", 0))
            return super().packet_in(dpid, in_port, cookie, data, now=now)

    key = b"0123456789abcdef"
    plane = Plane(key)
    with running_shell(plane) as shell, contextlib.ExitStack() as stack:
        pair = {dpid: stack.enter_context(raw_switch(shell.port, dpid)) for dpid in (0x11, 0x12)}
        eventually(lambda: len(shell.call(plane.snapshot).switches) == 2, "both switches")

        for dpid, other in (
            (0x11, 0x12),
            (0x12, 0x11),
        ):  # once: more than a switch's share is not read for a while
            pair[dpid].send(packet_in(1, Rule.LLDP, encode_lldp(PortRef(other, 1), shell.now(), key)))
        eventually(lambda: shell.call(lambda: plane.in_fabric(0x11)), "their link")
        unknown = [stack.enter_context(raw_switch(shell.port, 0, silent=True)) for _ in range(30)]
        eventually(lambda: shell.counters().get("connections") == 32, "the unknown peers")
        with held(shell):
            for peer in unknown:
                peer.send(message(ofp.OFPT_HELLO, 1, version=1))
            pair[0x11].send(packet_in(1, Rule.FIRST_SHORT, bytes(64)))
        eventually(lambda: shell.counters().get("refused-peers", 0) == 30, "the unknown peers' end")
        eventually(lambda: refused, lambda: f"the signal: {shell.counters()}")
        assert refused == [0], "it was read before them"


class SlowClockShell(OpenFlowShell):
    """A shell whose clock takes a hundredth of the time: to it, a machine with other work is as fast as an idle one."""

    @staticmethod
    def now() -> float:
        return OpenFlowShell.now() / 100


def test_changes_of_ports_and_errors_are_read_no_faster_than_packets() -> None:
    """Each of a switch with 4000 ports took 5 ms, and none was counted."""
    status = message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", ofp.OFPPR_MODIFY) + port(1, b"p"))
    error = message(ofp.OFPT_ERROR, 0, struct.pack("!HH", ofp.OFPET_BAD_MATCH, 9))
    for said in (status, error):
        plane = ControlPlane(b"0123456789abcdef")
        with running_shell(plane, SlowClockShell) as shell, raw_switch(shell.port, 0x11) as switch:
            eventually(lambda plane=plane, shell=shell: shell.call(plane.snapshot).switches, "the switch")
            switch.send(said * int(2 * BURST))
            eventually(lambda shell=shell: shell.counters().get("read-pauses", 0) > 0)
