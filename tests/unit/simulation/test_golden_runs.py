"""What runs of other kinds came to: learnt types, buffers in which every scheme loses, TCP's other profiles, a trace.

Beside `test_simulation_golden.py`, in whose runs nothing is learnt and many schemes lose nothing.
CAPSTAN_WRITE_GOLDEN=1 writes the file anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from cli.specs import load_spec
from controller.schemes import loader
from experiments.spec.simulated import SimulatedProfile, Simulation
from experiments.spec.spec import SchemeChoice, Spec
from simulation.experiment import simulate_document
from simulation.fabrics import Fabric
from simulation.runs import run
from simulation.settings import Buffer, PFabricHosts, Settings
from simulation.tcp import PROFILES
from simulation.trace import Trace
from workloads.description import LongFlows

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "simulated_runs.json"
LEARNT: Final = ("pias", "tpfs", "pias-tpfs", "tpfs-paper")
ROOM: Final = 10
TRACES: Final = ("window", "pfabric", "datacenter")


def few(schemes: Mapping[str, Mapping[str, Any]], **changes: Any) -> Spec:
    """Return `small` with half as many flows again and four long ones, under schemes with their overrides."""
    spec = load_spec("small", tuple(schemes)).spec
    workload = replace(spec.workload, flows=replace(spec.workload.flows, count=30), long_flows=LongFlows(4))
    choices = tuple(SchemeChoice(name, name, overrides) for name, overrides in schemes.items())
    return replace(spec, workload=workload, schemes=choices, **changes)


def small_buffers() -> Spec:
    """Return a spec whose ports hold so few packets that every scheme loses some."""
    own = {"dctcp": {"dctcp": {"mark_from_packets": 5}}, "pfabric": {"pfabric": {"buffer_bytes": 6000}}}
    overrides = {}
    for name in sorted(loader.scheme_names()):
        queues = {"queues": {"buffer_packets": 4}} if loader.load(name).queues else {}
        overrides[name] = own.get(name, queues)
    fabric = load_spec("small").spec.fabric
    rooms = {part: replace(getattr(fabric, part), buffer_packets=ROOM) for part in ("link", "access")}
    return few(overrides, fabric=replace(fabric, **rooms))


def of_profile(profile: SimulatedProfile) -> Spec:
    return few({"ecmp": {}, "rps": {}, "caps": {}}, simulation=Simulation(profile=profile))


def learning() -> Spec:
    """Return the spec that learns types within a run, under PIAS and TPFS."""
    spec = load_spec("simulation/tpfs-agree.yaml").spec
    (tpfs,) = spec.schemes
    choices = (SchemeChoice(name, name, {} if name == "pias" else tpfs.overrides) for name in LEARNT)
    return replace(spec, schemes=tuple(choices), repeats=1)


def of_spec(spec: Spec) -> Iterator[tuple[str, dict[str, Any]]]:
    document, runs = simulate_document(spec)
    for ended in runs:
        short = document["schemes"][ended.label]["short"]
        yield (
            ended.label,
            {
                "mean_ms": float(f"{short['afct_ms']:.6g}"),
                "retransmissions": sum(flow.retransmissions or 0 for flow in ended.flows),
                "repairs": sum(flow.repairs for flow in ended.flows),
                "dropped": sum((ended.drops or {}).values()),
            },
        )


def trace_of(transport: str) -> dict[str, Any]:
    """Return the figures of 200 flows, eight into one host at a time, over 2 leaves of 8 hosts and 4 spines."""
    count = 200
    rows = np.arange(count)
    starts = rows // 8 * 40_000
    trace = Trace(starts, rows % 8, 8 + rows // 8 % 8, 10_000 + rows * 500, np.zeros(count, dtype=np.int64))
    fabric = Fabric(leaves=2, hosts_per_leaf=8, spines=4)
    settings = {
        "window": Settings(fabric),
        "pfabric": Settings(fabric, Buffer("pfabric", limit_bytes=36_864), PFabricHosts()),
        "datacenter": Settings(
            fabric, Buffer(limit_packets=40, mark_from_packets=20), PROFILES["datacenter"], "hash"
        ),
    }[transport]
    result = run(settings, trace)
    mean_us = result.completed_ps.mean() / 1e6
    totals = result.totals
    return {
        "mean_us": float(f"{mean_us:.6g}"),
        "retransmissions": int(result.resent.sum()),
        "dropped": totals.packets_dropped,
        "timeouts": totals.timeouts,
    }


def figures() -> dict[str, dict[str, Any]]:
    specs = {
        "small buffers": small_buffers(),
        "ns2": of_profile("ns2"),
        "datacenter": of_profile("datacenter"),
        "learnt": learning(),
    }
    return {name: dict(of_spec(spec)) for name, spec in specs.items()} | {
        "trace": {transport: trace_of(transport) for transport in TRACES}
    }


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    made = figures()
    if os.environ.get("CAPSTAN_WRITE_GOLDEN"):
        parts = []
        for kind, rows in made.items():
            lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
            parts.append(f" {json.dumps(kind)}: {{\n{lines}\n }}")
        GOLDEN.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["small buffers", "ns2", "datacenter", "learnt", "trace"])
def test_runs_come_to_what_they_came_to(kind: str, found: dict[str, dict[str, Any]]) -> None:
    assert found[kind] == json.loads(GOLDEN.read_text(encoding="utf-8"))[kind]


def test_every_scheme_loses_in_small_buffers(found: dict[str, dict[str, Any]]) -> None:
    assert sorted(found["small buffers"]) == sorted(loader.scheme_names())
    for name, row in found["small buffers"].items():
        assert row["dropped"] > 0, name
        assert row["retransmissions"] > 0, name


def test_what_is_learnt_makes_a_difference(found: dict[str, dict[str, Any]]) -> None:
    learnt = found["learnt"]
    assert learnt["tpfs"] != learnt["pias"]
    assert learnt["tpfs-paper"] != learnt["pias-tpfs"]
