"""Path policies on real switches, by the path stamps that the receiving agent saw; and that every byte arrives."""

from __future__ import annotations

import itertools
import socket
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from controller.schemes import loader
from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
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

PATHS = 4
PACKET_TIME_S = 1500 * 8 / 100e6
TRANSFER_BYTES = 1_000_000
TRIES = 8
SILENCE_S = 2.0
"""After so long without a packet the rest is lost."""
_source_ports = itertools.count(5000, 64)


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    with deployment(fabric(PATHS, rate=100.0), "ecmp") as running:
        yield running


def use(lab: Deployment, scheme: str, **overrides: Any) -> None:
    lab.set_scheme(SchemeChoice(scheme, scheme, overrides))
    lab.client.report_flows(forget=True)


def flows_of(
    lab: Deployment, flows: int, packets: int, bursts: int = 1, size: int = 1000, pause: float = 0.0
) -> list[Counter[str]]:
    """Return packets by path of each of that many new UDP flows from h1 to h2, all of which have arrived.

    Where this machine has lost some (queues of devices and sockets are short), others are sent instead.
    """
    for _ in range(TRIES):
        arguments = (RECEIVER, PORT, next(_source_ports), flows, bursts, packets, size, pause)
        assert start(lab, "h1", programs.DATAGRAMS, *arguments).wait(60) == 0
        seen: dict[int, Counter[str]] = {}
        total, silent_since = 0, time.monotonic()
        while time.monotonic() < silent_since + SILENCE_S:
            for flow in received(lab, "h2"):
                if flow["protocol"] == socket.IPPROTO_UDP:
                    seen.setdefault(flow["source_port"], Counter()).update(flow["paths"])
                    total, silent_since = total + sum(flow["paths"].values()), time.monotonic()
            if total == flows * packets * bursts:
                return list(seen.values())
            time.sleep(0.02)
    pytest.fail(f"in none of {TRIES} tries all packets arrived, last {total} of {flows * packets * bursts}")


def test_drb_takes_all_paths_in_turn(lab: Deployment) -> None:
    use(lab, "drb")
    (paths,) = flows_of(lab, 1, 600)
    assert len(paths) == PATHS
    # in turn as a short flow, then anew as a long one: whole turns but for one at either end of each
    assert max(paths.values()) - min(paths.values()) <= 2


def test_presto_changes_path_every_64_kb_and_nowhere_else(lab: Deployment) -> None:
    use(lab, "presto")
    cell = 65536 // (1000 + 28)  # whole packets in a flowcell
    (paths,) = flows_of(lab, 1, 6 * cell)
    assert sorted(paths.values()) == [cell, cell, 2 * cell, 2 * cell]
    (paths,) = flows_of(lab, 1, cell)
    assert sorted(paths.values()) == [cell]


def test_letflow_changes_path_only_after_a_gap(lab: Deployment) -> None:
    gap = {"gap_packet_times": 0.6 / PACKET_TIME_S}  # longer than this machine pauses between two packets
    use(lab, "letflow", **{"short": {"path": gap}, "long": {"path": gap}})
    flows = flows_of(lab, 8, 8, bursts=5, size=200, pause=1.0)
    assert all(count % 8 == 0 for paths in flows for count in paths.values()), flows
    assert any(len(paths) > 1 for paths in flows), "five draws of one of four paths, eight times"


@pytest.mark.parametrize(
    ("scheme", "overrides"),
    [
        ("drb", {"short.entropy": "label-hash"}),
        ("plb", {"short.path.congested_packet_times": 50_000}),  # a hiccup of this machine is no congestion
    ],
    ids=["label-hash", "plb"],
)
def test_each_flow_keeps_to_one_path_and_all_paths_are_used(
    lab: Deployment, scheme: str, overrides: dict[str, Any]
) -> None:
    use(lab, scheme, **overrides)
    # PLB moves a flow without feedback for 0.2 s: eight flows are over after 20 ms
    flows = [flow for _ in range(4) for flow in flows_of(lab, 8, 5)]
    assert all(len(paths) == 1 for paths in flows), flows
    assert len({path for paths in flows for path in paths}) == PATHS


