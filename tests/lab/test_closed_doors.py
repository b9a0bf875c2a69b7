"""Hosts that do harm, on real switches: what they send stays their own trouble."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from controller.openflow.punts import PORT_PPS
from controller.openflow.tables import PORT_METERS, PUNT_METER, SHORT_METER, Table
from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from tests.lab.test_openflow_takeover import python, wait_whole
from tests.lab.test_schemes_on_switches import deployment, fabric
from tests.waiting import eventually

FLOOD = """
import socket, sys
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind((sys.argv[1], 0))
mac = sock.getsockname()[4]
arp = bytes.fromhex("08060001080006040001")
head = b"\\xff" * 6 + mac + arp + mac + socket.inet_aton(sys.argv[2]) + bytes(6)
print("sending", flush=True)
for number in range(60_000):
    sock.send(head + socket.inet_aton("10.%d.%d.9" % (number >> 8 & 255, number & 255)))
print("sent", flush=True)
"""
FORGE = """
import socket, struct, sys
target, forged, own = map(socket.inet_aton, sys.argv[1:4])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print("sending", flush=True)
for source in [forged] * 20 + [own]:
    udp = struct.pack("!HHHH", 9, 9999, 8 + 4, 0) + source
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + source + target
    raw.sendto(ip + udp, (sys.argv[1], 0))
"""
LISTEN = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 9999))
print("listening", flush=True)
print(socket.inet_ntoa(sock.recv(100)), flush=True)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    with deployment(fabric(3, rate=50.0), "caps") as running:
        yield running


def packet_ins(lab: Deployment) -> int:
    """Return how many packets switches have sent to the controller since its start."""
    text = lab.client.metrics()
    [count] = re.findall(r'capstan_openflow_total\{what="packet-ins"\} (\S+)', text)
    return int(float(count))


def test_each_port_has_a_meter_of_its_own(lab: Deployment) -> None:
    wait_whole(lab)
    meters = lab.lab.switch("l1").ofctl("dump-meters")
    found = {int(one) for one in re.findall(r"meter=(\d+)", meters)}
    assert found == {SHORT_METER, PUNT_METER, *(PORT_METERS + port for port in (1, 2, 3, 4))}


def test_what_a_host_sends_from_anothers_address_is_dropped(lab: Deployment) -> None:
    wait_whole(lab)
    attacker, target = lab.spec.fabric.hosts()
    listener = python(lab, target.name, LISTEN, target.underlay)
    forger = python(lab, attacker.name, FORGE, target.underlay, target.underlay, attacker.underlay)
    assert forger.wait(60) == 0
    assert listener.stdout is not None
    assert listener.stdout.readline().strip() == attacker.underlay, "the last packet, and the first to come"

    def dropped() -> str:
        """Return the entry of the target's address, with its counters: the datapath's figures come within a second."""
        entries = lab.lab.switch("l1").ofctl("dump-flows", f"table={Table.FOREIGN}").splitlines()
        [entry] = [entry for entry in entries if f"nw_src={target.underlay} " in entry]
        return entry

    eventually(lambda: "n_packets=20," in dropped(), dropped)
    listener.wait(60)


def test_a_host_that_floods_arp_takes_no_link_down(lab: Deployment) -> None:
    lab.set_scheme(SchemeChoice("ecmp", "ecmp"))
    wait_whole(lab)
    before = packet_ins(lab)
    _, cursor = lab.client.events()
    host = lab.spec.fabric.hosts()[0]
    began = time.monotonic()
    flood = python(lab, "h1", FLOOD, "h1-eth0", host.underlay)
    assert flood.wait(300) == 0
    seconds = time.monotonic() - began
    wait_whole(lab)
    events, _ = lab.client.events(cursor)
    assert [event for event in events if event["kind"] == "link-down"] == []
    # of 60 000; every port's LLDP and answers to ARP are among what comes
    assert packet_ins(lab) - before < 200 + (seconds + 10) * 2 * PORT_PPS
