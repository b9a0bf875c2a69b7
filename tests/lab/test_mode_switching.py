"""Modes of real leaves: what turns them, what does not, and what the controller says of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.mode import Passage, mode_traces, start_process
from controller.modes.monitor import ModeMonitor
from controller.schemes import loader
from experiments.run.deployment import Deployment
from experiments.spec.spec import spec_from_dict
from protocol.underlay import TrafficClass
from tests.waiting import PATIENCE_S, eventually

LINK_MBPS = 0.5
"""So slow that T is 150 ms: a machine that is late by some tens does not turn modes."""
UPLINKS = 4
CYCLES = 5
LONG_PER_SECOND = 500
JUDGED = 60
"""Long datagrams before each short one; that many miss one of four uplinks once in 10 million times."""


@pytest.fixture(scope="module")
def fabric() -> Iterator[Deployment]:
    spec = spec_from_dict(
        {
            "name": "modes",
            "title": "modes",
            "fabric": {
                "leaves": 2,
                "spines": UPLINKS,
                "hosts_per_leaf": 1,
                "link": {"rate_mbps": LINK_MBPS},
                "access": {},
            },
            "schemes": ["caps"],
            "workload": {
                "flows": {
                    "count": 1,
                    "sizes": {"kind": "fixed", "bytes": 1000},
                    "arrivals": {"kind": "poisson", "rate_per_s": 1},
                    "pattern": "left-to-right",
                }
            },
        }
    )
    with Deployment(spec) as running:
        eventually(lambda: set(running.client.leaf_modes().values()) == {"off"}, "no more probes' modes")
        yield running


def own_changes(fabric: Deployment, cursor: int) -> list[dict[str, Any]]:
    """Return changes of leaf l1's mode since *cursor*; the other leaf, with packets only from above, has none."""
    events, _ = fabric.client.modes(cursor)
    assert {event["leaf"] for event in events} <= {"l1"}
    return [dict(event) for event in events]


def program(fabric: Deployment, host: str | None, *words: object) -> Any:
    argv = [sys.executable, "-m", "benchmarks.mode_traffic", *map(str, words)]
    leaf = str(fabric.lab.switch("l1").pid)
    return start_process(fabric, host, argv if host else ["nsenter", "-t", leaf, "-n", *argv])


def long_stream(fabric: Deployment) -> Any:
    """Start an endless stream of long-class datagrams from h1 to h2; a line on its standard input adds a short one."""
    source, destination = (place.underlay for place in fabric.spec.fabric.hosts())
    return program(fabric, "h1", "send", "h1-eth0", source, destination, LONG_PER_SECOND)


def test_a_short_packet_turns_its_leaf_on_and_silence_turns_it_off(fabric: Deployment) -> None:
    _, cursor = fabric.client.modes()
    observer, sender = program(fabric, None, "observe"), long_stream(fabric)

    def sent() -> int:
        """Return how many packets leaf l1 has sent to spines."""
        return sum(fabric.lab.port_counters(f"l1-s{n}")[0].sent_packets for n in range(1, UPLINKS + 1))

    def wait_until_many_left() -> None:
        enough = sent() + 3 * JUDGED
        eventually(lambda: sent() >= enough, "the stream of long datagrams")

    for cycle in range(CYCLES):
        wait_until_many_left()
        print("short", file=sender.stdin, flush=True)
        eventually(
            lambda cycle=cycle: len(own_changes(fabric, cursor)) == 2 * (cycle + 1), "ON, and OFF again"
        )
    wait_until_many_left()
    sender.communicate(timeout=PATIENCE_S)
    own = own_changes(fabric, cursor)
    assert [event["mode"] for event in own] == ["on", "off"] * CYCLES
    assert {event["cause"] for event in own if event["mode"] == "on"} <= {"first-packet", "meter"}
    assert own[0]["cause"] == "first-packet"
    assert {event["cause"] for event in own if event["mode"] == "off"} == {"quiet"}
    # every change was confirmed by the switch, and traced
    traces = mode_traces(fabric, cursor)
    assert [trace["mode"] for trace in traces] == [event["mode"] for event in own]
    assert all(trace["noticed"] <= trace["sent"] <= trace["confirmed"] for trace in traces)
    # and every change was one in the data plane: while OFF, long datagrams take all uplinks
    seen = [Passage(*entry[:3], TrafficClass(entry[3])) for entry in json.loads(observer.communicate()[0])]
    shorts = [one.at for one in seen if one.kind is TrafficClass.SHORT and not one.leaves]
    assert len(shorts) == CYCLES
    left = [one for one in seen if one.kind is TrafficClass.LONG and one.leaves]
    for begin, end in pairwise([0, *shorts]):
        before = [one.port for one in left if begin < one.at < end]
        assert len(before) >= JUDGED
        assert len(set(before[-JUDGED:])) == UPLINKS, (
            f"ON long after the last short packet: {before[-JUDGED:]}"
        )


def test_a_trickle_of_short_packets_keeps_a_leaf_on(fabric: Deployment) -> None:
    """For ten times T. Where the machine holds single packets back for longer than T, another time is tried."""
    rule = loader.load("caps").mode
    assert rule is not None
    t_s = ModeMonitor(rule, fabric.spec.packet_time_s).sampling_time_s
    assert t_s == pytest.approx(0.15)
    sender = long_stream(fabric)
    tried = []
    while ["on"] not in tried:
        assert len(tried) < 8, tried
        eventually(lambda: fabric.client.leaf_modes()["l1"] == "off")
        _, cursor = fabric.client.modes()
        begin = time.monotonic()
        while time.monotonic() - begin < 10 * t_s:
            print("short", file=sender.stdin, flush=True)
            time.sleep(t_s / 10)
        tried.append([event["mode"] for event in own_changes(fabric, cursor)])
        assert tried[-1] == ["on", "off"] * (len(tried[-1]) // 2) + ["on"] * (len(tried[-1]) % 2)
    sender.communicate(timeout=PATIENCE_S)
