"""Priority queues at real switches' ports: strict, eight levels, buffers in packets, back after faults. By counters.

What a flood costs in goodput and delay is measured by ``capstan bench queues``, whose parts are used here.
"""

from __future__ import annotations

import copy
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks.queues import (
    LINK_MBPS,
    QUEUES,
    QueueLab,
    answer,
    levels_in_order,
    overload,
    sent_in,
)
from controller.queues.ports import COLUMNS, SwitchPlan, plan
from experiments.controller_client import ControllerError
from experiments.spec import SchemeChoice
from ovsdb.port_queues import ONE_QUEUE, PortQueues
from ovsdb.session import Tables
from ovsdb.watcher import OvsdbWatcher
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link

BUFFER = 64
HIGH_MBPS = 0.75 * LINK_MBPS
FLOOD_MBPS = 1.5 * LINK_MBPS


@pytest.fixture(scope="module")
def lab() -> Iterator[QueueLab]:
    with QueueLab(BUFFER) as lab:
        yield lab


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.02)


def tc(lab: QueueLab, switch: str, *words: str) -> str:
    """Run tc in a switch's namespace."""
    pid = lab.deployment.lab.switch(switch).pid
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def vsctl(lab: QueueLab, switch: str, *words: str) -> str:
    return lab.deployment.lab.switch(switch).vsctl(*words)


def high_beside_flood(lab: QueueLab, mbps: float, flood: float, seconds: float) -> tuple[int, dict[str, Any]]:
    """Datagrams sent in queue 0 beside a flood in the last one; what l1's port to s1 has done meanwhile."""
    with lab.flood(f"{QUEUES - 1}:{flood}"):
        eventually(lambda: lab.port("l1", "s1")["counters"][-1]["dropped_packets"] > 0)
        drain = lab.started("h4", "drain", 5202)
        before = lab.port("l1", "s1")
        sender = lab.start("h2", "flood", lab.address["h4"], 5202, seconds, f"0:{mbps}")
        sent = int(answer(sender, seconds + 20)["0"])
        lab.wait_empty(0)
        after = lab.port("l1", "s1")
        drain.kill()
        drain.communicate()
    return sent, {what: sent_in(before, after, what) for what in ("sent_packets", "dropped_packets")}


def test_every_port_has_what_the_scheme_asks_for(lab: QueueLab) -> None:
    view = lab.deployment.client.queues()
    assert view["wanted"] == {"number": QUEUES, "buffer_packets": BUFFER}
    assert {switch["switch"] for switch in view["switches"]} == {"l1", "l2", "s1"}
    for switch in view["switches"]:
        assert switch["in_force"]
        assert switch["problems"] == []
        assert switch["counted_s_ago"] < 2
        names = {port["name"] for port in switch["ports"]}
        assert names == {
            name for name in lab.deployment.lab.switch(switch["switch"]).intfNames() if name != "lo"
        }
        for port in switch["ports"]:
            assert (port["by"], port["queues"], port["buffer_packets"]) == ("writer", QUEUES, BUFFER)
            assert len(port["counters"]) == QUEUES
            shown = tc(lab, switch["switch"], "qdisc", "show", "dev", port["name"])
            assert shown.count(f"limit {BUFFER}p") == QUEUES
    place = lab.deployment.lab.popen(
        "h1", ["tc", "qdisc", "show", "dev", "h1-eth0"], stdout=subprocess.PIPE, text=True
    )
    assert place.communicate()[0].count(f"limit {BUFFER}p") == QUEUES, "a host's own interface comes first"


def test_a_flood_in_a_low_queue_costs_a_high_one_nothing(lab: QueueLab) -> None:
    sent, port = high_beside_flood(lab, HIGH_MBPS, FLOOD_MBPS, 3.0)
    assert sent > 0.5 * HIGH_MBPS * 1e6 * 3.0 / 8 / 1514
    assert port["dropped_packets"][0] == 0
    assert sent <= port["sent_packets"][0] <= sent + 50, (
        "all of them, and what agents and the controller send"
    )
    assert port["dropped_packets"][-1] > 0
    carried = sum(port["sent_packets"]) * 1514 * 8 / 1e6
    assert port["sent_packets"][-1] > 0, "the low queue has what is left"
    assert carried <= LINK_MBPS * 4.5


