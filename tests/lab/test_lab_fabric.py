"""A running fabric: what its links, hosts and switches are really like, by the kernel's own words."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, eventually
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link
from topologies.ovs import faster_allocator
from topologies.registry import LabError

BUFFER = 700


def said(lab: Lab, host: str, *argv: str) -> str:
    process = lab.popen(host, argv, stdout=subprocess.PIPE, text=True)
    text = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0, argv
    return str(text)


def route_over_first_spine(lab: Lab) -> None:
    """Add the route h1 - l1 - s1 - l2 - h2, both ways, by plain flows."""
    for switch, (one, other) in {"l1": (1, 2), "s1": (1, 2), "l2": (1, 2)}.items():
        for came, goes in ((one, other), (other, one)):
            lab.switch(switch).ofctl("add-flow", f"in_port={came},actions=output:{goes}")


def ping(lab: Lab) -> int:
    return lab.popen("h1", ["ping", "-c", "1", "-W", "2", "10.0.2.1"], stdout=-3).wait(60)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    spec = FabricSpec(
        leaves=2,
        spines=2,
        hosts_per_leaf=1,
        link=Link(8, buffer_packets=BUFFER, delay_ms=1),
        access=Link(40, buffer_packets=2000),
        overrides={"l1-s2": Link(2, 64)},
        down=("l2-s2",),
        mtu=1600,
    )
    with Lab(spec) as lab:
        yield lab


def disciplines(lab: Lab, name: str) -> list[str]:
    """Return what `tc` shows of a switch's ports, without counters."""
    switch = lab.switch(name)
    shell = ["nsenter", f"--net=/proc/{switch.pid}/ns/net", "tc"]
    shown = []
    for interface in switch.intfNames():
        for kind in ("qdisc", "class"):
            command = [*shell, kind, "show", "dev", interface]
            shown += subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return shown


def test_every_end_of_every_link_is_shaped(lab: Lab) -> None:
    for name, rate, buffer in (("l1", "8Mbit", BUFFER), ("l2", "8Mbit", BUFFER), ("s1", "8Mbit", BUFFER)):
        shown = disciplines(lab, name)
        assert any(f"rate {rate}" in line and "parent 1:fffe" in line for line in shown), shown
        assert any(line.startswith("qdisc pfifo") and f"limit {buffer}p" in line for line in shown), shown
    assert any("rate 2Mbit" in line for line in disciplines(lab, "l1")), "the override, at the leaf"
    assert any("rate 2Mbit" in line for line in disciplines(lab, "s2")), "the override, at the spine"
    assert any("rate 40Mbit" in line for line in disciplines(lab, "l1")), "access, at the leaf"
    at_host = said(lab, "h1", "tc", "class", "show", "dev", "h1-eth0")
    assert "rate 40Mbit" in at_host, "access, at the host"


def test_hosts_are_plain_ethernet(lab: Lab) -> None:
    features = said(lab, "h1", "ethtool", "-k", "h1-eth0")
    on = {
        line.split(":")[0].strip() for line in features.splitlines() if line.split(":")[1].startswith(" on")
    }
    assert not on & {
        "rx-checksumming",
        "tx-checksumming",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "tx-tcp-segmentation",
    }
    (interface,) = json.loads(said(lab, "h1", "ip", "-j", "addr", "show", "dev", "h1-eth0"))
    assert interface["mtu"] == 1600
    assert interface["address"] == "02:ca:00:01:00:01"
    addresses = [(entry["local"], entry["prefixlen"]) for entry in interface["addr_info"]]
    assert addresses == [("10.0.1.1", 9)], "and no IPv6 of its own"


def test_hosts_tcp_settings(lab: Lab) -> None:
    assert said(lab, "h1", "sysctl", "-n", "net.ipv4.tcp_no_metrics_save").strip() == "1"
    assert "congctl cubic" in said(lab, "h1", "ip", "route")


