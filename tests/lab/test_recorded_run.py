"""A run on real switches, recorded packet by packet: what its file says is what the switches did."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from experiments.results.packet_trace import FLIGHT, KINDS, OUTCOMES, PacketTrace, parse_trace, trace_bytes
from experiments.run.capture import LabRecorder
from experiments.run.experiment import Result
from experiments.run.runner import RunOptions, run_experiment
from experiments.spec.check import load
from experiments.spec.spec import Spec

TEXT = """\
name: recorded
title: Two leaves, two paths, a few flows by flow hashing, buffers that drop none of them
fabric:
  leaves: 2
  spines: 2
  hosts_per_leaf: 2
  link: {rate_mbps: 10, buffer_packets: 256}
  access: {rate_mbps: 20, buffer_packets: 256}
schemes: [ecmp]
workload:
  flows:
    count: 8
    sizes: {kind: fixed, bytes: 20000}
    arrivals: {rate_per_s: 20}
    pattern: left-to-right
repeats: 1
seed: 5
warm_up_s: 0.1
timeout_s: 120
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, Result, PacketTrace]:
    """Return a run, whole, and its recording."""
    directory: Path = tmp_path_factory.mktemp("recorded")
    spec = load(TEXT, "recorded.yaml", ("ecmp",))
    recorder = LabRecorder(from_ms=0.0, for_ms=600_000.0)
    result = run_experiment(spec, TEXT, RunOptions(results=directory, recorder=recorder))
    assert recorder.trace is not None, recorder.problem
    return spec, result, parse_trace(trace_bytes(recorder.trace))


def test_each_packet_goes_on_where_and_when_it_was_seen(
    recorded: tuple[Spec, Result, PacketTrace],
) -> None:
    _, _, trace = recorded
    hops = trace.hops
    at: dict[int, tuple[str, int]] = {}
    assert list(hops["offered_ps"]) == sorted(hops["offered_ps"])
    for row, (packet, link) in enumerate(zip(hops["packet"], hops["link"], strict=True)):
        if packet in at:
            assert (trace.links["from"][link], hops["offered_ps"][row]) == at[packet]
        else:
            assert trace.links["from"][link] == trace.hosts[trace.packets["source"][packet]]
        end_ps = hops["offered_ps"][row] + hops["waited_ps"][row] + hops[FLIGHT][row]
        at[packet] = trace.links["to"][link], end_ps
    assert trace.switches is not None
    assert trace.switches.left_out == 0
    assert not trace.cut


def test_every_packet_that_agents_counted_was_seen_to_arrive(
    recorded: tuple[Spec, Result, PacketTrace],
) -> None:
    _, result, trace = recorded
    arrived: Counter[int] = Counter()
    for packet, link, outcome in zip(
        trace.hops["packet"], trace.hops["link"], trace.hops["outcome"], strict=True
    ):
        end = trace.hosts[trace.packets["destination"][packet]]
        row, kind = trace.packets["flow"][packet], KINDS[trace.packets["kind"][packet]]
        if OUTCOMES[outcome] != "sent" or trace.links["to"][link] != end or row < 0:
            continue
        if trace.packets["destination"][packet] == trace.flows["destination"][row] and kind != "repair":
            arrived[trace.flows["id"][row]] += 1
    with (result.directory / "flows.csv").open() as file:
        counted = {int(row["id"]): int(row["packets"]) for row in csv.DictReader(file)}
    assert counted
    assert arrived == counted


def test_flows_that_are_hashed_have_one_path_each(recorded: tuple[Spec, Result, PacketTrace]) -> None:
    _, _, trace = recorded
    spines: dict[tuple[int, int], set[str]] = defaultdict(set)
    for packet, link in zip(trace.hops["packet"], trace.hops["link"], strict=True):
        row = trace.packets["flow"][packet]
        if row >= 0 and trace.links["to"][link].startswith("s"):
            spines[row, trace.packets["source"][packet]].add(trace.links["to"][link])
    assert len({row for row, _ in spines}) == 8
    assert all(len(taken) == 1 for taken in spines.values())


def test_the_result_says_that_its_run_was_recorded(recorded: tuple[Spec, Result, PacketTrace]) -> None:
    _, result, trace = recorded
    (notice,) = (text for text in result.document["notices"] if "recorded packet by packet" in text)
    assert "run 1 of ecmp" in notice
    assert len(trace.hops["packet"]) > 0