def test_a_flood_delays_a_high_queue_by_its_packet_on_the_wire_at_most(lab: QueueLab) -> None:
    added = []
    for _ in range(3):  # this machine may have other things to do, too
        lab.wait_empty(0)
        calm = lab.round_trips(300)
        with lab.flood(f"{QUEUES - 1}:{FLOOD_MBPS}"):
            eventually(lambda: lab.port("l1", "s1")["counters"][-1]["waiting_packets"] == BUFFER)
            loud = lab.round_trips(300)
        added.append(statistics.quantiles(loud, n=100)[98] - statistics.quantiles(calm, n=100)[98])
        if added[-1] < 1.0:
            break
    assert min(added) < 1.0, f"p99 of the round-trip time went up by {added} ms"


def test_eight_levels_are_served_in_order_and_hold_their_buffer(lab: QueueLab) -> None:
    sent, dropped, offered = overload(lab, 2.0)
    assert levels_in_order(sent, offered) == QUEUES, (
        f"bytes sent by queue: {sent}, offered to each: {offered}"
    )
    assert sum(dropped[:3]) == 0
    assert dropped[-1] > 0, "it gets nothing, and is full"
    assert sum(sent[:4]) > 0.9 * sum(offered[:4])
    with lab.flood(*(f"{priority}:{LINK_MBPS / 4}" for priority in range(QUEUES))):
        eventually(
            lambda: [one["waiting_packets"] for one in lab.port("l1", "s1")["counters"]][5:] == [BUFFER] * 3
        )
    assert lab.port("l1", "s1")["counters"][5]["waiting_bytes"] <= BUFFER * 1514


def test_a_change_of_rate_keeps_the_queues_and_what_waits(lab: QueueLab) -> None:
    before = lab.port("l1", "s1")
    try:
        lab.deployment.lab.set_link("l1-s1", rate_mbps=LINK_MBPS / 2)
        eventually(lambda: lab.port("l1", "s1")["rate_bps"] == LINK_MBPS / 2 * 1e6)
        after = lab.port("l1", "s1")
        assert min(sent_in(before, after)) >= 0, "the same queues, not new ones"
        assert [one["sent_packets"] > 0 for one in after["counters"]] == [True] * QUEUES
        sent, port = high_beside_flood(lab, HIGH_MBPS / 2, FLOOD_MBPS, 1.5)
        assert port["dropped_packets"][0] == 0
        assert port["sent_packets"][0] >= sent
    finally:
        lab.deployment.lab.set_link("l1-s1", rate_mbps=LINK_MBPS)


def test_a_switch_that_comes_back_has_its_queues(lab: QueueLab) -> None:
    fabric, client = lab.deployment.lab, lab.deployment.client
    (name,) = [
        (link.intf1 if link.intf1.node.name == "l1" else link.intf2).name
        for link in fabric.net.links
        if link.name == "l1-s1"
    ]
    fabric.kill_switch("l1", links_down=True)
    eventually(lambda: client.health().switches == 2)
    assert [one["switch"] for one in client.queues()["switches"]] == ["l2", "s1"]
    tc(lab, "l1", "qdisc", "del", "dev", name, "root")
    fabric.restart_switch("l1")
    eventually(lambda: client.health().ready and client.health().switches == 3, 20)
    assert tc(lab, "l1", "qdisc", "show", "dev", name).count(f"limit {BUFFER}p") == QUEUES
    sent, port = high_beside_flood(lab, HIGH_MBPS, FLOOD_MBPS, 1.5)
    assert port["dropped_packets"][0] == 0
    assert port["sent_packets"][0] >= sent
    assert port["dropped_packets"][-1] > 0


def test_a_controller_that_comes_back_leaves_them_as_they_are(lab: QueueLab) -> None:
    before = lab.port("l1", "s1")
    lab.deployment.kill("controller")
    lab.deployment.relaunch("controller")
    eventually(lambda: lab.deployment.client.health().ready, 20)
    assert lab.deployment.client.queues()["wanted"] == {"number": QUEUES, "buffer_packets": BUFFER}
    assert min(sent_in(before, lab.port("l1", "s1"))) >= 0, "not made anew"


def test_queues_come_and_go_with_the_scheme(lab: QueueLab) -> None:
    eight = lab.deployment.spec.schemes[0]
    for name, number in (("rps-pq", 2), ("ecmp", 1), ("ecmp-pq", 2)):
        lab.deployment.set_scheme(SchemeChoice(name, name))
        for switch in lab.deployment.client.queues()["switches"]:
            assert [port["queues"] for port in switch["ports"]] == [number] * len(switch["ports"])
            for port in switch["ports"]:
                shown = tc(lab, switch["switch"], "qdisc", "show", "dev", port["name"])
                assert shown.count("pfifo") == number
    dumped = lab.deployment.lab.switch("l1").ofctl("dump-flows", "table=0")
    assert "set_queue:0" in dumped, "for the kernel datapath"
    assert "set_queue:1" in dumped
    lab.deployment.set_scheme(eight)
    assert "set_queue:7" in lab.deployment.lab.switch("l1").ofctl("dump-flows", "table=0")


