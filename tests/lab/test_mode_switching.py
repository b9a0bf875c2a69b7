"""Modes of real leaves: what turns them, what does not, and what the controller says of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from benchmarks.mode import _start, _traces, evaluate, traffic
from experiments.deployment import Deployment
from experiments.spec import spec_from_dict
from protocol.underlay import TrafficClass

T_MS = 25.0
"""Sampling time of scheme caps at 3 Mbit/s."""


@pytest.fixture(scope="module")
def fabric() -> Iterator[Deployment]:
    spec = spec_from_dict(
        {
            "name": "modes",
            "title": "modes",
            "fabric": {
                "leaves": 2,
                "spines": 4,
                "hosts_per_leaf": 1,
                "link": {"rate_mbps": 3.0},
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
        time.sleep(0.5)  # the last of the probes' modes
        yield running


def test_a_short_packet_turns_its_leaf_on_and_silence_turns_it_off(fabric: Deployment) -> None:
    _, cursor = fabric.client.modes()
    passages = traffic(fabric, 10, T_MS)
    time.sleep(0.5)
    events, _ = fabric.client.modes(cursor)
    own = [event for event in events if event["leaf"] == "l1"]
    # (a machine that is too busy may let two short packets pass for one)
    assert 8 <= len(own) // 2 <= 11
    assert [event["mode"] for event in own] == ["on", "off"] * (len(own) // 2)
    assert {event["cause"] for event in own if event["mode"] == "on"} <= {"first-packet", "meter"}
    assert own[0]["cause"] == "first-packet"
    assert {event["cause"] for event in own if event["mode"] == "off"} == {"quiet"}
    # l2 got the same packets from above, and none from its own hosts
    assert [event for event in events if event["leaf"] == "l2"] == []
    # every change was confirmed by the switch, and traced
    traces = _traces(fabric, cursor)
    assert [trace["mode"] for trace in traces] == [event["mode"] for event in own]
    assert all(trace["noticed"] <= trace["sent"] <= trace["confirmed"] for trace in traces)
    # and every change was one in the data plane
    uplinks = {one.port for one in passages if one.leaves and one.kind is TrafficClass.LONG}
    assert len(uplinks) == 4
    starts = [one.at for one in passages if one.kind is TrafficClass.SHORT and not one.leaves]
    for start, end in pairwise(starts):
        ports = Counter(
            one.port
            for one in passages
            if one.leaves and one.kind is TrafficClass.LONG and end - 20_000_000 <= one.at < end
        )
        assert len(ports) == 4, f"still ON {(end - start) / 1e6:.0f} ms after the last short packet"
    assert len(evaluate(passages, T_MS)) >= 5


def test_a_trickle_of_short_packets_keeps_a_leaf_on(fabric: Deployment) -> None:
    source, destination = (place.underlay for place in fabric.spec.fabric.hosts())
    program = ["python3", "-m", "benchmarks.mode_traffic"]
    time.sleep(0.5)
    _, cursor = fabric.client.modes()
    sender = _start(fabric, "h1", [*program, "send", "h1-eth0", source, destination, "200"])
    begin = time.monotonic()
    longest = sent = 0.0
    while time.monotonic() - begin < 3.0:
        print("short", file=sender.stdin, flush=True)
        longest, sent = max(longest, time.monotonic() - (sent or begin)), time.monotonic()
        time.sleep(0.012)
    events, _ = fabric.client.modes(cursor)
    sender.communicate(timeout=60)
    modes = [event["mode"] for event in events if event["leaf"] == "l1"]
    if longest < T_MS / 1e3 - 0.005:
        assert modes == ["on"]
    else:  # we were kept waiting; it may have turned off, but not have flapped
        assert len(modes) <= 5
