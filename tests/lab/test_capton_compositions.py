"""CAPTON with other schemes' parts, and flows that are older than it, on real switches. By counters."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from tests.lab.test_capton_on_switches import ANNOUNCED, FAIL_SAFE_S, PATHS, counter, flows_of, receive, send
from tests.lab.test_schemes_on_switches import (
    PORT,
    RECEIVER,
    deployment,
    fabric,
    programs,
    received,
    result,
    said,
    start,
)
from tests.waiting import eventually

_COUNTED: Final = (
    ANNOUNCED
    + """
from workloads.tcp_info import tcp_info
print("resent", tcp_info(connection).bytes_retransmitted, connection.getsockname()[1], flush=True)
"""
)
_READS_NOTHING: Final = """
import signal, socket, sys
server = socket.create_server(("", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = server.accept()
signal.pause()
"""
SMALL: Final = 9_000
LARGE: Final = 2_000_000
FLOWS: Final = 25
SMALL_PORT: Final = PORT + 50
_MANY: Final = """
import socket, sys
sys.path.insert(0, sys.argv.pop())
from workloads.announce import announce
address, port, own, total, flows = sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])
for _ in range(flows):
    with socket.socket() as connection:
        connection.bind((own, 0))
        assert announce(connection.getsockname(), (address, port), total)
        connection.connect((address, port))
        connection.sendall(bytes(total))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    shape = fabric(PATHS, hosts=2, rate=20.0) | {"access": {"rate_mbps": 10}}
    with deployment(shape, "ecmp") as running:
        said(start(running, "h3", programs.DISCARD, SMALL_PORT), "listening")
        yield running


def take(lab: Deployment, scheme: str, **overrides: Any) -> None:
    """Put the scheme in force, and wait until grants are given by the whole fabric."""
    patient = {"admission.fail_safe_s": FAIL_SAFE_S}
    lab.set_scheme(
        SchemeChoice(
            scheme, scheme, patient | {key.replace("__", "."): one for key, one in overrides.items()}
        )
    )
    eventually(lambda: len(lab.client.capton()["links"]) >= 12)


def small_flows(lab: Deployment, host: str) -> subprocess.Popen[str]:
    own = next(place.overlay for place in lab.spec.fabric.hosts() if place.name == host)
    root = str(programs.__file__).rsplit("/tests/", 1)[0]
    return start(lab, host, _MANY, RECEIVER, SMALL_PORT, own, SMALL, FLOWS, root)


def transfer(lab: Deployment, port: int) -> None:
    """Send a large flow of h1 and small ones of h2, all to h3, at once."""
    receiver = receive(lab, port)
    large = send(lab, "h1", port, LARGE)
    said(large, "connected")
    small = small_flows(lab, "h2")
    assert result(large) == ["done", str(LARGE)]
    assert small.wait(60) == 0, small.stderr.read() if small.stderr else ""
    receiver.wait(60)


def test_a_flow_that_is_open_when_the_scheme_comes_is_scheduled(lab: Deployment) -> None:
    receivers = [receive(lab, PORT), receive(lab, PORT + 1)]
    old = start(lab, "h1", programs.SEND, RECEIVER, PORT, 1 << 40, 0)
    said(old, "connected")
    eventually(lambda: any(flow["bytes"] > 100_000 for flow in lab.client.report_flows(forget=False)["h3"]))
    take(lab, "capton")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["granted"])
    smaller = send(lab, "h2", PORT + 1, 400_000, held=True)
    said(smaller, "connected")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["waiting"])
    assert result(smaller) == ["done", "400000"]
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["granted"])
    assert counter(lab, "h1", "flows_unscheduled_by_fail_safe") == 0
    for process in (old, *receivers):
        process.kill()
        process.communicate()
    eventually(lambda: lab.client.capton()["flows"] == [])