def test_agents_put_short_and_long_flows_into_their_queues(lab: QueueLab) -> None:
    """A flow is short for its first 100 kB; its ACKs are control packets, which go first too."""
    overlay = {place.name: place.overlay for place in lab.deployment.spec.fabric.hosts()}
    lab.deployment.set_scheme(SchemeChoice("ecmp-pq", "ecmp-pq"))
    try:
        ends = [(name, "s1") for name in ("l1", "l2")]
        there, back = (lab.port(*end) for end in ends)
        sink = lab.started("h3", "receive", 5203, 0.0, 1.0)
        source = lab.started("h1", "send", overlay["h3"], 5203, 0, 2.0)
        megabits = float(answer(sink, 30))
        source.kill()
        source.communicate()
        high, low = sent_in(there, lab.port(*ends[0]))
        assert 100_000 <= high < 300_000
        assert low > 0.8 * megabits * 1e6 / 8 - 100_000
        acks, data = sent_in(back, lab.port(*ends[1]))
        assert acks > 0
        assert data == 0
    finally:
        lab.deployment.set_scheme(lab.deployment.spec.schemes[0])


def test_a_port_that_nobody_can_give_queues_is_said_to_be_one(lab: QueueLab) -> None:
    eight = lab.deployment.spec.schemes[0]
    row = vsctl(lab, "s1", "get", "port", "s1-eth1", "qos").strip()
    vsctl(lab, "s1", "remove", "qos", row, "external_ids", "capstan-writer")
    try:
        with pytest.raises(
            ControllerError, match="s1-eth1: it has a QoS of type linux-noop that is not ours"
        ):
            lab.deployment.set_scheme(eight)
        assert any("s1-eth1" in reason for reason in lab.deployment.client.health().reasons)
        lab.deployment.set_scheme(SchemeChoice("ecmp", "one queue is what every port has"))
        assert lab.deployment.client.health().ready
    finally:
        vsctl(lab, "s1", "set", "qos", row, "external_ids:capstan-writer=lab")
        lab.deployment.set_scheme(eight)


def test_open_vswitch_makes_a_tree_of_the_rows_for_a_kernel_datapath() -> None:
    """At a port that its writer has given up. (Packets get to these queues on a kernel with Open vSwitch only.)"""
    with Lab(FabricSpec(leaves=2, spines=1, hosts_per_leaf=1, link=Link(LINK_MBPS))) as lab:
        switch = lab.switch("s1")
        port = next(name for name in switch.intfNames() if name != "lo")
        seen: dict[str, Tables | None] = {}
        watcher = OvsdbWatcher(COLUMNS, lambda name, tables: seen.update({name: tables}))

        def planned(queues: PortQueues) -> SwitchPlan:
            tables = copy.deepcopy(seen["s1"])
            assert tables is not None
            for bridge in tables["Bridge"].values():
                bridge["datapath_type"] = "system"
            tables["Port"] = {
                uuid: row for uuid, row in tables["Port"].items() if row["name"] in (port, "s1")
            }
            found = plan(tables, int(switch.dpid, 16), queues)
            assert found is not None
            return found

        def classes() -> str:
            command = ["nsenter", f"--net=/proc/{switch.pid}/ns/net", "tc", "class", "show", "dev", port]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        watcher.start()
        watcher.watch("s1", switch.run_dir / "db.sock")
        try:
            eventually(lambda: seen.get("s1") is not None)
            switch.vsctl("clear", "port", port, "qos")
            eventually(lambda: planned(ONE_QUEUE).ports[0].by == "nobody")
            watcher.post(lambda: watcher.transact("s1", planned(PortQueues(4)).operations))
            eventually(lambda: planned(PortQueues(4)).in_force)
            assert planned(PortQueues(4)).operations == ()
            eventually(lambda: classes().count("parent 1:fffe") == 4)
            for queue in range(4):
                assert re.search(rf"class htb 1:{queue + 1} parent 1:fffe .*prio {queue} ", classes())
            watcher.post(lambda: watcher.transact("s1", planned(ONE_QUEUE).operations))
            eventually(lambda: planned(ONE_QUEUE).in_force)
            eventually(lambda: "htb" not in classes())
            assert "capstan-owner" not in switch.vsctl("list", "qos") + switch.vsctl("list", "queue")
        finally:
            watcher.stop()
