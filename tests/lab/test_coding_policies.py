"""Coding policies with real agents: what is on the wire against the equations, and bytes that arrive as they were."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agent_pair import INTERFACE, OVERLAY, AgentPair, end, wait_until
from controller.schemes.loader import load
from controller.schemes.policy import policy_for
from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice, spec_from_dict
from protocol.control import Impair
from protocol.policy import Policy, Weight
from tests.unit.coded_units import UnitWatch
from tests.unit.host_agent.coding.test_coding_policies import equation_5
from tests.waiting import PATIENCE_S

_SPEC = importlib.util.spec_from_file_location(
    "overlay_transfer", Path(__file__).with_name("overlay_transfer.py")
)
assert _SPEC is not None
assert _SPEC.loader is not None
programs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(programs)

PORT = 7000
SAMPLING_S = (5.0, 10.0, 20.0, 40.0, 60.0)
"""The first in which a whole transfer goes is what the machine needs; 60 s is the longest that there may be."""
UDP_AND_IP_BYTES = 28
WATCH = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)
tap.bind((sys.argv[1], 0))
print("watching", flush=True)
with open(sys.argv[2], "wb") as file:
    while True:
        packet, (_, protocol, kind, *_) = tap.recvfrom(1 << 16)
        if kind == socket.PACKET_OUTGOING and protocol == 0x0800 and packet[9] == 17:
            file.write(len(packet).to_bytes(4, "big") + packet)
            file.flush()
"""
ANNOUNCE_AND_SEND = """
import socket, sys
from workloads.announce import announce
address, port, announced, total = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
connection.bind(("", int(sys.argv[5])))
connection.connect((address, port))
assert announce(connection.getsockname(), (address, port), announced), "no agent listens"
connection.sendall(bytes(total))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def policy(scheme: str, version: int, **changes: Any) -> Policy:
    chosen = policy_for(load(scheme), 0.0006, version)
    assert chosen.short.coding is not None
    assert chosen.long.coding is not None
    return replace(
        chosen,
        short=replace(chosen.short, coding=replace(chosen.short.coding, **changes)),
        long=replace(chosen.long, coding=replace(chosen.long.coding, **changes)),
    )


def listening(pair: AgentPair, port: int) -> subprocess.Popen[str]:
    """Start a receiver, and return it when it is ready."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    receiver = pair.popen(1, [sys.executable, "-S", "-c", programs.RECEIVE, str(port)], **options)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    return receiver


def send(pair: AgentPair, receiver: subprocess.Popen[str], size: int, port: int) -> None:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    sender = pair.popen(
        0, [sys.executable, "-S", "-c", programs.SEND, OVERLAY[1], str(port), str(size), "0"], **options
    )
    out, err = sender.communicate(timeout=PATIENCE_S)
    assert sender.returncode == 0, err
    assert out.split()[-2:] == receiver.communicate(timeout=PATIENCE_S)[0].split()[-2:]


def transfer(pair: AgentPair, size: int, port: int) -> None:
    send(pair, listening(pair, port), size, port)


def repairs_of(pair: AgentPair, port: int) -> int:
    """Return how many repairs host 0 has sent for the transfer to that port."""
    (repairs,) = [
        flow.repairs
        for flow in pair.server.report(True, 60.0).hosts["h1"]
        if flow.side == "sender" and flow.destination_port == port
    ]
    return repairs