def machine_wide_settings() -> list[str]:
    """Return the sysctls below net.ipv4, without what others may change meanwhile: interfaces, kernel modules."""
    out = subprocess.run(["sysctl", "net.ipv4"], capture_output=True, check=True, text=True).stdout
    others = (".conf.", ".neigh.", ".tcp_available_congestion_control")
    return [line for line in out.splitlines() if not any(name in line for name in others)]


def test_ns2_profile_is_the_papers_tcp() -> None:
    before = machine_wide_settings()
    with Lab(FabricSpec(leaves=1, spines=1, hosts_per_leaf=2), tcp="ns2") as lab:
        wanted = {"recovery": "0", "early_retrans": "0", "reordering": "3", "max_reordering": "3"}
        for name, value in wanted.items():
            assert said(lab, "h1", "sysctl", "-n", f"net.ipv4.tcp_{name}").strip() == value
        lab.switch("l1").ofctl("add-flow", "actions=flood")
        code = (
            "import socket; s = socket.create_server(('', 7)) if {0!r} == 'h2' else "
            "socket.create_connection(('10.0.1.2', 7))\n"
            "s = s.accept()[0] if {0!r} == 'h2' else s\n"
            "print(s.getsockopt(6, 13, 16).split(b'\\0')[0].decode(), flush=True); s.recv(1)\n"
        )
        server = lab.popen("h2", ["python3", "-c", code.format("h2")], stdout=subprocess.PIPE)
        eventually(
            lambda: "*:7" in said(lab, "h2", "ss", "-ltn") or "0.0.0.0:7" in said(lab, "h2", "ss", "-ltn")
        )
        client = lab.popen("h1", ["python3", "-c", code.format("h1")], stdout=subprocess.PIPE)
        assert client.stdout is not None
        assert client.stdout.readline().strip() == b"reno", "TCP_CONGESTION of a real connection"
        assert server.poll() is None
    assert machine_wide_settings() == before


def test_notices_say_what_this_kernel_lacks(lab: Lab) -> None:
    datapath = lab.switch("l1").vsctl("get", "bridge", "l1", "datapath_type").strip()
    text = " ".join(lab.notices)
    assert ("userspace datapath" in text) == (datapath == "netdev")
    assert ("kernel datapath" in text) == (datapath == "system")
    has_netem = any("netem" in line for line in disciplines(lab, "l1"))
    assert ("no netem" in text) == (not has_netem), "a delay was asked for"


def test_mininet_objects_are_real(lab: Lab) -> None:
    assert lab.net["h1"].cmd("echo $CAPSTAN_LAB").strip() == lab.lab_id
    assert lab.net["h1"].IP() == "10.0.1.1"
    assert "h1-eth0" in lab.net["h1"].cmd("ip -o link")
    assert [node.name for node in lab.net.switches] == ["l1", "l2", "s1", "s2"]
    assert lab.net.linksBetween(lab.net["l1"], lab.net["s2"])[0].name == "l1-s2"
    assert lab.switch("s2").dpid == "0000000000020002"


def flood(lab: Lab) -> subprocess.Popen[bytes]:
    """Start UDP from h1 to h2, about 30 Mbit/s: more than the fabric carries."""
    code = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "while 1: s.sendto(b'x' * 1400, ('10.0.2.1', 9)); time.sleep(3e-4)"
    )
    return lab.popen("h1", ["python3", "-c", code])


def expect_full_buffer(lab: Lab) -> None:
    """Assert that the port's own queue is the one that drops, not a packet socket long before it."""
    dropped = lab.port_counters("l1-s1")[0].dropped_packets
    with flood(lab) as sender:
        try:
            eventually(lambda: lab.port_counters("l1-s1")[0].dropped_packets > dropped + 100)
            eventually(lambda: BUFFER * 0.98 <= lab.port_counters("l1-s1")[0].queued_packets <= BUFFER)
        finally:
            sender.kill()


