"""CAPTON on real switches: grants by what is left, all paths alike, and no flow that waits for a dead controller."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from host_agent.admission.closed_windows import probing
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

PATHS = 4
ACCESS_MBPS = 10
FAIL_SAFE_S = 2.0
"""A controller on a busy machine may be later than the 0.1 s after which flows go unasked."""
ANNOUNCED = """
import select, socket, sys
sys.path.insert(0, sys.argv.pop())
from workloads.announce import announce
address, port, own, total, held = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:]
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
connection.bind((own, 0))
assert announce(connection.getsockname(), (address, port), total)
connection.connect((address, port))
print("connected", flush=True)
sent = 0
while held and not select.select([sys.stdin], [], [], 0.1)[0]:
    sent += connection.send(bytes(200))
connection.sendall(bytes(total - sent))
connection.shutdown(socket.SHUT_WR)
assert connection.recv(64)
print("done", total, flush=True)
"""
"""ADDRESS PORT OWN TOTAL [held] ROOT: held: sends next to nothing until `result` closes its standard input."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    shape = fabric(PATHS, hosts=2, rate=20.0) | {"access": {"rate_mbps": ACCESS_MBPS}}
    with deployment(shape, "capton") as running:
        running.set_scheme(SchemeChoice("capton", "capton", {"admission.fail_safe_s": FAIL_SAFE_S}))
        eventually(lambda: len(running.client.capton()["links"]) == 12)
        yield running


def send(lab: Deployment, host: str, port: int, size: int, *, held: bool = False) -> subprocess.Popen[str]:
    """Start a flow to h3, with *size* bytes announced. held: it is not over before `result` is asked for."""
    own = next(place.overlay for place in lab.spec.fabric.hosts() if place.name == host)
    root = str(programs.__file__).rsplit("/tests/", 1)[0]
    return start(lab, host, ANNOUNCED, RECEIVER, port, own, size, *(["held"] if held else []), root)


def receive(lab: Deployment, port: int) -> subprocess.Popen[str]:
    process = start(lab, "h3", programs.RECEIVE, port)
    said(process, "listening")
    return process


def counter(lab: Deployment, host: str, name: str) -> float:
    agents = {agent["host"]: agent["counters"] for agent in lab.client.agents()}
    return float(agents[host].get(name, 0))


def flows_of(lab: Deployment, host: str) -> list[dict[str, Any]]:
    return [flow for flow in lab.client.capton()["flows"] if flow["source"] == host]


def test_the_smaller_flow_goes_first_and_every_path_gets_its_share(lab: Deployment) -> None:
    lab.client.report_flows(forget=True)
    before = counter(lab, "h1", "stops")
    receivers = [receive(lab, PORT), receive(lab, PORT + 1)]

    def standing() -> tuple[dict[str, float], dict[str, Any]]:
        """Return each sender's rate (bit/s), and the links, at one moment."""
        view = lab.client.capton()
        rates = {flow["source"]: flow["rate_bps"] for flow in view["flows"]}
        return rates, {link["name"]: link for link in view["links"]}

    large = send(lab, "h1", PORT, 3_000_000, held=True)
    said(large, "connected")
    rate = ACCESS_MBPS * 1_000_000
    _, links = eventually(lambda: now if (now := standing())[0] == {"h1": rate} else None)
    assert links["l1 up"]["capacity_bps"] == PATHS * 20_000_000
    assert links["h3 down"]["utilisation"] == 1.0
    small = send(lab, "h2", PORT + 1, 600_000, held=True)
    said(small, "connected")
    eventually(lambda: standing()[0] == {"h1": 0, "h2": rate})
    assert result(small) == ["done", "600000"]
    assert result(large) == ["done", "3000000"]
    for process in receivers:
        process.wait(60)
    # by what the agents count: the larger one was stopped, and none went unasked
    eventually(lambda: counter(lab, "h1", "stops") > before)
    for host in ("h1", "h2"):
        assert counter(lab, host, "flows_unscheduled_by_fail_safe") == 0
        assert counter(lab, host, "flows_scheduled") >= 1
    flows = received(lab, "h3")
    assert {flow["destination_port"] for flow in flows} == {PORT, PORT + 1}
    for flow in (one for one in flows if one["destination_port"] == PORT):
        counts = list(flow["paths_by_class"]["long"].values())
        assert len(counts) == PATHS
        total = sum(counts)
        assert total > 1500
        assert all(abs(count - total / PATHS) <= 0.01 * total / PATHS + 2 for count in counts), counts
    eventually(lambda: lab.client.capton()["flows"] == [])


