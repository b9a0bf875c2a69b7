"""Path labels on a real switch: each label its uplink; a dead one is sprayed before the controller does anything."""

from __future__ import annotations

import struct
from collections import Counter

from controller.openflow.pipeline import switch_state
from controller.openflow.shell import OpenFlowShell
from controller.openflow.view import LocalHost, RemoteHost, SwitchView, Towards
from protocol.underlay import BASE_PORT, TrafficClass, dscp, label_of
from tests.lab.openflow_plane import ScriptedPlane
from tests.lab.openflow_rig import Switch, eventually, switch
from tests.unit.simulated_fabric import LABELS

UPLINKS = {2: 2049, 3: 2050, 4: 2051}
"""Port and path stamp; to stamp 2052 lead two parallel links."""
PARALLEL, STAMP = (5, 6), 2052
DPID = 0x21


def datagram(source_port: int, key: int = 0) -> bytes:
    """One of an agent's from h1, at port 1, to h2, of the long class."""
    payload = bytes(32)
    udp = struct.pack("!HHHH", source_port, BASE_PORT + key, 8 + len(payload), 0) + payload
    tos = dscp(TrafficClass.LONG, 0) << 2
    ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(udp), 0, 0, 64, 17, 0)
    return bytes.fromhex("020000000002 020000000001 0800") + ip + bytes([10, 0, 1, 1, 10, 0, 2, 1]) + udp


def sent_to(real: Switch, ports: list[int], dead: tuple[int, ...] = ()) -> Counter[int]:
    """Send datagrams from these UDP source ports, each with a flow key of its own; how many came out of which port."""
    uplinks = [*UPLINKS, *PARALLEL]
    sockets = {number: real.netns.socket(f"p{number}x") for number in uplinks if number not in dead}
    sender = real.netns.socket("p1x")
    for sock in sockets.values():
        sock.setblocking(False)
    for index, port in enumerate(ports):
        sender.send(datagram(port, index % 64))
    came: Counter[int] = Counter()

    def all_came() -> bool:
        for number, sock in sockets.items():
            while True:
                try:
                    data = sock.recv(2048)
                except BlockingIOError:
                    break
                came[number] += data[12:14] == b"\x08\0"
        return came.total() >= len(ports)

    eventually(all_came, 5, f"all {len(ports)} datagrams")
    for sock in (*sockets.values(), sender):
        sock.close()
    return came


def test_each_label_takes_its_uplink_and_a_dead_one_is_sprayed_at_once() -> None:
    labels = (*((stamp, (port,)) for port, stamp in UPLINKS.items()), (STAMP, PARALLEL))
    view = SwitchView(
        DPID,
        leaf=True,
        local=(LocalHost("10.0.1.1", "02:00:00:00:00:01", 1, agent=True),),
        remote=(RemoteHost("10.0.2.1", 7, agent=True),),
        towards=(Towards(7, (*UPLINKS, *PARALLEL), None, labels),),
        guarded=(*UPLINKS, *PARALLEL),
    )
    plane = ScriptedPlane(states={DPID: switch_state(view, LABELS, "off")})
    shell = OpenFlowShell(plane, "0.0.0.0", 0, lambda event: None)
    shell.start()
    try:
        with switch(DPID, shell.port, 6) as real:
            eventually(lambda: plane.of("connected"), what="the connection")
            eventually(lambda: len(plane.ports[DPID]) == 7, what="the ports")
            shell.wait_applied(5)
            for port, stamp in UPLINKS.items():
                assert sent_to(real, [label_of(stamp)] * 64) == {port: 64}
            both = sent_to(real, [label_of(STAMP)] * 64)
            assert both.total() == both[5] + both[6]
            assert min(both[5], both[6]) > 0
            # entropy values and labels of nobody are sprayed
            assert set(sent_to(real, list(range(20000, 20256)))) == {*UPLINKS, *PARALLEL}
            assert len(sent_to(real, [label_of(99)] * 64)) >= 4
            for port in (2, 5):
                real.netns("ip", "link", "set", f"p{port}x", "down")
                eventually(lambda port=port: not plane.ports[DPID][port].up, what=f"port {port} down")
            assert len(sent_to(real, [label_of(UPLINKS[2])] * 64, dead=(2, 5))) == 3
            assert sent_to(real, [label_of(STAMP)] * 64, dead=(2, 5)) == {6: 64}
            assert shell.errors() == ()
    finally:
        shell.stop()
