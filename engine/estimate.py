"""How long an experiment may take, before it has begun."""

from __future__ import annotations

from typing import Final

from experiments.run.progress import BETWEEN_RUNS_S, TAIL_S
from experiments.spec.spec import Spec
from workloads.applications import mean_bytes, parts
from workloads.arrivals import flow_rate

BRING_UP_S: Final = 6.0
"""Of a lab with its controller and agents; points of one fabric share it, which this does not know."""


def expected_s(spec: Spec) -> float:
    """Return seconds for all runs of a spec, without its sweep: arrivals on average, and what lies between runs."""
    flows = spec.workload.flows
    if flows.duration_s is not None:
        arriving = flows.duration_s
    else:
        rate = flow_rate(flows.arrivals, spec.capacity_bps(), mean_bytes(parts(flows)))
        arriving = (flows.count or 0) / rate
        if flows.arrivals.kind == "burst" and flows.arrivals.on_s:
            periods = arriving / flows.arrivals.on_s
            arriving += periods * (flows.arrivals.off_s or 0.0)
    one = spec.warm_up_s + arriving + TAIL_S + spec.pause_s + BETWEEN_RUNS_S
    return BRING_UP_S + one * len(spec.schemes) * spec.repeats
