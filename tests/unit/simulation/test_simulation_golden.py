"""What each scheme came to on one small spec: a change of behaviour is to be seen, whatever makes it.

CAPSTAN_WRITE_GOLDEN=1 writes the file anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from cli.specs import load_spec
from controller.schemes import loader
from experiments.spec.spec import SchemeChoice, Spec
from simulation.experiment import simulate_document
from workloads.description import LongFlows

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "simulation.json"
SCHEMES: Final = sorted(loader.scheme_names())


def spec_of(*schemes: str) -> Spec:
    """Return `small` with three times its flows and two long ones, at its seed."""
    spec = load_spec("small", schemes).spec
    workload = spec.workload
    more = replace(workload, flows=replace(workload.flows, count=60), long_flows=LongFlows(2))
    return replace(spec, workload=more, schemes=tuple(SchemeChoice(name, name) for name in schemes))


def figures(name: str) -> dict[str, Any]:
    document, (run,) = simulate_document(spec_of(name))
    short = document["schemes"][name]["short"]
    return {
        "mean_ms": float(f"{short['afct_ms']:.6g}"),
        "p99_ms": float(f"{short['p99_ms']:.6g}"),
        "retransmissions": sum(flow.retransmissions for flow in run.flows),
        "repairs": sum(flow.repairs for flow in run.flows),
    }


def test_every_scheme_has_its_figures() -> None:
    known = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if os.environ.get("CAPSTAN_WRITE_GOLDEN"):
        known = {name: figures(name) for name in SCHEMES}
        rows = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in known.items()]
        GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    assert sorted(known) == SCHEMES


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_comes_to_what_it_came_to(name: str) -> None:
    assert figures(name) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
