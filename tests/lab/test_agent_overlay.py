"""Unchanged programs over two real agents on a real link: ping, curl, iperf3, redis, IPv4 and IPv6, and bad weather."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.agent_pair import OVERLAY, OVERLAY6, UNDERLAY, AgentPair, simple_policy, wait_until
from protocol.control import Impair
from protocol.policy import CodingPolicy

PLAIN = simple_policy(1)
CODED = simple_policy(1, coding=CodingPolicy(max_overhead=8.0), release_s=0.02, short_limit_bytes=1 << 40)
FAMILIES = pytest.mark.parametrize("address", [OVERLAY[1], OVERLAY6[1]], ids=["v4", "v6"])
SENDER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7000), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listening", flush=True)
connection, _ = listener.accept()
with open(sys.argv[2], "rb") as file:
    connection.sendfile(file)
connection.close()
"""
RECEIVER = """
import hashlib, socket, sys
digest = hashlib.sha256()
connection = socket.create_connection((sys.argv[1], 7000), 60)
connection.settimeout(60)
while data := connection.recv(1 << 16):
    digest.update(data)
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[AgentPair]:
    with AgentPair(PLAIN) as one:
        yield one


def ended(pair: AgentPair, host: int, by: signal.Signals) -> int:
    """End a host's agent by a signal; its exit code."""
    agent = pair.agents[host]
    assert agent is not None
    agent.send_signal(by)
    return agent.wait(60)


def replies(pair: AgentPair, address: str) -> int:
    """Return how many answers to pings have come to host 0, by its kernel."""
    if ":" in address:
        lines = pair.run(0, ["cat", "/proc/net/snmp6"]).splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Icmp6InEchoReplies ")))
    lines = [line.split() for line in pair.run(0, ["cat", "/proc/net/snmp"]).splitlines()]
    names, values = (line for line in lines if line[0] == "Icmp:")
    return int(values[names.index("InEchoReps")])


def all_are_answered(pair: AgentPair, address: str, count: int, *options: str) -> None:
    """Ping so many times: all answers come, once each. (ping itself waits for the last one but two round trips.)"""
    before = replies(pair, address)
    said = pair.run(0, ["ping", "-c", str(count), "-W", "60", *options, address], check=False)
    wait_until(lambda: replies(pair, address) >= before + count, 60, lambda: f"all answers; {said}")
    assert replies(pair, address) == before + count, said


@FAMILIES
def test_ping(pair: AgentPair, address: str) -> None:
    all_are_answered(pair, address, 20, "-i", "0.01")


@FAMILIES
def test_large_packets_are_fragmented_by_the_host_and_arrive(pair: AgentPair, address: str) -> None:
    all_are_answered(pair, address, 3, "-i", "0.05", "-s", "8000")


