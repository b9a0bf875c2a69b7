"""Priority queues at real switches' ports: strict, eight levels, buffers in packets, back after faults. By counters.

What a flood costs in goodput and delay is measured by ``capstan bench queues``, whose parts are used here.
"""

from __future__ import annotations

import copy
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.queue_traffic import FRAME_BITS
from benchmarks.queues import QUEUES, QueueLab, answer, sent_in
from capstan_client.errors import ControllerError
from controller.queues.ports import COLUMNS, SwitchPlan, plan
from experiments.spec.spec import SchemeChoice
from ovsdb.port_queues import ONE_QUEUE, PortQueues
from ovsdb.session import Tables
from ovsdb.watcher import OvsdbWatcher
from tests.lab import overlay_transfer
from tests.waiting import PATIENCE_S, eventually
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link

BUFFER = 64
LINK_MBPS = 4.0
"""Slow, so that the buffer outlasts what a busy machine keeps a switch waiting."""
HIGH_MBPS = 0.75 * LINK_MBPS
FLOOD_MBPS = 1.5 * LINK_MBPS


@pytest.fixture(scope="module")
def lab() -> Iterator[QueueLab]:
    with QueueLab(BUFFER, LINK_MBPS) as lab:
        yield lab


def tc(lab: QueueLab, switch: str, *words: str) -> str:
    """Run tc in a switch's namespace."""
    pid = lab.deployment.lab.switch(switch).pid
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def vsctl(lab: QueueLab, switch: str, *words: str) -> str:
    return lab.deployment.lab.switch(switch).vsctl(*words)


def high_beside_flood(lab: QueueLab, mbps: float, flood: float, seconds: float) -> tuple[int, dict[str, Any]]:
    """Send in queue 0 beside a flood in the last one; return datagrams sent and what l1's port to s1 did meanwhile."""
    with lab.flood(f"{QUEUES - 1}:{flood}"):
        eventually(lambda: lab.port("l1", "s1")["counters"][-1]["dropped_packets"] > 0)
        drain = lab.started("h4", "drain", 5202)
        before = lab.port("l1", "s1")
        sender = lab.start("h2", "flood", lab.address["h4"], 5202, seconds, f"0:{mbps}")
        sent = int(answer(sender, seconds + 60)["0"])
        lab.wait_empty(0)
        after = lab.port("l1", "s1")
        drain.kill()
        drain.communicate()
    return sent, {what: sent_in(before, after, what) for what in ("sent_packets", "dropped_packets")}


def counted(lab: QueueLab) -> Any:
    """Return what the controller says of all ports, once every switch has reported its counters; before, None."""
    view = lab.deployment.client.queues()
    return view if all(one["counted_s_ago"] is not None for one in view["switches"]) else None


