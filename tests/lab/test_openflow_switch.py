"""The OpenFlow shell against real switches: what arrives there, what comes back, and what survives."""

from __future__ import annotations

import re
import signal
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import pytest

from controller.fabric.switch_data import HeldHost, MeterReading, PacketOut
from controller.openflow import connection
from controller.openflow.cookies import Rule
from controller.openflow.errors import OpenFlowError
from controller.openflow.tables import Table
from controller.openflow.wanted import (
    Bucket,
    FlowRule,
    Group,
    Match,
    Meter,
    Output,
    SetField,
    ThroughMeter,
    ToController,
    ToGroup,
)
from controller.plane.effects import Effects, ModeChanged
from controller.shell import shell as shell_module
from controller.shell.shell import OpenFlowShell
from controller.shell.shell_events import ModeSwitched, SwitchRefused
from tests.lab.openflow_plane import ScriptedPlane, change, everything, state, whole
from tests.lab.openflow_rig import switch
from tests.waiting import eventually


@dataclass
class Control:
    """A running shell over a scripted plane."""

    plane: ScriptedPlane = field(default_factory=ScriptedPlane)
    events: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shell = OpenFlowShell(self.plane, "0.0.0.0", 0, on_event=self.events.append)
        self.shell.start()

    def connected(self, dpid: int, times: int = 1) -> None:
        eventually(
            lambda: sum(call[1] == dpid for call in self.plane.of("connected")) >= times,
            what=f"{times} connections of switch {dpid:#x}",
        )


@pytest.fixture
def control() -> Iterator[Control]:
    made = Control()
    yield made
    made.shell.stop()


