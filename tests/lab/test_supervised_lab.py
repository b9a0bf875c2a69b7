"""A lab whose parts are killed: each comes back, connections live, and what is down on purpose stays down."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from experiments.run.deployment import Deployment
from experiments.run.parts import DeploymentError
from tests.lab.test_openflow_takeover import held, wait_whole
from tests.lab.test_schemes_on_switches import PORT, RECEIVER, deployment, fabric, programs, start
from tests.waiting import PATIENCE_S, eventually


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    with deployment(fabric(2, rate=50.0), "caps") as made:
        yield made


def transfer(lab: Deployment, port: int) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Start a TCP connection from h1 to h2 that carries bytes until a line on its sender's standard input."""
    receiver = start(lab, "h2", programs.RECEIVE, port)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    sender = start(lab, "h1", programs.SEND, RECEIVER, port, 0, 200_000)
    assert sender.stdout is not None
    assert "connected" in sender.stdout.readline()
    return sender, receiver


def end(sender: subprocess.Popen[str], receiver: subprocess.Popen[str]) -> None:
    """End the transfer; assert that it ends in order, with equal bytes."""
    said, _ = sender.communicate("end\n", timeout=PATIENCE_S)
    assert sender.returncode == 0, said
    received, _ = receiver.communicate(timeout=PATIENCE_S)
    assert receiver.returncode == 0
    assert said.split() == received.split()
    assert int(said.split()[1]) > 0


def syn_sent(lab: Deployment, host: str) -> bool:
    """Return whether a host waits for the answer to a SYN."""
    show = lab.lab.popen(host, ["ss", "-Htn", "state", "syn-sent"], stdout=subprocess.PIPE, text=True)
    return bool(show.communicate(timeout=PATIENCE_S)[0].strip())


def kill(lab: Deployment, process: subprocess.Popen[bytes] | None, restarts: int) -> None:
    """Kill a part, and wait until all is whole again."""
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: len(lab.restarts) == restarts, lambda: (lab.restarts, lab.deaths))
    eventually(lambda: lab.complete)
    wait_whole(lab)
    lab.check()


def test_a_killed_agent_comes_back_and_its_hosts_connections_live(lab: Deployment) -> None:
    sender, receiver = transfer(lab, PORT + 30)
    for host in ("h1", "h2"):
        before = len(lab.restarts)
        kill(lab, lab.part(f"agent {host}").newest, before + 1)
        assert lab.restarts[-1].words.startswith(
            f"agent {host} ended (signal 9) and was started again after "
        )
    end(sender, receiver)


def test_a_connection_that_begins_while_its_agent_is_away_waits_for_the_next_one(lab: Deployment) -> None:
    receiver = start(lab, "h2", programs.RECEIVE, PORT + 34)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    lab.kill("agent h1")
    eventually(lambda: lab.client.health().agents == 1)
    sender = start(lab, "h1", programs.SEND, RECEIVER, PORT + 34, 0, 200_000)
    eventually(lambda: syn_sent(lab, "h1"), "the SYN has gone nowhere")
    lab.relaunch("agent h1")
    assert sender.stdout is not None
    assert "connected" in sender.stdout.readline()
    wait_whole(lab)
    end(sender, receiver)


def test_a_killed_controller_comes_back_where_it_was_with_what_was_in_force(lab: Deployment) -> None:
    sender, receiver = transfer(lab, PORT + 31)
    lab.client.set_scheme("rps", packet_time_s=0.004, overrides={"short_limit_bytes": 50_000})
    url, before = lab.client.url, lab.client.scheme()
    kill(lab, lab.part("controller").newest, len(lab.restarts) + 1)
    after = lab.client.scheme()
    assert lab.client.url == url
    for name in ("base", "scheme", "overrides", "packet_time_us"):
        assert after[name] == before[name]
    eventually(
        lambda: any(
            (one["kind"], one.get("part"), one.get("how")) == ("part-restarted", "controller", "signal 9")
            for one in lab.client.events()[0]
        )
    )
    end(sender, receiver)