def transferred(lab: QueueLab, source: str, target: str, address: str, size: int) -> int:
    """Return the bytes that a TCP connection between two hosts brought over, all of them right."""

    def program(host: str, text: str, *words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-S", "-c", text, *map(str, words)]
        process: subprocess.Popen[str] = lab.deployment.lab.popen(
            host, command, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    sink = program(target, overlay_transfer.RECEIVE, 5203)
    sender = program(source, overlay_transfer.SEND, address, 5203, size, 0)
    sent, received = (
        sender.communicate(timeout=PATIENCE_S)[0].split(),
        sink.communicate(timeout=PATIENCE_S)[0].split(),
    )
    assert sent == received
    return int(received[-1])


def test_every_port_has_what_the_scheme_asks_for(lab: QueueLab) -> None:
    view = eventually(lambda: counted(lab), "counters of all switches")
    assert view["wanted"] == {"number": QUEUES, "buffer_packets": BUFFER}
    assert {switch["switch"] for switch in view["switches"]} == {"l1", "l2", "s1"}
    for switch in view["switches"]:
        assert switch["in_force"]
        assert switch["problems"] == []
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
    assert sent > 2 * BUFFER, "more than the queue could hold back"
    assert port["dropped_packets"][0] == 0
    assert sent <= port["sent_packets"][0] < 1.5 * sent, (
        "all of them, and what agents and the controller send"
    )
    assert port["dropped_packets"][-1] > 0
    assert port["sent_packets"][-1] > 0, "the low queue has what is left"


def test_a_flood_lets_each_packet_of_a_high_queue_by(lab: QueueLab) -> None:
    """The link is so slow that the flood's buffer takes seconds: beside that, what delays this machine is nothing."""
    slow_mbps, pings = 0.5, 100  # so many outlast what it takes to start them
    packet_ms = FRAME_BITS / slow_mbps / 1e3
    try:
        lab.deployment.lab.set_link("l1-s1", rate_mbps=slow_mbps)
        with lab.flood(f"{QUEUES - 1}:{4 * slow_mbps}"):
            eventually(lambda: lab.port("l1", "s1")["counters"][-1]["waiting_packets"] == BUFFER)
            before = lab.port("l1", "s1")
            times = lab.round_trips(pings)
            after = lab.port("l1", "s1")
    finally:
        lab.deployment.lab.set_link("l1-s1", rate_mbps=LINK_MBPS)
    passed = sent_in(before, after, "sent_packets")
    assert passed[0] >= pings
    # In the flood's own queue a ping would wait for the whole buffer, if it got a place there at all.
    assert passed[-1] < pings * BUFFER / 4, (
        "packets of the flood that went meanwhile, by the link's own clock"
    )
    assert statistics.median(times) < packet_ms * BUFFER / 4, times


def test_eight_levels_are_served_in_order_and_hold_their_buffer(lab: QueueLab) -> None:
    """All are filled, then let go: none sends while a higher one has packets, however long we look away."""
    lab.wait_empty(QUEUES - 1)
    try:
        with lab.flood(*(f"{priority}:{LINK_MBPS / 2}" for priority in range(QUEUES))):
            eventually(
                lambda: (
                    [one["waiting_packets"] for one in lab.port("l1", "s1")["counters"]][3:]
                    == [BUFFER] * (QUEUES - 3)
                )
            )
            lab.deployment.lab.set_link("l1-s1", rate_mbps=LINK_MBPS / 4)
        looks = [lab.port("l1", "s1")]
        assert max(one["waiting_bytes"] for one in looks[0]["counters"]) <= BUFFER * 1514
        while any(one["waiting_packets"] for one in looks[-1]["counters"]):
            looks.append(lab.port("l1", "s1"))
    finally:
        lab.deployment.lab.set_link("l1-s1", rate_mbps=LINK_MBPS)
    judged = turn_missed = 0
    for before, after in pairwise(looks):
        sent = sent_in(before, after, "sent_packets")
        changes = [sent_in(before, after, f"{what}_packets") for what in ("sent", "waiting", "dropped")]
        came = [sum(one) for one in zip(*changes, strict=True)]
        never_empty = [
            queue
            for queue, now in enumerate(after["counters"])
            if now["waiting_packets"] and not came[queue]  # (an agent's packet may come at any time)
        ]
        if never_empty:
            judged += sum(sent)
            turn_missed += sum(sent[never_empty[0] + 1 :])
    assert judged > 2 * BUFFER, f"{len(looks)} looks"
    assert turn_missed <= QUEUES, "but for the one that HTB lets each class send by a rate of its own"


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
    eventually(lambda: [one["switch"] for one in client.queues()["switches"]] == ["l2", "s1"])
    tc(lab, "l1", "qdisc", "del", "dev", name, "root")
    fabric.restart_switch("l1")
    eventually(lambda: client.health().ready and client.health().switches == 3)
    assert tc(lab, "l1", "qdisc", "show", "dev", name).count(f"limit {BUFFER}p") == QUEUES
    sent, port = high_beside_flood(lab, HIGH_MBPS, FLOOD_MBPS, 1.5)
    assert port["dropped_packets"][0] == 0
    assert port["sent_packets"][0] >= sent
    assert port["dropped_packets"][-1] > 0


def test_a_controller_that_comes_back_leaves_them_as_they_are(lab: QueueLab) -> None:
    before = lab.port("l1", "s1")
    lab.deployment.kill("controller")
    lab.deployment.relaunch("controller")
    eventually(lambda: lab.deployment.client.health().ready)
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
        assert transferred(lab, "h1", "h3", overlay["h3"], 800_000) == 800_000
        high, low = sent_in(there, lab.port(*ends[0]))
        assert 100_000 <= high < 400_000
        assert low >= 700_000
        acks, data = sent_in(back, lab.port(*ends[1]))
        assert acks > 0
        assert data == 0
    finally:
        lab.deployment.set_scheme(lab.deployment.spec.schemes[0])


def test_a_port_that_no_program_can_give_queues_is_said_to_be_one(lab: QueueLab) -> None:
    eight = lab.deployment.spec.schemes[0]
    row = vsctl(lab, "s1", "get", "port", "s1-eth1", "qos").strip()
    vsctl(lab, "s1", "remove", "qos", row, "external_ids", "capstan-writer")
    try:
        eventually(
            lambda: any(
                "s1-eth1" in problem
                for switch in lab.deployment.client.queues()["switches"]
                for problem in switch["problems"]
            )
        )
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
        watcher = OvsdbWatcher(COLUMNS, lambda name, tables, _: seen.update({name: tables}))

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
            eventually(lambda: planned(ONE_QUEUE).in_force, "the writer has looked at the port")
            switch.vsctl("clear", "port", port, "qos")
            eventually(lambda: planned(ONE_QUEUE).ports[0].by == "none")
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