def frame(source_port: int = 20000, destination_port: int = 47001, dscp: int = 8) -> bytes:
    """Return a frame with a UDP packet from 10.0.1.1 to 10.0.2.1."""
    payload = bytes(32)
    udp = struct.pack("!HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    addresses = bytes([10, 0, 1, 1, 10, 0, 2, 1])
    ip = struct.pack("!BBHHHBBH", 0x45, dscp << 2, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    return bytes.fromhex("020000000002 020000000001 0800") + ip + udp


def test_every_kind_of_state_is_on_the_switch_as_wanted(control: Control) -> None:
    control.plane.states[0x11] = everything()
    with switch(0x11, control.shell.port, 3) as real:
        control.connected(0x11)
        control.shell.wait_applied(60)
        flows = [re.sub("cookie=0x[0-9a-f]{1,4}([0-9a-f]{12}), ", r"\1 ", line) for line in real.tables()]
        assert flows == sorted(
            [
                "000000000000 priority=100,udp,nw_tos=32,tp_dst=0xb798/0xfff8 "
                "actions=write_metadata:0x50000/0x70000,goto_table:1",
                "000000000000 priority=101,udp,tp_src=0x4000/0xc000,tp_dst=47000 actions=goto_table:1",
                "000000000000 priority=4,ip,nw_src=10.0.0.0/9,nw_dst=10.0.1.0/24 actions=drop",
                "000000000000 table=2, priority=0 actions=drop",
                "000000000000 table=2, priority=10,metadata=0x3 actions=group:256",
                "000000000000 table=2, priority=9,metadata=0x80000/0x80000 actions=group:320",
                "000000000001 priority=1000,dl_type=0x88cc actions=CONTROLLER:256",
                "000000000002 priority=1000,arp,arp_op=1 actions=CONTROLLER:128",
                "000000000003 table=1, priority=10,ip actions=set_field:02:00:00:00:00:02->eth_src,"
                "set_field:10.9.9.9->ip_src,set_field:10.9.9.8->ip_dst,set_field:24->ip_dscp,"
                "set_field:0x4d->metadata,meter:1,CONTROLLER:64,write_metadata:0x3,goto_table:2",
                "000000000005 table=1, priority=20,udp,metadata=0x40000/0x40000,nw_src=10.0.1.1,nw_dst=10.0.2.1 "
                "actions=set_field:47000->udp_dst,set_field:02:00:00:00:00:01->eth_dst,output:1",
                "ffffffffffff priority=5,in_port=2,dl_dst=02:00:00:00:00:05 actions=output:3",
            ]
        )
        many, *others = real.groups()
        assert many.startswith(
            "group_id=256,type=select,selection_method=dp_hash,selection_method_param=2882343476,"
            "bucket=bucket_id:0,watch_port:1,actions=set_field:1->udp_src,output:1,bucket=bucket_id:1,watch_port:2,"
        )
        assert many.count("bucket=") == 255
        assert others == [
            "group_id=320,type=select,selection_method=hash,selection_method_param=7,fields(ip_src,ip_dst,udp_dst),"
            "bucket=bucket_id:0,watch_port:1,actions=output:1,bucket=bucket_id:1,weight:2,watch_port:2,"
            "actions=output:2,bucket=bucket_id:2,weight:3,watch_port:3,actions=output:3",
            "group_id=321,type=select,selection_method=hash,selection_method_param=1,fields=udp_dst,"
            "bucket=bucket_id:0,actions=output:1",
        ]
        assert real.meters() == ["1", "9"]
        assert control.events == []
        # and all of it is taken back by a change
        control.shell.call(lambda: change(0x11, everything(), state()))
        control.shell.wait_applied(60)
        assert (real.tables(), real.meters()) == ([], [])
        eventually(lambda: not real.groups(), "groups are deleted some seconds after their last use")


def test_a_refused_update_changes_nothing_is_reported_and_healed(control: Control) -> None:
    good = state([FlowRule(0, 1, Match(in_port=1), (Output(2),))])
    control.plane.states[0x12] = good
    with switch(0x12, control.shell.port, 2) as real:
        control.connected(0x12)
        control.shell.wait_applied(60)
        before = real.tables()
        bad = state(
            [
                FlowRule(0, 1, Match(in_port=1), (Output(1),)),
                FlowRule(0, 2, Match(ipv4_dst="10.0.0.1"), (Output(2),)),  # no eth_type
            ],
            [Group(1, "dp_hash", 1, (Bucket((Output(1),), 1),))],
        )
        control.shell.call(lambda: change(0x12, good, bad))
        with pytest.raises(OpenFlowError, match=r"ipv4_dst=10\.0\.0\.1") as caught:
            control.shell.wait_applied(60)
        assert ("OFPET_BAD_MATCH", "OFPBMC_BAD_PREREQ") in {(e.type, e.code) for e in caught.value.errors}
        # it is made to connect anew, and then has its whole state
        control.connected(0x12, times=2)
        control.shell.wait_applied(60)
        assert [event.error for event in control.events if isinstance(event, SwitchRefused)] == list(
            control.shell.errors()
        )
        assert control.shell.counters()["refused"] == len(control.shell.errors()) > 0
        without_cookie = [line.split(", ", 1)[1] for line in real.tables()]
        assert without_cookie == [line.split(", ", 1)[1] for line in before]
        eventually(lambda: not real.groups(), "groups that the refused update had made are deleted")


def test_taking_over_deletes_what_is_stale_and_loses_no_packet() -> None:
    """A second shell takes the switch over in the middle of a stream: groups replaced, entries moved to new cookies."""

    def wanted(method: str, extra: int) -> object:
        fields = ("ipv4_src", "ipv4_dst", "udp_dst") if method == "hash" else ()
        return state(
            [
                FlowRule(0, 10, Match(eth_type=0x800), (ThroughMeter(1),), goto=1, metadata=(1, 0xFFFF)),
                FlowRule(1, 10, Match(metadata=(1, 0xFFFF)), (ToGroup(5),)),
                FlowRule(1, 20 + extra, Match(in_port=extra), ()),
                FlowRule(
                    Table.DELIVER,
                    10,
                    Match(eth_type=0x800, ipv4_dst=f"10.0.9.{extra}"),
                    (SetField("eth_dst", "02:00:00:00:09:09"), Output(3)),
                    cookie=Rule.DELIVER,
                ),
            ],
            [
                Group(5, method, 9, (Bucket((Output(2),), 2), Bucket((Output(3),), 3)), fields),
                Group(100 + extra, "dp_hash", 1, (Bucket((Output(2),), 2),)),
            ],
            [Meter(1), Meter(20 + extra)],
        )

    first = Control()
    port = first.shell.port
    first.plane.states[0x13] = wanted("dp_hash", 4)
    with switch(0x13, port, 3) as real:
        first.connected(0x13)
        first.shell.wait_applied(60)
        real.ofctl("add-flow", "cookie=0,table=7,priority=3,actions=drop")  # another program's
        sent = arrived = 0
        received = {name: real.netns.socket(name) for name in ("p2x", "p3x")}
        for sock in received.values():
            sock.setblocking(False)
        stop = threading.Event()
        out = real.netns.socket("p1x")

        def drained() -> bool:
            """Return whether all that was sent has arrived; only one thread at a time may ask."""
            nonlocal arrived
            for sock in received.values():
                with suppress(BlockingIOError):
                    while True:
                        arrived += sock.recv(2048)[12:14] == b"\x08\0"
            return arrived >= sent

        def group_names() -> list[str]:
            return [line.split(",")[0] for line in real.groups()]

        def stream() -> None:
            nonlocal sent
            while not stop.is_set():
                if not drained() and sent - arrived > 100:  # a switch on a busy machine can hold back no more
                    time.sleep(0.001)
                    continue
                out.send(frame(16384 + sent % 40000))
                sent += 1
                time.sleep(0.002)

        sender = threading.Thread(target=stream)
        sender.start()
        try:
            eventually(lambda: sent > 200)
            first.shell.stop()
            second = Control(ScriptedPlane(states={0x13: wanted("hash", 6)}))
            try:
                real.set_controller(second.shell.port)
                second.connected(0x13)
                second.shell.wait_applied(60)
                for _ in range(20):
                    second.shell.call(lambda: whole(0x13, wanted("dp_hash", 5)))
                    second.shell.wait_applied(60)
                    second.shell.call(lambda: whole(0x13, wanted("hash", 6)))
                    second.shell.wait_applied(60)
                eventually(lambda: group_names() == ["group_id=106", "group_id=5"], group_names)
                held = second.plane.held[0x13]
                assert held is not None
                assert held.hosts == (HeldHost("10.0.9.4", "02:00:00:00:09:09", 3),)
                assert second.events == []
            finally:
                second.shell.stop()
        finally:
            stop.set()
            sender.join()
        eventually(drained, "all packets")
        assert arrived == sent > 200
        tables = "\n".join(real.tables())
        assert "table=7" not in tables
        assert "in_port=p6" in tables or "in_port=6" in tables
        assert "in_port=4" not in tables
        assert len({line.split(",")[0][:-12] for line in real.tables()}) == 1
        assert real.meters() == ["1", "26"]


def test_a_killed_switch_has_its_state_back(control: Control) -> None:
    control.plane.states[0x14] = everything()
    with switch(0x14, control.shell.port, 3) as real:
        control.connected(0x14)
        control.shell.wait_applied(60)
        flows, groups = [line.split(", ", 1)[1] for line in real.tables()], real.groups()
        real.kill()
        eventually(lambda: control.plane.of("disconnected"), "the disconnection")
        real.start()
        control.connected(0x14, times=2)
        eventually(lambda: len(control.plane.ports[0x14]) == 4, "the ports")
        control.shell.wait_applied(60)
        assert [line.split(", ", 1)[1] for line in real.tables()] == flows
        assert real.groups() == groups
        assert real.meters() == ["1", "9"]


def test_a_switch_that_does_not_read_stops_no_other(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "UNSENT_LIMIT_BYTES", 8 << 20)
    with switch(0x15, control.shell.port, 2) as stuck, switch(0x16, control.shell.port, 2):
        control.connected(0x15)
        control.connected(0x16)
        stuck.send_signal(signal.SIGSTOP)
        groups = [
            Group(number, "dp_hash", 1, (Bucket((Output(1),), 1), Bucket((Output(2),), 2)) * 120)
            for number in range(1, 101)
        ]
        rounds = 0
        while not control.plane.of("disconnected"):
            rounds += 1
            assert rounds < 40, "the stuck switch was not given up"
            control.shell.call(lambda: whole(0x15, state((), groups)), timeout=60)
            lively = whole(0x16, state([FlowRule(0, rounds, Match(), (Output(1),))]))
            control.shell.call(partial(Effects, lively.updates, lively.resync), timeout=60)
        assert rounds > 1
        assert control.plane.of("disconnected")[0][1] == 0x15
        control.shell.wait_applied(60)  # nothing is waited for on the one that is gone
        stuck.send_signal(signal.SIGCONT)
        control.connected(0x15, times=2)


def test_packets_meters_and_ports(control: Control) -> None:
    dpid = 0x17
    copied = Match(eth_type=0x800, ip_dscp=8)
    control.plane.states[dpid] = state(
        [
            FlowRule(0, 2, copied, (ThroughMeter(1), ToController(64), Output(2)), cookie=Rule.FIRST_SHORT),
            FlowRule(0, 1, Match(eth_type=0x800), (ThroughMeter(1), Output(2))),
        ],
        meters=[Meter(1)],
    )
    with switch(dpid, control.shell.port, 2) as real:
        control.connected(dpid)
        control.shell.wait_applied(60)
        real_port = control.plane.ports[dpid][1]
        assert (real_port.name, real_port.up) == ("p1", True)
        assert any(
            port.name == "br" and port.number > 0xFFFFFF00 for port in control.plane.ports[dpid].values()
        )

        outside, far = real.netns.socket("p1x"), real.netns.socket("p2x")
        outside.send(frame(33333))
        eventually(lambda: control.plane.of("packet"), "a packet-in")
        _, _, in_port, cookie, data, _ = control.plane.of("packet")[0]
        # A switch without buffers (Open vSwitch has none) sends the whole packet, however little is asked for.
        assert (in_port, cookie, data) == (1, Rule.FIRST_SHORT, frame(33333))

        # the meter counts every packet, and drops none, at once
        far.settimeout(60)
        sent, arrived = 1, 0
        while sent < 501:
            for _ in range(50):  # a switch on a busy machine can hold back no more than some 200
                outside.send(frame(dscp=16))
            sent += 50
            while arrived < sent:
                arrived += far.recv(2048)[12:14] == b"\x08\0"

        control.shell.call(lambda: Effects(read_meters=(dpid,)))
        eventually(lambda: control.plane.of("meter"), "a meter count")
        assert control.plane.of("meter")[-1][1:3] == (dpid, {1: MeterReading(501, 501 * len(frame()))})

        hello = bytes.fromhex("ffffffffffff 020000000009 88b5") + b"hello".ljust(46, b"\0")
        control.shell.call(lambda: Effects(packet_outs=(PacketOut(dpid, 2, hello),)))
        while (seen := far.recv(2048))[12:14] == b"\x08\0":
            continue
        assert seen == hello

        real.netns("ip", "link", "set", "p1x", "down")
        eventually(lambda: not control.plane.ports[dpid][1].up, "a port that is down")
        real.netns("ip", "link", "set", "p1x", "up")
        eventually(lambda: control.plane.ports[dpid][1].up, "a port that is up")
        real.vsctl("del-port", "br", "p2")
        eventually(lambda: not control.plane.ports[dpid][2].up, "a removed port")


def test_a_mode_change_is_traced(control: Control) -> None:
    dpid = 0x18
    copying = state([FlowRule(0, 1, Match(eth_type=0x800), (ToController(64),), cookie=Rule.FIRST_SHORT)])
    quiet = state([FlowRule(0, 1, Match(eth_type=0x800), (Output(2),))])
    control.plane.states[dpid] = copying

    def switch_on(_dpid: int, _port: int, _cookie: int, _data: bytes, now: float) -> Effects:
        update = change(dpid, copying, quiet)
        return Effects(updates=update.updates, events=(ModeChanged(now, dpid, "on", "first-packet"),))

    control.plane.on_packet_in = switch_on
    with switch(dpid, control.shell.port, 2) as real:
        control.connected(dpid)
        control.shell.wait_applied(60)
        real.netns.socket("p1x").send(frame())
        eventually(lambda: any(isinstance(event, ModeSwitched) for event in control.events), "a trace")
        changed, trace = control.events[:2]
        assert isinstance(changed, ModeChanged)
        assert isinstance(trace, ModeSwitched)
        assert (trace.leaf, trace.mode, trace.cause, trace.at) == (dpid, "on", "first-packet", changed.at)
        assert trace.noticed <= trace.sent <= trace.confirmed


def test_calls_from_other_threads(control: Control) -> None:
    threads = set()
    assert control.shell.call(lambda: threads.add(threading.current_thread().name) or 5) == 5
    assert threads == {"openflow"}
    with pytest.raises(ZeroDivisionError):
        control.shell.call(lambda: 1 // 0)
    control.shell.post(lambda: 1 // 0)  # logged and counted; the shell lives
    assert control.shell.call(lambda: "alive") == "alive"
    assert control.shell.counters()["faults"] == 1
    over = threading.Event()
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        control.shell.call(lambda: over.wait(60), timeout=0.05)
    over.set()
    control.shell.call(lambda: None)
    ticks: list[float] = []
    control.plane.on_tick = lambda now: ticks.append(now) or Effects()

    def wake() -> None:
        control.plane.next_tick = control.shell.now() + 0.05

    begin = control.shell.now()
    control.shell.call(wake)
    eventually(lambda: ticks, "a tick")
    assert ticks[0] - begin >= 0.05
    assert shell_module.OpenFlowShell.now() > begin