@FAMILIES
def test_large_udp_datagrams_arrive_whole(pair: AgentPair, address: str) -> None:
    family = "AF_INET6" if ":" in address else "AF_INET"
    echo = f"""
import socket
one = socket.socket(socket.{family}, socket.SOCK_DGRAM)
one.bind(({address!r}, 7001))
print("listening", flush=True)
while True:
    data, peer = one.recvfrom(65535)
    one.sendto(data[::-1], peer)
"""
    ask = f"""
import socket
one = socket.socket(socket.{family}, socket.SOCK_DGRAM)
one.settimeout(60)
for size in (1, 1000, 1398, 1399, 3000, 9000, 30000):
    data = bytes(index * 7 % 251 for index in range(size))
    one.sendto(data, ({address!r}, 7001))
    assert one.recv(65535) == data[::-1], size
print("all")
"""
    server = pair.popen(1, [sys.executable, "-S", "-c", echo], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "listening\n"
        assert pair.run(0, [sys.executable, "-S", "-c", ask]) == "all\n"
    finally:
        server.kill()
        server.wait()


@FAMILIES
def test_curl(pair: AgentPair, address: str, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(content)
    server = pair.popen(
        1,
        [sys.executable, "-m", "http.server", "8000", "--bind", address, "--directory", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    host = f"[{address}]" if ":" in address else address
    try:
        pair.run(
            0,
            ["curl", "-sS", "--fail", "--globoff", "--noproxy", "*", "--retry", "20", "--retry-connrefused",
             "--retry-delay", "1", "-o", str(tmp_path / "got"), f"http://{host}:8000/file"],
        )  # fmt: skip
    finally:
        server.kill()
        server.wait()
    assert (tmp_path / "got").read_bytes() == content


@FAMILIES
def test_iperf3_both_ways(pair: AgentPair, address: str) -> None:
    for direction in ((), ("-R",)):
        server = pair.popen(1, ["iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL)
        wait_until(lambda: ":5201" in pair.run(1, ["ss", "-Hltn"]), 60, lambda: "iperf3 listens")
        argv = ["iperf3", "-c", address, "-n", "5M", "-C", "cubic", "-J", *direction]
        report = json.loads(pair.run(0, argv))
        assert report["end"]["sum_sent"]["bytes"] >= 5_000_000
        assert report["end"]["sum_received"]["bytes"] > 0
        server.wait(60)


def test_redis(pair: AgentPair) -> None:
    server = pair.popen(
        1,
        ["redis-server", "--port", "6399", "--bind", OVERLAY[1], OVERLAY6[1], "--save", "", "--protected-mode", "no",
         "--dir", str(pair.directory)],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip

    def ask(address: str, *words: str) -> str:
        return pair.run(0, ["redis-cli", "-h", address, "-p", "6399", *words], check=False).strip()

    try:
        wait_until(lambda: ask(OVERLAY[1], "ping") == "PONG", 60, lambda: "redis answers")
        assert ask(OVERLAY[1], "set", "key", "v" * 5000) == "OK"
        assert ask(OVERLAY6[1], "get", "key") == "v" * 5000
        pair.run(
            0,
            [
                "redis-benchmark",
                "-h",
                OVERLAY[1],
                "-p",
                "6399",
                "-q",
                "-n",
                "2000",
                "-c",
                "8",
                "-t",
                "set,get",
            ],
        )
    finally:
        server.terminate()
        server.wait(60)


def test_unknown_hosts_and_groups(pair: AgentPair) -> None:
    said = pair.run(0, ["ping", "-c", "1", "-W", "60", "10.128.200.1"], check=False)
    assert "Destination Host Unreachable" in said
    pair.run(0, ["ping", "-c", "1", "-W", "1", "224.0.0.1"], check=False)
    pair.run(0, ["ping", "-b", "-c", "1", "-W", "1", "10.255.255.255"], check=False)
    wait_until(
        lambda: pair.counters(0).get("dropped_group_address", 0) >= 1, 60, lambda: "group packets are counted"
    )


def test_foreign_datagrams_do_no_harm(pair: AgentPair) -> None:
    before = pair.counters(1)
    junk = f"""
import os, random, socket
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in (0, 1, 31, 32, 100, 1400) * 20:
    one.sendto(os.urandom(size), ({UNDERLAY[1]!r}, 47000 + random.randrange(64)))
    one.sendto(b"\\xca\\x11" + os.urandom(size), ({UNDERLAY[1]!r}, 47000))
"""
    pair.run(0, [sys.executable, "-S", "-c", junk])

    def dropped() -> bool:
        now = pair.counters(1)
        names = ("dropped_foreign", "dropped_truncated", "dropped_crc", "dropped_version", "dropped_kind")
        return sum(now.get(name, 0) - before.get(name, 0) for name in names) >= 230

    wait_until(dropped, 60, lambda: f"all are counted: {pair.counters(1)}")
    all_are_answered(pair, OVERLAY[1], 3, "-i", "0.05")


def transfer(
    pair: AgentPair, address: str, megabytes: int, between: Callable[[], None] | None = None
) -> None:
    """Send a file from host 1 to host 0; assert that it arrives as it was. *between* happens on the way."""
    content = os.urandom(megabytes << 20)
    path = pair.directory / "content"
    path.write_bytes(content)
    server = pair.popen(
        1, [sys.executable, "-S", "-c", SENDER, address, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout.readline() == "listening\n"
        client = pair.popen(
            0,
            [sys.executable, "-S", "-c", RECEIVER, address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if between is not None:
            time.sleep(0.1)
            between()
        said, errors = client.communicate(timeout=90)
        assert said.strip() == hashlib.sha256(content).hexdigest(), errors
    finally:
        server.kill()
        server.wait()


@FAMILIES
@pytest.mark.parametrize("options", [(), ("--no-offloads",)], ids=["super-packets", "plain"])
@pytest.mark.parametrize("chosen", [PLAIN, CODED], ids=["plain", "coded"])
def test_bytes_are_equal_under_forced_loss_and_reordering(
    address: str, options: tuple[str, ...], chosen: object
) -> None:
    assert chosen in (PLAIN, CODED)
    with AgentPair(CODED if chosen is CODED else PLAIN, options=options) as pair:
        for host in ("h1", "h2"):
            pair.server.impair(host, Impair(0.01, 0.2, 0.004, 0.05, 0.005), 60.0)
        transfer(pair, address, 3)
        wanted = ["dropped_replayed", "dropped_crc"] + (["packets_recovered"] if chosen is CODED else [])
        wait_until(
            lambda: all(pair.counters(0).get(name, 0) > 0 for name in wanted),
            60,
            lambda: f"all of {wanted} are counted: {pair.counters(0)}",
        )


def test_agents_of_both_kinds_understand_each_other() -> None:
    """One hands over packets with unfinished checksums, the other has to finish them."""
    with AgentPair(PLAIN) as pair:
        assert ended(pair, 0, signal.SIGTERM) == 0
        pair.start_agent(0, ["--no-offloads"])
        pair.wait_ready()
        transfer(pair, OVERLAY[1], 5)
        transfer(pair, OVERLAY6[1], 5)


def test_connections_survive_restarts_and_changes_of_policy() -> None:
    with AgentPair(PLAIN) as pair:

        def disturb() -> None:
            pair.set_policy(
                simple_policy(
                    2, coding=CodingPolicy(max_overhead=8.0), release_s=0.02, short_limit_bytes=1 << 40
                )
            )
            ended(pair, 1, signal.SIGKILL)
            pair.start_agent(1)
            pair.set_policy(simple_policy(3, release_s=0.02))
            pair.server.stop()
            assert ended(pair, 0, signal.SIGTERM) == 0
            pair.start_agent(0)
            pair.start_server()
            pair.set_policy(simple_policy(4))

        transfer(pair, OVERLAY[1], 60, disturb)
        assert pair.server.agents()[0].policy_version == 4


def test_an_agent_that_is_asked_to_end_leaves_nothing_behind() -> None:
    with AgentPair(PLAIN) as pair:
        assert "capstan0" in pair.run(0, ["ip", "-o", "link"])
        agent = pair.agents[0]
        assert agent is not None
        agent.send_signal(signal.SIGINT)
        assert agent.wait(60) == 0
        assert "capstan0" not in pair.run(0, ["ip", "-o", "link"])
        assert "Traceback" not in pair.log(0)
        ended(pair, 1, signal.SIGKILL)
        assert "capstan0" not in pair.run(1, ["ip", "-o", "link"])


def test_the_controller_is_not_needed_to_carry_packets() -> None:
    with AgentPair(PLAIN) as pair:
        pair.server.stop()
        all_are_answered(pair, OVERLAY[1], 5, "-i", "0.1")
        pair.start_server()
        wait_until(
            lambda: sum(one.connected for one in pair.server.agents()) == 2, 60, lambda: "both came back"
        )