def test_reps_explores_all_paths_and_then_sends_again_over_what_came_back(lab: Deployment) -> None:
    # a hiccup of this machine is not to count as congestion
    use(lab, "reps", **{"short.path.explore_packets": 8, "short.path.congested_packet_times": 50_000})
    (paths,) = flows_of(lab, 1, 8, bursts=6, size=100, pause=1.0)
    assert len(paths) > 1
    assert paths.total() == 48
    # each of the six bursts of eight is the eight values of the first, for all of them came back
    assert all(count % 6 == 0 for count in paths.values()), paths


@pytest.mark.parametrize("scheme", loader.lab_scheme_names())
def test_every_byte_arrives_through_loss_reordering_and_a_path_that_swallows_all(
    lab: Deployment, scheme: str
) -> None:
    """Under every scheme that there is; the path dies half-way, with packets on it."""
    use(lab, scheme)
    lab.client.impair("h2", loss=0.01, reorder=0.2, reorder_delay_s=0.002, duplicate=0.01, corrupt=0.001)
    try:
        receiver = start(lab, "h2", programs.RECEIVE, PORT)
        said(receiver, "listening")
        sender = start(lab, "h1", programs.HALVES, RECEIVER, PORT, TRANSFER_BYTES)
        said(sender, "half")
        # its links stay up: what is sent there is gone until the controller steps in
        lab.lab.kill_switch("s1")
        assert sender.stdin is not None
        print("go on", file=sender.stdin, flush=True)
        assert result(sender) == result(receiver)
        # A flow that was quiet for long counts as another one; last packets of the scheme before may come late.
        assert sum(flow["bytes"] for flow in received(lab, "h2", PORT)) >= TRANSFER_BYTES, "by the overlay"
    finally:
        lab.client.impair("h2")
        lab.lab.restart_switch("s1")


def test_tr_keeps_order_on_equal_paths_and_where_one_is_3_5_times_slower() -> None:
    rate = 2.0  # a packet takes 6 ms: beside that, what a busy machine keeps a switch waiting is little
    slow = {"rate_mbps": rate / 3.5}
    shape = fabric(PATHS, hosts=2, rate=rate, overrides={"l1-s1": slow, "l2-s1": slow})
    with deployment(shape, "tr") as running:
        for host in ("h3", "h4"):
            said(start(running, host, programs.DISCARD, PORT), "listening")
        reorders_little(running)
        for link in ("l1-s1", "l2-s1"):
            running.lab.set_link(link, rate_mbps=rate)
        # For 256 packet times of the slowest link TR takes a path's newest delay to last (`FULL_PACKET_TIMES`).
        time.sleep(256 * 1500 * 8 / (slow["rate_mbps"] * 1e6))
        reorders_little(running)


def reorders_little(running: Deployment) -> None:
    """Assert that a long flow from h1 to h3 and streams of short ones to h4 use all paths, and few packets are late.

    Spraying (`rps`) reorders half of them here. A switch that a busy machine keeps waiting makes some late, too: how
    few they are under TR, 0.2 to 0.3 %, is for the presets to say.
    """
    running.client.report_flows(forget=True)
    long = start(running, "h1", programs.SEND, RECEIVER, PORT, 1 << 40, 0)
    said(long, "connected")
    bursts = [
        start(running, host, programs.BURSTS, "10.128.2.2", PORT, 3.0)
        for host in ("h1", "h2")
        for _ in range(2)
    ]
    for burst in bursts:
        assert burst.wait(60) == 0
    long.kill()
    flows = running.client.report_flows(forget=True)
    seen = [flow for host in ("h3", "h4") for flow in flows[host] if flow["side"] == "receiver"]
    packets = sum(flow["packets"] for flow in seen)
    assert packets > 500
    assert sum(flow["reordered"] for flow in seen) < 0.05 * packets
    assert len({stamp for flow in seen for stamp in flow["paths"]}) == PATHS
