"""Freeway on real switches: short and long flows on paths of their own, split by what the meters say."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from experiments.run.deployment import Deployment
from tests.lab.test_schemes_on_switches import (
    PORT,
    RECEIVER,
    deployment,
    fabric,
    programs,
    received,
    said,
    start,
)
from tests.waiting import eventually

PATHS = 4
RATE_MBPS = 20.0
QUIET_S = 2.0
"""A split that is this old is the only one packets know: three times what a full buffer takes (0.6 s)."""
WINDOW_S = 0.7
LONG_PACKETS = 50
"""Of each long flow, at least so many datagrams are looked at."""
PACED_RATE = 80_000
"""Bytes a second of the flow that pauses: 64 KB at a time."""
SHORT_FLOWS = 10

Flow = tuple[int, int]
"""Source and destination port."""


@dataclass
class Seen:
    """What h2 received while one split lasted: the paths of each flow's datagrams, by the class that they came in."""

    split: dict[str, Any]
    paths: dict[str, dict[Flow, dict[int, int]]] = field(default_factory=dict)

    def add(self, flow: dict[str, Any]) -> None:
        for kind, paths in flow["paths_by_class"].items():
            known = self.paths.setdefault(kind, {}).setdefault(
                (flow["source_port"], flow["destination_port"]), {}
            )
            for stamp, count in paths.items():
                known[int(stamp)] = known.get(int(stamp), 0) + count

    def enough(self, senders: int) -> bool:
        """Return whether all long flows were reported, control packets of one of them, and short flows."""
        short, long, control = (self.paths.get(kind, {}) for kind in ("short", "long", "control"))
        reported = sum(sum(paths.values()) >= LONG_PACKETS for paths in long.values())
        return reported >= senders and bool(long.keys() & control.keys()) and len(short) >= SHORT_FLOWS

    def check(self) -> None:
        """Assert that each flow keeps to one path in each class, and each class to its own paths."""
        for kind, own in (("short", "low_latency"), ("control", "low_latency"), ("long", "throughput")):
            for flow, paths in self.paths.get(kind, {}).items():
                assert len(paths) == 1, f"{kind} datagrams of {flow} took {paths}: {self}"
                assert set(paths) <= set(self.split[own]), f"{kind} datagrams of {flow} took {paths}: {self}"


def events(lab: Deployment, kind: str) -> list[dict[str, Any]]:
    found, _ = lab.client.events()
    return [event for event in found if event["kind"] == kind]


def partitions(lab: Deployment) -> list[dict[str, Any]]:
    return events(lab, "partition-changed")


def settled(lab: Deployment) -> dict[str, Any]:
    """Return the present split, once it is so old that what was sent before it has left."""
    eventually(lambda: time.time() - partitions(lab)[-1]["at"] > QUIET_S)
    return partitions(lab)[-1]


def under_one_split(lab: Deployment, senders: int) -> Seen:
    """Return what h2 receives under one split until it is enough; where the split changes, under the next one."""
    seen = None
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if seen is None:
            seen = Seen(settled(lab))
            lab.client.report_flows(forget=True)
        time.sleep(WINDOW_S)
        window = received(lab, "h2")
        if partitions(lab)[-1] != seen.split:
            seen = None
            continue
        for flow in window:
            seen.add(flow)
        if seen.enough(senders):
            return seen
    pytest.fail(f"no split under which all flows were reported: {seen}, {partitions(lab)}")


def test_short_and_long_flows_have_paths_of_their_own_by_load() -> None:
    with deployment(fabric(PATHS, rate=RATE_MBPS), "freeway") as lab:
        idle = settled(lab)
        assert (len(idle["low_latency"]), len(idle["throughput"])) == (PATHS - 1, 1)
        stamps = {*idle["low_latency"], *idle["throughput"]}
        assert len(stamps) == PATHS
        drain = start(lab, "h2", programs.DISCARD, PORT)
        said(drain, "listening")
        receivers, senders = list[subprocess.Popen[str]](), list[subprocess.Popen[str]]()
        for number in range(1, 5):
            program, rate = (programs.ANSWER, PACED_RATE) if number == 4 else (programs.RECEIVE, 0)
            receivers.append(start(lab, "h2", program, PORT + number))
            said(receivers[-1], "listening")
            senders.append(start(lab, "h1", programs.SEND, RECEIVER, PORT + number, 1 << 40, rate))
            said(senders[-1], "connected")
        eventually(lambda: len(partitions(lab)[-1]["throughput"]) > 1)
        bursts = start(lab, "h1", programs.BURSTS, RECEIVER, PORT, 120.0)
        seen = under_one_split(lab, len(senders))
        assert all(process.poll() is None for process in (bursts, *senders))
        seen.check()
        for one in partitions(lab):
            assert not set(one["low_latency"]) & set(one["throughput"])
        lost = [event for event in events(lab, "link-down") if event["at"] > idle["at"]]
        for one in partitions(lab)[partitions(lab).index(idle) :]:
            cover = {*one["low_latency"], *one["throughput"]}
            assert cover == stamps or (cover < stamps and any(event["at"] <= one["at"] for event in lost))
        for process in (bursts, *senders, *receivers, drain):
            process.kill()
            process.wait()
        eventually(lambda: len(partitions(lab)[-1]["low_latency"]) == PATHS - 1)
