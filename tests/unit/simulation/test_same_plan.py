"""A seed's flows are the same in simulation and on switches: who sends to whom, how much, from when on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.specs import load_spec
from experiments.run.progress import Steps
from experiments.run.traffic import Traffic
from experiments.spec.spec import SchemeChoice, Spec
from simulation.experiment import simulate_document
from simulation.packet_trace import Recorder

_GENERATOR = """
import json, sys
print(json.dumps({"event": "ready"}), flush=True)
with open(sys.argv[1], "w") as orders:
    for line in sys.stdin:
        orders.write(line)
        orders.flush()
        print(json.dumps({"event": "done", "do": json.loads(line)["do"]}), flush=True)
"""
"""Notes what a host's traffic generator is ordered to send, and sends nothing."""
PS_PER_S = 10**12

Sent = tuple[int, str, str, int, float, int | None, str]
"""Number, source, destination's address, source port, s from the run's start, bytes, class."""


def spec(seed: int) -> Spec:
    made = load_spec("small", ("rps",)).spec
    return replace(made, schemes=(SchemeChoice("rps", "rps"),), repeats=2, seed=seed)


def ordered_on_switches(of: Spec, repeat: int, directory: Path) -> Iterator[Sent]:
    """Yield what the lab's traffic generators are ordered to send in a repeat."""
    steps = Steps([of], lambda progress: None)

    def popen(host: str | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        argv = [sys.executable, "-S", "-c", _GENERATOR, str(directory / f"{host}.orders")]
        return subprocess.Popen(argv, **options)

    with Traffic(popen, of.endpoints(), directory) as traffic:
        traffic.prepare(steps.plans[0][repeat])
    for endpoint in of.endpoints():
        for line in (directory / f"{endpoint.host}.orders").read_text().splitlines():
            for order in json.loads(line)["flows"]:
                yield (
                    order["id"],
                    endpoint.host,
                    order["address"],
                    order["source_port"],
                    order["start_s"],
                    order["size_bytes"],
                    order["traffic_class"],
                )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_simulated_run_has_the_flows_that_generators_are_ordered_to_send(seed: int, tmp_path: Path) -> None:
    of = spec(seed)
    address = {endpoint.host: endpoint.address for endpoint in of.endpoints()}
    _, runs = simulate_document(of)
    for repeat, run in enumerate(runs):
        directory = tmp_path / str(repeat)
        directory.mkdir()
        simulated = [
            (
                flow.id,
                flow.source,
                address[flow.destination],
                flow.source_port,
                flow.planned_s,
                flow.size_bytes,
                flow.traffic_class,
            )
            for flow in run.flows
        ]
        assert sorted(ordered_on_switches(of, repeat, directory)) == sorted(simulated)
    assert runs[0].plan != runs[1].plan


def test_flows_begin_on_simulated_wires_when_they_are_planned() -> None:
    of = replace(spec(1), repeats=1)
    recorder = Recorder(0.0, 1e6)
    _, (run,) = simulate_document(of, recorder=recorder)
    trace = recorder.trace
    assert trace is not None
    begun: dict[int, int] = {}
    for packet, offered_ps in zip(trace.hops["packet"], trace.hops["offered_ps"], strict=True):
        row = trace.packets["flow"][packet]
        if row >= 0:
            begun.setdefault(trace.flows["id"][row], trace.begin_ps + offered_ps)
    assert len(begun) > len(run.flows) // 2
    planned = {flow.id: round(flow.planned_s * PS_PER_S) for flow in run.flows}
    assert begun == {flow: planned[flow] for flow in begun}