def carried_is_limited(lab: Lab, mbps: float) -> None:
    """Assert that l1, beside a flood, sends s1 at most *mbps* in any time (however long a busy machine makes it)."""
    with flood(lab) as sender:
        try:
            eventually(lambda: lab.port_counters("l1-s1")[0].queued_packets > 50)
            began, first = time.monotonic(), lab.port_counters("l1-s1")[0].sent_bytes
            most = BUFFER * 1500 // 4
            eventually(
                lambda: lab.port_counters("l1-s1")[0].sent_bytes > first + most, "a quarter of the buffer"
            )
            last, ended = lab.port_counters("l1-s1")[0].sent_bytes, time.monotonic()
            assert (last - first) * 8 / (ended - began) / 1e6 < 1.15 * mbps
        finally:
            sender.kill()


def test_traffic_fills_the_stated_buffer(lab: Lab) -> None:
    route_over_first_spine(lab)
    eventually(lambda: ping(lab) == 0)
    expect_full_buffer(lab)


def test_a_link_is_made_slower_while_it_carries(lab: Lab) -> None:
    route_over_first_spine(lab)
    carried_is_limited(lab, 8)
    lab.set_link("s1-l1", rate_mbps=2)
    try:
        assert lab.links["l1-s1"] == Link(2, BUFFER, 1)
        carried_is_limited(lab, 2)
        assert any("rate 2Mbit" in line for line in disciplines(lab, "s1")), "the other direction too"
    finally:
        lab.set_link("l1-s1", rate_mbps=8)
    for end in ("l1", "s1"):
        assert any("rate 8Mbit" in line for line in disciplines(lab, end))
    assert not any("rate 2Mbit" in line for line in disciplines(lab, "s1"))


def port_states(lab: Lab, name: str) -> dict[str, bool]:
    """Return which of a switch's ports are live, as OpenFlow says."""
    blocks = re.split(r"\n (?=\S)", lab.switch(name).ofctl("dump-ports-desc"))[1:]
    return {block.split("(")[1].split(")")[0]: "LIVE" in block for block in blocks}


def test_a_link_goes_down_and_up_at_both_ends(lab: Lab) -> None:
    link = lab.net.linksBetween(lab.net["l2"], lab.net["s2"])[0]
    ends = {end.node.name: end.name for end in (link.intf1, link.intf2)}
    for switch, port in ends.items():
        eventually(lambda switch=switch, port=port: not port_states(lab, switch)[port])
    lab.set_link("l2-s2", up=True)
    for switch, port in ends.items():
        eventually(lambda switch=switch, port=port: port_states(lab, switch)[port])
    route_over_first_spine(lab)
    eventually(lambda: ping(lab) == 0)
    lab.set_link("h1-l1", up=False)
    assert ping(lab) != 0
    lab.set_link("h1-l1", up=True)
    eventually(lambda: ping(lab) == 0)


def what_a_switch_is(lab: Lab, name: str) -> tuple[list[str], list[str], str]:
    controller = lab.switch(name).vsctl("get-controller", name).strip().replace(":0", ":")
    return disciplines(lab, name), sorted(port_states(lab, name)), controller


def test_a_killed_switch_comes_back_as_it_was(lab: Lab) -> None:
    route_over_first_spine(lab)
    eventually(lambda: ping(lab) == 0)
    before = what_a_switch_is(lab, "s1")
    assert before[2] == "tcp:{}:{}".format(*lab.controller_endpoint)
    lab.kill_switch("s1")
    assert ping(lab) != 0
    lab.restart_switch("s1")
    assert what_a_switch_is(lab, "s1") == before
    route_over_first_spine(lab)
    eventually(lambda: ping(lab) == 0)
    expect_full_buffer(lab)


