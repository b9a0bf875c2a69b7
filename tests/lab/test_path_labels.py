"""Path labels on real switches: each label its path, in two tiers and three; nothing is lost where one is dead."""

from __future__ import annotations

import itertools
import socket
import struct
from collections import Counter

from controller.openflow.view import LocalHost, RemoteHost, SwitchView, Towards
from controller.openflow.wanted_switch import WantedSwitch
from controller.shell.shell import OpenFlowShell
from protocol.underlay import BASE_PORT, TrafficClass, dscp, label_of
from tests.lab.openflow_plane import ScriptedPlane
from tests.lab.openflow_rig import Switch, switch
from tests.lab.test_lab_fabric import port_states
from tests.lab.test_schemes_on_switches import PORT, deployment, programs, received, start
from tests.unit.fabric_shapes import LABELS
from tests.waiting import eventually

UPLINKS = {2: 2049, 3: 2050, 4: 2051}
"""Port and path stamp; to stamp 2052 lead two parallel links."""
PARALLEL, STAMP = (5, 6), 2052
DPID = 0x21


def datagram(source_port: int, key: int = 0) -> bytes:
    """Return a frame with a datagram of h1's agent, at port 1, to h2, of the long class."""
    payload = bytes(32)
    udp = struct.pack("!HHHH", source_port, BASE_PORT + key, 8 + len(payload), 0) + payload
    tos = dscp(TrafficClass.LONG, 0) << 2
    ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(udp), 0, 0, 64, 17, 0)
    return bytes.fromhex("020000000002 020000000001 0800") + ip + bytes([10, 0, 1, 1, 10, 0, 2, 1]) + udp


def sent_to(real: Switch, ports: list[int], dead: tuple[int, ...] = ()) -> Counter[int]:
    """Send datagrams from these UDP source ports, each with a flow key of its own; how many came out of which port.

    Few at a time: no more than a switch on a busy machine can hold back.
    """
    uplinks = [*UPLINKS, *PARALLEL]
    sockets = {number: real.netns.socket(f"p{number}x") for number in uplinks if number not in dead}
    sender = real.netns.socket("p1x")
    for sock in sockets.values():
        sock.setblocking(False)
    came: Counter[int] = Counter()
    sent = 0

    def all_came() -> bool:
        for number, sock in sockets.items():
            while True:
                try:
                    data = sock.recv(2048)
                except BlockingIOError:
                    break
                came[number] += data[12:14] == b"\x08\0"
        return came.total() >= sent

    for index, port in enumerate(ports):
        sender.send(datagram(port, index % 64))
        sent += 1
        if sent % 64 == 0:
            eventually(all_came)
    eventually(all_came)
    for sock in (*sockets.values(), sender):
        sock.close()
    return came


def test_each_label_takes_its_uplink_and_a_dead_one_is_sprayed_at_once() -> None:
    labels = (*((stamp, (port,)) for port, stamp in UPLINKS.items()), (STAMP, PARALLEL))
    view = SwitchView(
        DPID,
        leaf=True,
        local=(LocalHost("10.0.1.1", "02:00:00:00:00:01", 1, agent=True),),
        remote=(RemoteHost("10.0.2.1", "02:00:00:00:02:01", 7, agent=True),),
        towards=(Towards(7, (*UPLINKS, *PARALLEL), None, labels),),
        guarded=(*UPLINKS, *PARALLEL),
    )
    wanted = WantedSwitch(DPID)
    wanted.want(view, LABELS, "off")
    plane = ScriptedPlane(states={DPID: wanted.state()})
    shell = OpenFlowShell(plane, "0.0.0.0", 0, on_event=lambda event: None)
    shell.start()
    try:
        with switch(DPID, shell.port, 6) as real:
            eventually(lambda: plane.of("connected"))
            eventually(lambda: len(plane.ports[DPID]) == 7)
            shell.wait_applied(60)
            for port, stamp in UPLINKS.items():
                assert sent_to(real, [label_of(stamp)] * 64) == {port: 64}
            both = sent_to(real, [label_of(STAMP)] * 64)
            assert both.total() == both[5] + both[6]
            assert min(both[5], both[6]) > 0
            # entropy values and labels of no path are sprayed
            assert set(sent_to(real, list(range(20000, 20256)))) == {*UPLINKS, *PARALLEL}
            assert len(sent_to(real, [label_of(99)] * 64)) >= 4
            for port in (2, 5):
                real.netns("ip", "link", "set", f"p{port}x", "down")
                eventually(lambda port=port: not plane.ports[DPID][port].up)
            assert len(sent_to(real, [label_of(UPLINKS[2])] * 64, dead=(2, 5))) == 3
            assert sent_to(real, [label_of(STAMP)] * 64, dead=(2, 5)) == {6: 64}
            assert shell.errors() == ()
    finally:
        shell.stop()


def test_in_a_fat_tree_labels_name_cores_and_within_a_pod_aggregations() -> None:
    shape = {"topology": "fat-tree", "k": 4, "link": {"rate_mbps": 100}, "access": {}}
    source_ports = itertools.count(5000, 64)
    with deployment(shape, "drb") as lab:
        near, far = "h3", "h16"  # of the same pod as h1, and of another
        overlay = {place.name: place.overlay for place in lab.spec.fabric.hosts()}

        def paths_to(host: str) -> Counter[str]:
            """Send 400 packets from h1 to *host*, none of which may be lost; count them by path."""
            lab.client.report_flows(forget=True)
            arguments = (overlay[host], PORT, next(source_ports), 1, 1, 400, 500, 0.0)
            assert start(lab, "h1", programs.DATAGRAMS, *arguments).wait(60) == 0
            seen: Counter[str] = Counter()

            def all_came() -> bool:
                for flow in received(lab, host):
                    if flow["protocol"] == socket.IPPROTO_UDP:
                        seen.update(flow["paths"])
                return seen.total() == 400

            eventually(all_came)
            return seen

        def take_down(link: str) -> None:
            """Take a link down; return when its switches have noticed: until then they send what comes into it."""
            lab.lab.set_link(link, up=False)
            ends = lab.lab.ends(link)
            for end in (ends.intf1, ends.intf2):
                eventually(lambda end=end: not port_states(lab.lab, end.node.name)[end.name])

        stamps = {switch["name"]: str(switch["stamp"]) for switch in lab.client.fabric()["switches"]}
        assert set(paths_to(far)) == {stamps[name] for name in ("c1", "c2", "c3", "c4")}
        within = paths_to(near)
        assert set(within) == {stamps["a1"], stamps["a2"]}
        for paths in (paths_to(far), within):
            assert max(paths.values()) - min(paths.values()) <= 2, paths
        take_down("a1-c1")
        eventually(lambda: set(paths_to(far)) == {stamps[name] for name in ("c2", "c3", "c4")})
        take_down("e1-a2")
        eventually(lambda: set(paths_to(far)) == {stamps["c2"]})
        assert set(paths_to(near)) == {stamps["a1"]}
        lab.lab.set_link("e1-a2", up=True)
        lab.lab.set_link("a1-c1", up=True)
        eventually(lambda: len(paths_to(far)) == 4)