def test_with_caps_granted_flows_use_all_paths_alike_and_small_ones_are_coded(lab: Deployment) -> None:
    take(lab, "capton-caps")
    lab.client.report_flows(forget=True)
    transfer(lab, PORT + 2)
    flows = received(lab, "h3")
    (large,) = [flow for flow in flows if flow["destination_port"] == PORT + 2]
    counts = list(large["paths_by_class"]["long"].values())
    share = sum(counts) / PATHS
    assert len(counts) == PATHS
    assert share > 300
    assert all(abs(count - share) <= 0.01 * share + 2 for count in counts), counts
    assert large["repairs"] == 0, "what is granted needs no code"
    small = [flow for flow in flows if flow["destination_port"] == SMALL_PORT]
    assert len(small) == FLOWS
    assert all("long" not in flow["paths_by_class"] for flow in small)
    assert sum(flow["repairs"] for flow in small) > 0
    assert {stamp for flow in small for stamp in flow["paths"]} == set(large["paths"]), "sprayed"


def queued(lab: Deployment, queues: int) -> list[int]:
    """Return the bytes that went through each queue of the first leaf's ports to the spines."""
    asked = time.monotonic()
    eventually(
        lambda: all(
            one["counted_s_ago"] is not None and one["counted_s_ago"] < time.monotonic() - asked
            for one in lab.client.queues()["switches"]
        )
    )
    (leaf,) = [one for one in lab.client.queues()["switches"] if one["switch"] == "l1"]
    links = [link for link in lab.lab.net.links if link.name.startswith("l1-s")]
    names = {(link.intf1 if link.intf1.node.name == "l1" else link.intf2).name for link in links}
    uplinks = [one["counters"] for one in leaf["ports"] if one["counters"] and one["name"] in names]
    assert len(uplinks) == PATHS
    return [sum(counters[queue]["sent_bytes"] for counters in uplinks) for queue in range(queues)]


def test_with_queues_small_flows_go_before_granted_ones(lab: Deployment) -> None:
    """A flow sinks by what it has sent, granted or not; what needs no grant stays in the first queue."""
    take(lab, "capton-tpfs", queues__number=3, priority__thresholds_bytes=[20_000, 40_000])
    before = queued(lab, 3)
    transfer(lab, PORT + 3)
    first, second, third = (now - then for now, then in zip(queued(lab, 3), before, strict=True))
    assert first >= FLOWS * SMALL, "all of the flows that need no grant"
    assert first < LARGE / 2, "and control packets besides"
    assert second >= 20_000
    assert second < 0.05 * LARGE
    assert third >= LARGE - 60_000, "the flow that was granted, but for its first packets"


def only_flow(lab: Deployment, host: str, state: str) -> dict[str, Any] | None:
    """Return the one flow of *host* if it is in that state; else None."""
    flows = flows_of(lab, host)
    return flows[0] if [flow["state"] for flow in flows] == [state] else None


def test_hyline_grants_a_flow_one_path_and_lets_the_next_one_wait(lab: Deployment) -> None:
    take(
        lab,
        "hyline",
        admission__load=None,
        admission__threshold_by_load=[],
        admission__threshold_bytes=1_000_000,
        short_limit_bytes=1_000_001,
    )
    lab.client.report_flows(forget=True)
    ports = (PORT + 4, PORT + 5)
    receivers = [receive(lab, port) for port in ports]
    first = send(lab, "h1", ports[0], 1_500_000, held=True)
    said(first, "connected")
    granted = eventually(lambda: only_flow(lab, "h1", "granted"))
    second = send(lab, "h2", ports[1], 3_000_000, held=True)
    said(second, "connected")
    waiting = eventually(lambda: only_flow(lab, "h2", "waiting"))
    assert waiting["path"] is None
    # asked for with its SYN; how large its segments and so all headers are is known after that
    assert waiting["remaining_bytes"] >= waiting["asked_bytes"], "it has sent nothing"
    assert result(first) == ["done", "1500000"]
    late = eventually(lambda: only_flow(lab, "h2", "granted"))
    assert result(second) == ["done", "3000000"]
    for process in receivers:
        process.wait(60)
    flows = received(lab, "h3")
    for port, reported in zip(ports, (granted, late), strict=True):
        (flow,) = [one for one in flows if one["destination_port"] == port]
        assert list(flow["paths_by_class"]["long"]) == [str(reported["path"])], (
            "all of it by the path of its grant"
        )
    for host in ("h1", "h2"):
        assert counter(lab, host, "flows_unscheduled_by_fail_safe") == 0


