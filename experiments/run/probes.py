"""Proves that a fabric forwards: a small flow from every host, over the overlay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from experiments.run.traffic import Popen, Traffic
from experiments.spec.spec import Spec
from workloads.plan import Plan, PlannedFlow

PROBE_S: Final = 30.0
PROBE_BYTES: Final = 1000


def lost_probes(popen: Popen, spec: Spec, logs: Path, check: Callable[[], None]) -> list[str]:
    """Send a flow from every host to one of another leaf; return those that did not arrive, and why, in words.

    popen: starts a program on a host. check: called now and then; what it raises ends the probe.
    """
    endpoints = spec.endpoints()
    flows = []
    for index, source in enumerate(endpoints):
        others = [other for other in endpoints if other.leaf != source.leaf]
        others = others or [other for other in endpoints if other != source]
        if others:
            target = others[index % len(others)]
            flows.append(
                PlannedFlow(index, source.host, target.host, 9000 + index % 900, 0.0, PROBE_BYTES, "short")
            )
    with Traffic(popen, endpoints, logs) as traffic:
        traffic.configure(spec.transport)
        traffic.prepare(Plan(tuple(flows), (0.0, 0.0)))
        traffic.run(PROBE_S, lambda finished, failed: None, check, lead_s=0.0)
        sent, _ = traffic.stop_flows()
    names = {flow.id: f"{flow.source} to {flow.destination}" for flow in flows}
    return [f"{names[flow.id]} ({flow.error})" for flow in sent if flow.state != "finished"]
