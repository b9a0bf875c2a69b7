"""What certificates and keyed datagrams hold on real switches, on the fabric of docs/own-fabric.md."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.lab.openflow_rig import answers
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.lab.test_own_fabric import Machines

API: Final = "http://127.0.0.1:8080/api/v1"
AUTHORITY: Final = "pki/switchca/cacert.pem"
KEY: Final = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30"
PINGS: Final = "ping -i 0.02 10.128.2.1"
CHANGE_ONE: Final = """
import socket
mine = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
mine.bind(("eth1", 0))
while True:
    packet = mine.recv(65536)
    head = 4 * (packet[0] & 15)
    if packet[0] >> 4 == 4 and packet[9] == 17 and packet[12:16] == bytes((10, 0, 1, 1)) and len(packet) > head + 60:
        break
changed = bytearray(packet)
changed[-1] ^= 1
changed[head + 2:head + 4] = (47000).to_bytes(2, "big")
changed[head + 6:head + 8] = bytes(2)  # no checksum: the veth leaves it to hardware that is not there
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)  # h1 may receive at its port
for _ in range(20):
    out.sendto(changed, ("10.0.2.1", 0))
"""
"""Takes one datagram of h1's agent as it leaves, and sends it again with one bit changed."""


def asked(fabric: Machines, path: str) -> Any:
    """Return what the API answers on the controller's machine."""
    return json.loads(fabric.run("controller", f"curl -s '{API}/{path}'"))


def changed_datagrams_are_dropped(fabric: Machines) -> None:
    """Assert that a datagram with a bit changed is dropped for its code all 20 times, and that no other is."""

    def counters() -> dict[str, float]:
        agents = {agent["host"]: agent for agent in asked(fabric, "agents")["agents"]}
        found: dict[str, float] = agents["h2"]["counters"]
        return found

    def dropped() -> float:
        return counters().get("dropped_code", 0.0)

    assert dropped() == 0.0
    pings = fabric.start("h1", PINGS)
    fabric.run("h1", f"{sys.executable} -c '{CHANGE_ONE}'")
    eventually(
        lambda: dropped() == 20.0, lambda: f"of 20 changed datagrams {dropped():g} were dropped: {counters()}"
    )
    pings.terminate()
    pings.wait(60)


def a_switch_of_another_authority_is_refused(fabric: Machines, place: Path) -> None:
    """Assert that a switch with a certificate of another authority is refused.

    It says it is l1, with a certificate in that name: l1 stays, and the log says why the other is refused.
    """
    run = fabric.run
    run("controller", f"openssl req -x509 {KEY} -subj /CN=l1 -keyout other-key.pem -out other.pem")
    run("controller", "ovsdb-tool create other.db /usr/share/openvswitch/vswitch.ovsschema")
    fabric.start("controller", f"ovsdb-server {place}/other.db --remote=punix:{place}/db.sock -vconsole:off")
    eventually(lambda: answers(place / "db.sock"), "a database")
    fabric.start("controller", f"ovs-vswitchd unix:{place}/db.sock -vconsole:off --disable-system")
    bridge = "datapath_type=netdev protocols=OpenFlow15 other_config:datapath-id=0000000000000001"
    run("controller", f"ovs-vsctl add-br x -- set bridge x {bridge}")
    run("controller", "ovs-vsctl set-ssl $PWD/other-key.pem $PWD/other.pem $PWD/ca.pem")
    run("controller", "ovs-vsctl set-controller x ssl:192.0.2.10:6653")
    log = place / "log"
    eventually(
        lambda: "its certificate is refused" in log.read_text(errors="replace"), "a line that says why"
    )
    run("controller", "ovs-vsctl del-controller x")
    assert all(switch["connected"] for switch in asked(fabric, "fabric")["switches"])
    assert ups(fabric) == dict.fromkeys(ups(fabric), 1), "no switch had to connect anew"


def ups(fabric: Machines) -> dict[str, int]:
    """Return how often each switch has connected."""
    counts: dict[str, int] = {}
    for event in asked(fabric, "events?since=0&limit=10000")["events"]:
        if event["kind"] == "switch-up":
            counts[event["switch"]] = counts.get(event["switch"], 0) + 1
    return counts


def connect_again(fabric: Machines, switch: str) -> None:
    """Connect *switch* anew: a connection that stands keeps the certificate that it began with.

    It gets another target in between: without any controller, its entries would go.
    """
    for target in ("ssl:127.0.0.1:6653", "ssl:192.0.2.10:6653"):
        mode = f"set controller {switch} connection_mode=out-of-band"
        fabric.run(switch, f"ovs-vsctl set-controller {switch} {target} -- {mode}")


def authorities_are_replaced_without_a_lost_packet(
    fabric: Machines, place: Path, switches: list[str]
) -> None:
    """Follow the page's section on new authorities while hosts send 50 packets a second; assert that none is lost."""
    run = fabric.run
    before = ups(fabric)
    log = place.parent / "h1" / "pings"
    pings = fabric.start("h1", f"{PINGS} >{log} 2>&1")
    run("controller", f"openssl req -x509 {KEY} -subj /CN=new -keyout new-key.pem -out new.pem")
    run("controller", f"cat new.pem >>{AUTHORITY}")
    for switch in switches:
        files = f"-keyout {place.parent / switch}/new-key.pem -out {place.parent / switch}/new.pem"
        run(
            "controller", f"openssl req -x509 -CA new.pem -CAkey new-key.pem {KEY} -subj /CN={switch} {files}"
        )
        run(switch, "ovs-vsctl set-ssl $PWD/new-key.pem $PWD/new.pem $PWD/ca.pem")
        connect_again(fabric, switch)
    eventually(
        lambda: all(count > before[name] for name, count in ups(fabric).items()),
        lambda: f"switches connected {before} times before, and {ups(fabric)} with new certificates",
    )
    run("controller", f"cp new.pem {AUTHORITY}")
    eventually(lambda: asked(fabric, "health")["ready"], "the fabric is ready")
    renewed = ups(fabric)
    for switch in switches:  # by the new authority alone
        connect_again(fabric, switch)
    eventually(lambda: all(count > renewed[name] for name, count in ups(fabric).items()), "all are back")
    eventually(lambda: asked(fabric, "health")["ready"], "the fabric is ready again")
    pings.send_signal(2)
    pings.wait(60)
    came = {int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", log.read_text())}
    lost = set(range(1, max(came) + 1)) - came  # what is after the last one may be on its way still
    assert len(came) > 50
    assert not lost, f"of {max(came)} packets those of numbers {sorted(lost)} were lost"
