"""Faults on a real fabric: a link made slower while it carries, and an agent that is killed and comes back."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from capstan_client.errors import ControllerError
from cli.app import capstan
from experiments.run.deployment import Deployment
from tests.lab.test_live_view import ask
from tests.lab.test_schemes_on_switches import PORT, RECEIVER, deployment, fabric, programs, start
from tests.waiting import eventually

RATE, ACCESS, SLOW = 20.0, 50.0, 2.0
TOTAL = 500_000


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    """Yield a lab with one path, so that what is slow is on it."""
    with deployment(fabric(1, rate=RATE) | {"access": {"rate_mbps": ACCESS}}, "ecmp") as made:
        yield made


def rate_of(lab: Deployment, name: str) -> float:
    """Return the rate of a link in kbit/s, as the API has it."""
    return next(float(one["rate_kbps"]) for one in ask(lab, "GET", "/links")["links"] if one["name"] == name)


def kernel_rates(lab: Deployment, interface: str, node: str) -> set[str]:
    """Return the rates of the classes at a port."""
    pid = lab.lab.net[node].pid
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", "class", "show", "dev", interface]
    words = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return {words[index + 1] for index, word in enumerate(words) if word == "ceil"}


def transfer_s(lab: Deployment, port: int) -> float:
    """Return the seconds that TOTAL bytes take from h1 to h2."""
    receiver = start(lab, "h2", programs.RECEIVE, port)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    began = time.monotonic()
    sender = start(lab, "h1", programs.SEND, RECEIVER, port, TOTAL, 100_000_000)
    assert sender.wait(60) == 0
    assert receiver.wait(60) == 0
    return time.monotonic() - began


@pytest.mark.parametrize(("name", "ends"), [("l1-s1", ("l1", "s1")), ("h1-l1", ("h1", "l1"))])
def test_a_slow_link_carries_no_more_in_both_directions(
    lab: Deployment, name: str, ends: tuple[str, str]
) -> None:
    own = rate_of(lab, name)
    link = lab.lab.ends(name)
    ports = {end.node.name: end.name for end in (link.intf1, link.intf2)}
    assert set(ports) == set(ends)
    fault = lab.client.begin_fault("slow-link", name, SLOW)
    for node, interface in ports.items():
        assert kernel_rates(lab, interface, node) == {f"{SLOW:g}Mbit"}, "in force when the API answers"
    eventually(lambda: rate_of(lab, name) == SLOW * 1000)  # of the next sample
    with pytest.raises(ControllerError, match="slow already"):
        lab.client.begin_fault("slow-link", name, SLOW / 2)
    took = transfer_s(lab, PORT + 10)
    assert took > 0.9 * TOTAL * 8 / (SLOW * 1e6), "no faster than the link"
    lab.client.end_fault(fault["id"])
    for node, interface in ports.items():
        assert kernel_rates(lab, interface, node) == {f"{own / 1000:g}Mbit"}
    eventually(lambda: rate_of(lab, name) == own)


def test_queues_and_limits_stay_together(lab: Deployment) -> None:
    """A scheme with eight queues on a slow link: all of them, each with the slow rate; then neither."""
    fault = lab.client.begin_fault("slow-link", "l1-s1", SLOW)
    lab.client.set_scheme("pias", packet_time_s=lab.spec.packet_time_s)
    port = lab.lab.ends("l1-s1").intf1.name
    assert kernel_rates(lab, port, "l1") == {f"{SLOW:g}Mbit"}
    queues = next(one for one in ask(lab, "GET", "/queues")["switches"] if one["switch"] == "l1")
    assert queues["in_force"]
    assert {one["queues"] for one in queues["ports"]} == {8}
    lab.client.end_fault(fault["id"])
    assert kernel_rates(lab, port, "l1") == {f"{RATE:g}Mbit"}
    lab.client.set_scheme("ecmp", packet_time_s=lab.spec.packet_time_s)


def test_a_delay_is_there_or_refused_with_the_reason(lab: Deployment) -> None:
    if lab.lab.has_netem:
        fault = lab.client.begin_fault("slow-link", "l1-s1", None, 30.0)
        began = time.monotonic()
        assert lab.lab.popen("h1", ["ping", "-c", "1", "10.0.2.1"]).wait(60) == 0
        assert time.monotonic() - began > 0.06, "there and back"
        lab.client.end_fault(fault["id"])
    else:
        with pytest.raises(ControllerError, match="l1-s1 cannot be made slower: this kernel has no netem"):
            lab.client.begin_fault("slow-link", "l1-s1", None, 30.0)
        assert lab.client.faults() == []
    lab.check_health()


def test_a_killed_agent_is_down_until_its_fault_ends(lab: Deployment) -> None:
    process = lab.part("agent h1").process
    fault = lab.client.begin_fault("agent-down", "h1")
    assert process.wait(60) == -9
    eventually(lambda: not next(one for one in lab.client.agents() if one["host"] == "h1")["connected"])
    lab.check()
    assert lab.part("agent h1").process is process, "it is not started again yet"
    lab.client.end_fault(fault["id"])
    eventually(lambda: lab.client.health().agents == 2 and lab.client.health().ready)
    assert (lab.deaths, lab.restarts) == (0, ()), "that was no accident"
    assert lab.part("agent h1").process.pid != process.pid
    transfer_s(lab, PORT + 11)
    lab.kill("agent h1")
    eventually(lambda: lab.client.health().agents == 1)
    lab.check()
    eventually(lambda: lab.complete)  # what was killed by this interface is down on purpose, too
    lab.relaunch("agent h1")
    eventually(lambda: lab.client.health().agents == 2 and lab.client.health().ready)


def test_by_the_command_line(lab: Deployment) -> None:
    def say(*words: str, code: int = 0) -> str:
        answer = CliRunner().invoke(capstan, ["link", *words, "--lab", lab.lab.lab_id])
        assert answer.exit_code == code, answer.output
        return answer.output

    assert "l1-s1: at most 2 Mbit/s" in say("s1-l1", "slow", "2")
    eventually(lambda: rate_of(lab, "l1-s1") == 2000)
    assert "l1-s1: at most 4 Mbit/s" in say("l1-s1", "slow", "4")
    eventually(lambda: rate_of(lab, "l1-s1") == 4000)
    assert "l1-s1: down" in say("l1-s1", "down")
    eventually(lambda: not ask(lab, "GET", "/fabric/paths?from=h1&to=h2")["paths"])
    assert "no longer at most 4 Mbit/s and down" in say("l1-s1", "up")
    assert lab.client.faults() == []
    eventually(lambda: len(ask(lab, "GET", "/fabric/paths?from=h1&to=h2")["paths"]) == 1)
    assert "was up already" in say("l1-s1", "up")
    assert "there is no link 'l1-s7'" in say("l1-s7", "up", code=1)
    assert "goes with `slow` only" in say("l1-s1", "down", "3", code=2)
    assert "say how slow" in say("l1-s1", "slow", code=2)