class Tap:
    """Writes down what host 0 puts on the wire, from now on."""

    def __init__(self, pair: AgentPair, name: str) -> None:
        self._file = pair.directory / name
        command = [sys.executable, "-S", "-c", WATCH, INTERFACE, str(self._file)]
        self._process = pair.popen(0, command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert "watching" in self._process.stdout.readline()

    def seen(self, port: int, repairs: int) -> UnitWatch:
        """Wait until it has so many repairs of units of flows to a port; return what it has of all flows."""
        seen = UnitWatch()

        def all_seen() -> bool:
            nonlocal seen
            seen, data, at = UnitWatch(), self._file.read_bytes(), 0
            while len(data) >= (end_of := at + 4 + int.from_bytes(data[at : at + 4], "big")) > at + 4:
                seen.see(data[at + 4 + UDP_AND_IP_BYTES : end_of])
                at = end_of
            return sum(len(unit.indices) for unit in seen.units(port, whole=False)) == repairs

        wait_until(all_seen, 60, lambda: "the agent counts as many repairs as are on the wire")
        self.end()
        return seen

    def end(self) -> None:
        end(self._process)


def test_repairs_on_the_wire_are_those_of_the_equations() -> None:
    weight = Weight(full_bytes=100_000, none_bytes=1_000_000, fast_retransmit=3)

    # This estimator, for a transfer moves it at will: the share of late ACKs says next to nothing of what gets lost.
    def htpc(version: int, sampling_s: float) -> Policy:
        return policy("htpc", version, sampling_s=sampling_s, weight=weight, estimator="loss-rate")

    with AgentPair(htpc(1, SAMPLING_S[0])) as pair:

        def loss_rate() -> float:
            return pair.counters(0).get("blocking_probability.h2", 0.1)

        def next_loss_rate() -> float:
            """Return the loss rate that the agent reports after now."""
            before = pair.counters(0)
            wait_until(lambda: pair.counters(0) is not before, 60, lambda: "the agent reports its counters")
            return loss_rate()

        for attempt, sampling_s in enumerate(SAMPLING_S, 1):  # a busy machine takes longer over some
            if attempt > 1:
                pair.set_policy(htpc(attempt, sampling_s))
            # a sampling time ends, and the transfer that is measured is over before the next one does
            tap, receiver = Tap(pair, f"htpc{attempt}"), listening(pair, PORT)
            pair.server.impair("h2", Impair(0.2), 60.0)
            before = loss_rate()
            while (
                loss_rate() == before or not 0.15 < loss_rate() < 0.25
            ):  # a fifth of all datagrams gets lost
                transfer(pair, 100_000, PORT - 1)
            p = loss_rate()
            pair.server.impair("h2", Impair(), 60.0)
            send(pair, receiver, 1_200_000, PORT)
            repairs = repairs_of(pair, PORT)
            if next_loss_rate() == p:
                break
            tap.end()
        else:
            pytest.fail(f"no transfer went within a sampling time, {SAMPLING_S[-1]:g} s the last one")
        seen = tap.seen(PORT, repairs)
        units = seen.units(PORT)
        sources = seen.sources(units[0].flow)
        covered: set[int] = set()
        for unit in units:
            # what the counter says is rounded; the window is inside the agent, and counts for long flows only
            windows = (unit.k, *range(unit.k + 1, 1000 if unit.before > weight.full_bytes else unit.k + 1))
            bounds = (Fraction(round(p * 10_000) * 2 + half, 20_000) for half in (-1, 1))
            allowed = {
                equation_5(unit.k, bound, weight, unit.before, window)
                for bound in bounds
                for window in windows
            }
            assert unit.r in allowed, (unit, p)
            if unit.before <= weight.full_bytes:
                assert max(allowed) - min(allowed) <= 1
            covered |= set(range(unit.position, unit.position + unit.k))
        short = [unit for unit in units if unit.before <= weight.full_bytes]
        assert len(short) >= 3
        for unit in units:
            assert unit.before < weight.none_bytes or unit.k < 5, (
                "only tiny windows of long flows have repairs"
            )
        assert covered.issuperset(range(short[-1].position)), "units follow each other without a gap"
        assert len(covered) < sources

        pair.set_policy(policy("corrective", len(SAMPLING_S) + 1))
        tap = Tap(pair, "corrective")
        transfer(pair, 1_500_000, PORT + 1)
        units = tap.seen(PORT + 1, repairs_of(pair, PORT + 1)).units(PORT + 1)
        assert {(unit.code, unit.r) for unit in units} == {(1, 1)}
        assert sum(unit.k for unit in units) == 1 + max(unit.position + unit.k - 1 for unit in units)
        assert max(unit.k for unit in units) > 10, "windows grow"


def test_adaptive_redundancy_reaches_its_target_although_the_estimate_is_wrong() -> None:
    """There are no path stamps on a bare link, so pB stays at its prior of 0.1 while 0.2 gets lost."""
    chosen = policy_for(load("caps-adaptive"), 0.0006, 1)
    assert chosen.short.coding is not None
    coding = replace(chosen.short.coding, target_decode_probability=0.9, max_k=8, max_overhead=2.0)
    chosen = replace(chosen, short_limit_bytes=1 << 40, short=replace(chosen.short, coding=coding))
    with AgentPair(chosen) as pair:
        pair.server.impair("h2", Impair(0.2), 60.0)
        transfer(pair, 2_000_000, PORT)

        def reported(name: str) -> float:
            return pair.counters(0).get(name, 0)

        def decided() -> float:
            return reported("units_in_time") + reported("units_not_in_time")

        wait_until(lambda: decided() > 200, 60, lambda: f"units are decided: {pair.counters(0)}")
        assert reported("blocking_probability.h2") == 0.1
        assert 0.8 < reported("units_in_time") / decided() < 0.98, "0.9, of some 200 units"


def deployment(scheme: str) -> Deployment:
    flows = {
        "count": 1,
        "sizes": {"kind": "fixed", "bytes": 1000},
        "arrivals": {"kind": "poisson", "rate_per_s": 1},
        "pattern": "left-to-right",
    }
    return Deployment(
        spec_from_dict(
            {
                "name": "test",
                "title": "test",
                "fabric": {
                    "leaves": 2,
                    "spines": 4,
                    "hosts_per_leaf": 1,
                    "link": {"buffer_packets": 1000, "rate_mbps": 100},
                    "access": {},
                },
                "schemes": [scheme],
                "workload": {"flows": flows},
            }
        )
    )


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    with deployment("htpc") as one:
        yield one


def start(lab: Deployment, host: str, program: str, *arguments: object) -> subprocess.Popen[str]:
    return lab.lab.popen(
        host,
        [sys.executable, "-S", "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )


@pytest.mark.parametrize(
    ("scheme", "port"),
    [("htpc", 7010), ("corrective", 7011), ("caps-adaptive", 7012), ("caps-dark", 7013)],
)
def test_bytes_arrive_as_they_were_through_loss_and_reordering(
    lab: Deployment, scheme: str, port: int
) -> None:
    lab.set_scheme(SchemeChoice(scheme, scheme))
    lab.client.report_flows(forget=True)
    lab.client.impair("h2", loss=0.02, reorder=0.3, reorder_delay_s=0.002)
    try:
        receiver = start(lab, "h2", programs.RECEIVE, port)
        assert receiver.stdout is not None
        assert "listening" in receiver.stdout.readline()
        sender = start(lab, "h1", programs.SEND, "10.128.2.1", port, 4_000_000, 0)
        out, err = sender.communicate(timeout=PATIENCE_S)
        assert sender.returncode == 0, err
        assert out.split()[-2:] == receiver.communicate(timeout=PATIENCE_S)[0].split()[-2:]
    finally:
        lab.client.impair("h2")
    (flow,) = [
        one
        for one in lab.client.report_flows(forget=True)["h2"]
        if one["side"] == "receiver" and one["destination_port"] == port
    ]
    assert flow["repairs"] > 0
    assert flow["recovered"] > 0
    assert len(flow["paths"]) == 4


def test_announced_sizes_decide_the_class_where_the_scheme_believes_them(lab: Deployment) -> None:
    sink = start(lab, "h2", programs.DISCARD, PORT + 2)
    assert sink.stdout is not None
    assert "listening" in sink.stdout.readline()
    found = {}
    for scheme in ("caps", "caps-dark"):
        lab.set_scheme(SchemeChoice(scheme, scheme))
        for source_port, size in ((20_001, 10_000_000), (20_002, 60_000)):
            client = start(lab, "h1", ANNOUNCE_AND_SEND, "10.128.2.1", PORT + 2, size, 60_000, source_port)
            out, err = client.communicate(timeout=PATIENCE_S)
            assert client.returncode == 0, out + err
        for flow in lab.client.report_flows(forget=True)["h1"]:
            if flow["side"] == "sender" and flow["source_port"] in (20_001, 20_002):
                found[scheme, flow["source_port"]] = flow["traffic_class"]
    sink.kill()
    sink.wait()
    assert found == {
        ("caps", 20_001): "long",
        ("caps", 20_002): "short",
        ("caps-dark", 20_001): "short",
        ("caps-dark", 20_002): "short",
    }