@pytest.mark.parametrize("switch", ["s1", "l1"])
def test_a_killed_switch_comes_back_with_ports_queues_and_state(lab: Deployment, switch: str) -> None:
    lab.client.set_scheme("pias", packet_time_s=lab.spec.packet_time_s)
    eventually(lambda: all(one["in_force"] for one in lab.client.queues()["switches"]))
    whole, ports = held(lab, switch), lab.lab.switch(switch).vsctl("list-ports", switch)
    assert len(whole[0]) > 10
    sender, receiver = transfer(lab, PORT + 32)
    kill(lab, lab.lab.switch(switch).daemon, len(lab.restarts) + 1)
    eventually(lambda: held(lab, switch) == whole, f"{switch} has its state back")
    assert lab.lab.switch(switch).vsctl("list-ports", switch) == ports
    eventually(lambda: all(one["in_force"] for one in lab.client.queues()["switches"]))
    end(sender, receiver)


def test_a_killed_database_comes_back_and_the_switch_goes_on(lab: Deployment) -> None:
    sender, receiver = transfer(lab, PORT + 33)
    switch = lab.lab.switch("l1")
    daemon = switch.daemon
    kill(lab, switch.database_server, len(lab.restarts) + 1)
    assert switch.daemon is daemon
    switch.vsctl("set", "open_vswitch", ".", "external_ids:seen=yes")  # returns once ovs-vswitchd has it
    end(sender, receiver)


def test_both_daemons_of_a_switch_at_once(lab: Deployment) -> None:
    switch, before = lab.lab.switch("s2"), len(lab.restarts)
    whole = held(lab, "s2")
    assert switch.database_server is not None
    os.kill(switch.database_server.pid, signal.SIGKILL)
    kill(lab, switch.daemon, before + 2)
    eventually(lambda: held(lab, "s2") == whole)


def test_a_database_that_dies_while_its_switch_starts(lab: Deployment) -> None:
    switch, before = lab.lab.switch("s2"), len(lab.restarts)
    whole, daemon = held(lab, "s2"), switch.daemon
    assert daemon is not None
    assert switch.database_server is not None
    os.kill(daemon.pid, signal.SIGKILL)
    eventually(lambda: switch.daemon is not daemon)
    os.kill(switch.database_server.pid, signal.SIGKILL)
    both = {"ovs-vswitchd of s2", "ovsdb-server of s2"}
    eventually(
        lambda: {restart.part for restart in lab.restarts[before:]} == both,
        lambda: (lab.restarts[before:], lab.deaths),
    )
    eventually(lambda: lab.complete)
    wait_whole(lab)
    lab.check()
    eventually(lambda: held(lab, "s2") == whole)


def test_what_is_down_on_purpose_stays_down(lab: Deployment) -> None:
    before = len(lab.restarts)
    lab.lab.kill_switch("s1")
    lab.kill("agent h1")
    killed = lab.part("agent h1").newest
    agent = lab.part("agent h2").newest
    fault = lab.client.begin_fault("agent-down", "h2")
    assert agent is not None
    agent.wait(60)
    kill_one = lab.lab.switch("s2").database_server
    assert kill_one is not None
    os.kill(kill_one.pid, signal.SIGKILL)
    eventually(lambda: len(lab.restarts) == before + 1)
    eventually(lambda: lab.complete)
    assert lab.lab.switch("s1").daemon is None
    assert lab.part("agent h1").newest is killed
    assert lab.part("agent h2").newest is agent
    lab.check()
    lab.lab.restart_switch("s1")
    lab.relaunch("agent h1")
    lab.client.end_fault(fault["id"])
    wait_whole(lab)
    assert len(lab.restarts) == before + 1, "nothing of this was an accident"
    kill(lab, lab.lab.switch("s1").daemon, before + 2)
    kill(lab, lab.part("agent h1").newest, before + 3)


def test_a_part_that_ends_again_and_again_ends_the_lab() -> None:
    with deployment(fabric(1, rate=50.0), "ecmp") as lab:
        part = lab.part("agent h2")
        part.argv.append("--no-such-option")
        assert part.newest is not None
        os.kill(part.newest.pid, signal.SIGKILL)

        def failed() -> str:
            try:
                lab.check()
            except DeploymentError as error:
                return str(error)
            return ""

        said = eventually(failed)
        assert "agent h2 ended 5 times within" in said
        assert "exit code 2" in said
        assert "No such option" in said