def test_a_link_that_is_down_stays_down_over_a_restart(lab: Lab) -> None:
    (port,) = [end.name for end in lab.net["l1"].intfList() if end.link.name == "l1-s2"]
    lab.set_link("l1-s2", up=False)
    lab.kill_switch("l1")
    lab.restart_switch("l1")
    assert port_states(lab, "l1")[port] is False
    lab.set_link("l1-s2", up=True)
    eventually(lambda: port_states(lab, "l1")[port])


def test_a_switch_without_power_takes_its_links_along(lab: Lab) -> None:
    lab.kill_switch("s1", links_down=True)
    eventually(lambda: not port_states(lab, "l1")["l1-eth2"])
    lab.restart_switch("s1")
    eventually(lambda: port_states(lab, "l1")["l1-eth2"] and port_states(lab, "s1")["s1-eth1"])


def test_switches_find_a_controller_again(lab: Lab) -> None:
    """All call at the endpoint, from their own addresses, however long there was none; flows stay."""
    route_over_first_spine(lab)
    flows = {name: lab.switch(name).ofctl("dump-flows", "--no-stats") for name in lab.switches}
    for absence in (0.0, 5.0, 0.5):
        time.sleep(absence)
        with socket.create_server(lab.controller_endpoint) as server:
            server.settimeout(60)
            connections: dict[str, socket.socket] = {}
            while len(connections) < 4:
                connection, (address, _) = server.accept()
                with suppress(ConnectionResetError):
                    if hello := connection.recv(2):  # else it was made to dial anew meanwhile
                        assert hello == b"\x06\x00", "an OpenFlow 1.5 hello"
                        connections[address] = connection
            for connection in connections.values():
                connection.close()
    assert {name: lab.switch(name).ofctl("dump-flows", "--no-stats") for name in lab.switches} == flows


def test_wrong_names_are_named(lab: Lab) -> None:
    with pytest.raises(LabError, match="did you mean 'l1-s2'"):
        lab.set_link("l1s2", up=True)
    with pytest.raises(LabError, match="no switch 's9' here; there are l1, l2, s1, s2"):
        lab.kill_switch("s9")
    with pytest.raises(LabError, match="no host 'l1' here; there are h1, h2"):
        lab.popen("l1", ["true"])
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        lab.popen("h1", ["no-such-program"])
    with pytest.raises(LabError, match="not started"):
        Lab(FabricSpec()).popen("h1", ["true"])


def test_ten_switches_and_sixteen_hosts_come_and_go() -> None:
    with Lab(FabricSpec(leaves=2, spines=8, hosts_per_leaf=8, link=Link(10), access=Link(50))) as lab:
        assert len(lab.hosts) == 16
        assert len(lab.switches) == 10
        pids = [lab.switch(name).pid for name in lab.switches]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_switches_allocate_with_the_faster_library_where_it_is_installed(lab: Lab) -> None:
    library = faster_allocator()
    for name in lab.switches:
        daemon = lab.switch(name).daemon
        assert daemon is not None
        loaded = Path(f"/proc/{daemon.pid}/maps").read_text(encoding="utf-8")
        assert ("tcmalloc" in loaded) == (library is not None)


def test_a_controller_may_listen_before_there_is_a_fabric_and_a_switch_finds_it_at_once() -> None:
    """What is raised there ends the lab."""
    listening = socket.socket()

    def listen() -> None:
        with pytest.raises(LabError, match="not there yet"):
            _ = lab.switches
        listening.bind(lab.controller_endpoint)
        listening.listen()

    def refuse() -> None:
        raise OSError("it cannot be started")

    spec = FabricSpec(leaves=1, spines=1, hosts_per_leaf=1)
    lab = Lab(spec, on_endpoint=listen)
    with listening, lab:
        listening.settimeout(60)
        callers = {listening.accept()[1][0] for _ in lab.switches}
        assert len(callers) == 2
    failing = Lab(spec, on_endpoint=refuse)
    with pytest.raises(OSError, match="cannot be started"):
        failing.start()
    with pytest.raises(LabError, match="not started"):
        _ = failing.run_dir