def test_an_agent_that_dies_holding_a_grant_gives_it_back(lab: Deployment) -> None:
    receivers = [receive(lab, PORT + 2), receive(lab, PORT + 3)]
    first = send(lab, "h2", PORT + 2, 2_000_000, held=True)
    said(first, "connected")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h2")] == ["granted"])
    second = send(lab, "h1", PORT + 3, 3_000_000, held=True)
    said(second, "connected")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["waiting"])
    lab.kill("agent h2")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["granted"])
    lab.relaunch("agent h2")
    assert result(second) == ["done", "3000000"]
    for process in (first, *receivers):
        process.kill()
        process.communicate()
    eventually(lambda: all(agent["connected"] for agent in lab.client.agents()))
    eventually(lambda: lab.client.health().ready)


def kernel_table(lab: Deployment, host: str, name: str) -> str:
    process = lab.lab.popen(host, ["cat", f"/proc/net/{name}"], stdout=subprocess.PIPE, text=True)
    return str(process.communicate()[0])


def window_probes(lab: Deployment, host: str) -> int:
    names, values = (line.split() for line in kernel_table(lab, host, "netstat").splitlines()[:2])
    return int(values[names.index("TCPWinProbe")])


def test_a_window_that_an_agent_left_closed_opens_before_its_host_probes(lab: Deployment) -> None:
    receivers = [receive(lab, PORT + 6), receive(lab, PORT + 7)]
    first = send(lab, "h2", PORT + 6, 2_000_000, held=True)
    said(first, "connected")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h2")] == ["granted"])
    probes = window_probes(lab, "h1") + 6  # the next is as far away as these take together, some 13 s
    second = send(lab, "h1", PORT + 7, 3_000_000, held=True)
    said(second, "connected")
    eventually(lambda: [flow["state"] for flow in flows_of(lab, "h1")] == ["waiting"])
    eventually(lambda: window_probes(lab, "h1") >= probes)
    assert len(probing(kernel_table(lab, "h1", "tcp"))) == 1
    lab.kill("agent h1")
    lab.relaunch("agent h1")
    eventually(lambda: probing(kernel_table(lab, "h1", "tcp")) == [])
    assert window_probes(lab, "h1") == probes
    assert result(first) == ["done", "2000000"]
    assert result(second) == ["done", "3000000"]
    for process in receivers:
        process.kill()
        process.communicate()


def test_without_a_controller_flows_go_unscheduled_and_say_so_and_are_scheduled_again(
    lab: Deployment,
) -> None:
    before = counter(lab, "h1", "flows_unscheduled_by_fail_safe")
    receivers = [receive(lab, PORT + 4), receive(lab, PORT + 5)]
    controller = lab.part("controller").process
    controller.send_signal(signal.SIGSTOP)
    try:
        assert result(send(lab, "h1", PORT + 4, 100_000)) == ["done", "100000"]
    finally:
        controller.send_signal(signal.SIGCONT)
    eventually(lambda: counter(lab, "h1", "flows_unscheduled_by_fail_safe") == before + 1)
    eventually(lambda: any(one["kind"] == "capton-fail-safe" for one in lab.client.events()[0]))
    flow = send(lab, "h1", PORT + 5, 60_000_000, held=True)  # longer than a controller takes to start
    eventually(lambda: [one["state"] for one in flows_of(lab, "h1")] == ["granted"])
    lab.kill("controller")
    lab.relaunch("controller")
    eventually(lambda: [one["state"] for one in flows_of(lab, "h1")] == ["granted"])
    eventually(lambda: counter(lab, "h1", "flows_unscheduled") == 0)
    assert flow.poll() is None
    for process in (flow, *receivers):
        process.kill()
        process.communicate()


def test_the_command_shows_grants(lab: Deployment) -> None:
    asked = ["capton", "--lab", lab.lab.lab_id]
    done = subprocess.run(
        [sys.executable, "-m", "cli", *asked, "--json", "-"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["paths"] == "all"
    shown = subprocess.run(
        [sys.executable, "-m", "cli", *asked, "--once"], capture_output=True, text=True, check=True
    )
    assert "h3 down" in shown.stdout