def two_flows(lab: Deployment, port: int, first: str) -> list[subprocess.Popen[str]]:
    """Start endless flows of h1 to h3 (which runs *first*) and h4; that to h3 has less left. Return all processes."""
    processes = []
    for host, total, program in (("h3", 1 << 28, first), ("h4", 1 << 30, programs.DISCARD)):
        receiver = start(lab, host, program, port)
        said(receiver, "listening")
        own, to = (
            next(place.overlay for place in lab.spec.fabric.hosts() if place.name == name)
            for name in ("h1", host)
        )
        root = str(programs.__file__).rsplit("/tests/", 1)[0]
        sender = start(lab, "h1", ANNOUNCED, to, port, own, total, root)
        said(sender, "connected")
        processes += [sender, receiver]
    return processes


def end(lab: Deployment, processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.communicate()
    eventually(lambda: lab.client.capton()["flows"] == [])


def test_a_receiver_that_does_not_read_delays_no_other(lab: Deployment) -> None:
    take(lab, "capton")
    before = counter(lab, "h1", "flows_stalled")
    processes = two_flows(lab, PORT + 9, _READS_NOTHING)
    eventually(lambda: [one["destination"] for one in flows_of(lab, "h1") if one["rate_bps"]] == ["h4"])
    eventually(lambda: counter(lab, "h1", "flows_stalled") > before)
    end(lab, processes)


def test_a_receiver_whose_link_is_down_delays_no_other(lab: Deployment) -> None:
    """By the grants: the sender's other flow goes on at once, and the smaller one first again when the link is back."""
    take(lab, "capton")
    processes = two_flows(lab, PORT + 7, programs.DISCARD)

    def states() -> dict[str, str]:
        return {flow["destination"]: flow["state"] for flow in flows_of(lab, "h1")}

    eventually(lambda: states() == {"h3": "granted", "h4": "waiting"})
    lab.lab.set_link("h3-l2", up=False)
    eventually(lambda: states() == {"h3": "waiting", "h4": "granted"})
    links = {link["name"]: link["capacity_bps"] for link in lab.client.capton()["links"]}
    assert (links["h3 down"], links["h4 down"]) == (0, 10_000_000)
    assert any(one["kind"] == "host-link-changed" and not one["up"] for one in lab.client.events()[0])
    lab.lab.set_link("h3-l2", up=True)
    eventually(lambda: states() == {"h3": "granted", "h4": "waiting"})
    end(lab, processes)


def test_what_is_sent_again_is_reported_with_its_cause_also_over_changes_of_the_scheme(
    lab: Deployment,
) -> None:
    """Losses that are made on purpose: all that the sending kernel has counted, agents have reported."""
    take(lab, "capton")
    before = lab.client.capton_resent()
    receiver = receive(lab, PORT + 6)
    lab.client.impair("h3", loss=0.01)
    try:
        own = next(place.overlay for place in lab.spec.fabric.hosts() if place.name == "h1")
        root = str(programs.__file__).rsplit("/tests/", 1)[0]
        sender = start(lab, "h1", _COUNTED, RECEIVER, PORT + 6, own, 2 * LARGE, root)
        said(sender, "connected")
        eventually(lambda: counter(lab, "h1", "bytes_sent_again") > 0)
        for scheme in ("ecmp", "capton"):
            lab.set_scheme(SchemeChoice(scheme, scheme, {}))
        out, error = sender.communicate(timeout=200)  # late answers make each loss cost the more
    finally:
        lab.client.impair("h3", loss=0.0)
    assert sender.returncode == 0, error
    receiver.wait(60)
    counted, port = map(int, out.split()[-2:])
    assert counted > 0

    def reported() -> list[dict[str, Any]]:
        newest = lab.client.capton_resent()["newest"]
        return [one for one in newest if one["number"] > before["episodes"] and one["source_port"] == port]

    eventually(lambda: sum(one["bytes"] for one in reported()) == counted)
    details = reported()
    assert {one["host"] for one in details} == {"h1"}
    assert all(one["queue_bytes"] == 0 for one in details)
    lost = sum(one["bytes"] - one["needless_bytes"] for one in details)
    assert lost > 0, "what was dropped on purpose was not there"
    assert "granted" in {one["state"] for one in details}
    assert {one["trigger"] for one in details} <= {"gap", "time-out", "probe", "crossed"}
