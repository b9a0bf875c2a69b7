"""Freeway on real switches: short and long flows on paths of their own, split by what the meters say."""

from __future__ import annotations

import subprocess
import time
from typing import Any

from experiments.deployment import Deployment
from tests.lab.test_schemes_on_switches import (
    PORT,
    RECEIVER,
    deployment,
    eventually,
    fabric,
    programs,
    received,
    said,
    start,
)

PATHS = 4
QUIET_S = 0.8
"""Twice as long as a load of the past counts (8 samples of 50 ms)."""


def partitions(lab: Deployment) -> list[dict[str, Any]]:
    events, _ = lab.client.events()
    return [event for event in events if event["kind"] == "partition-changed"]


def settled(lab: Deployment) -> dict[str, Any]:
    """The present split, once it has not changed for a while."""
    eventually(lambda: time.time() - partitions(lab)[-1]["at"] > QUIET_S, 10)
    return partitions(lab)[-1]


def paths_in_use(lab: Deployment) -> dict[str, list[set[int]]]:
    """The paths of each flow that h2 received of, by class, while short flows come and go for half a second."""
    lab.client.report_flows(forget=True)
    assert start(lab, "h1", programs.BURSTS, RECEIVER, PORT, 0.5).wait(20) == 0
    found: dict[str, list[set[int]]] = {}
    for flow in received(lab, "h2"):
        found.setdefault(flow["traffic_class"], []).append({int(stamp) for stamp in flow["paths"]})
    return found


def test_short_and_long_flows_have_paths_of_their_own_by_load() -> None:
    with deployment(fabric(PATHS, rate=20.0), "freeway") as lab:
        idle = settled(lab)
        assert (len(idle["low_latency"]), len(idle["throughput"])) == (PATHS - 1, 1)
        stamps = {*idle["low_latency"], *idle["throughput"]}
        assert len(stamps) == PATHS
        drain = start(lab, "h2", programs.DISCARD, PORT)
        said(drain, "listening")
        receivers, senders = list[subprocess.Popen[str]](), list[subprocess.Popen[str]]()
        for number in range(1, 5):
            receivers.append(start(lab, "h2", programs.RECEIVE, PORT + number))
            said(receivers[-1], "listening")
            senders.append(start(lab, "h1", programs.SEND, RECEIVER, PORT + number, 100_000_000, 0))
            said(senders[-1], "connected")
        eventually(lambda: len(partitions(lab)[-1]["throughput"]) > 1, 5)
        # A flow's first 100 kB go as a short one's, and buffers hold 0.6 s of packets: a window may begin too early.
        for _ in range(5):
            split = settled(lab)
            used = paths_in_use(lab)
            if partitions(lab)[-1] == split and all(len(paths) == 1 for paths in used["long"]):
                break
        else:
            raise AssertionError(f"no window in which all keep to one path: {used}, {partitions(lab)}")
        assert all(sender.poll() is None for sender in senders)
        assert len(used["long"]) >= len(senders)
        assert used["short"]
        for kind, own in (("short", "low_latency"), ("long", "throughput")):
            for paths in used[kind]:
                assert len(paths) == 1, f"a {kind} flow took {paths}"
                assert paths <= set(split[own]), f"{kind} flows: {paths} of {split}"
        for one in partitions(lab):
            assert not set(one["low_latency"]) & set(one["throughput"])
        for one in partitions(lab)[partitions(lab).index(idle) :]:
            assert {*one["low_latency"], *one["throughput"]} == stamps
        for process in (*senders, *receivers, drain):
            process.kill()
            process.wait()
        eventually(lambda: len(partitions(lab)[-1]["low_latency"]) == PATHS - 1, 10)
