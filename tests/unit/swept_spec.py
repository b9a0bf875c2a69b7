"""A spec with a sweep over two axes, with claims, and its results."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run, result_document
from experiments.results.outcome import join
from experiments.results.sweep_results import sweep_document
from experiments.spec.check import load
from experiments.spec.spec import Spec
from experiments.spec.sweep import points
from tests.unit.sent_flows import sent

SCHEMES = ["caps", "ecmp", "repflow", "rps"]
TEXT = """\
name: tried
title: Tried
fabric: {leaves: 2, spines: 4, link: {rate_mbps: 4}, access: {rate_mbps: 10}}
schemes: [ecmp, caps]
policy: {long.release.packet_times: 8}
workload:
  flows:
    count: 6
    sizes: {kind: uniform, low_bytes: 10000, high_bytes: 50000}
    arrivals: {rate_per_s: 12}
  long_flows: {number: 1}
sweep:
  - label: long flows
    fields: [workload.long_flows.number]
    values: [1, 3]
  - label: asymmetry
    fields: [fabric.overrides.l1-s1.rate_mbps, fabric.overrides.l2-s1.rate_mbps]
    values: [4, 2, 1]
    shown: [1, 2, 4]
    unit: times
claims:
  - text: CAPS is better.
    source: a paper
    figure: Fig. 1
    compare: {measure: short-mean, scheme: caps, against: ecmp, at_most: 1}
  - text: It is fine.
    compare: {measure: long-mean, scheme: caps, against: ecmp, at_most: 1}
"""


def spec() -> Spec:
    return load(TEXT, "tried.yaml", SCHEMES)


def point_document(one: Spec, factor: float, limited: bool = False) -> dict[str, Any]:
    """Return the result of one point; caps is *factor* times as slow as ecmp."""
    runs = []
    for repeat in range(one.repeats):
        plan = one.plan(repeat)
        for choice in one.schemes:
            slow = factor if choice.label == "caps" else 1.0
            measured = sent(plan, lambda flow, slow=slow: (0.05 + 0.001 * flow.id) * slow)  # type: ignore[misc]
            cpu = CpuUse(0.02 if limited else 0.5, 0.4, None, 0.1, limited and choice.label == "caps")
            flows = tuple(replace(flow, packets=30, reordered=3) for flow in join(plan, measured, [], []))
            runs.append(Run(choice.label, choice.name, repeat, plan.digest(), 5.0, flows, cpu))
    return result_document(
        one,
        runs,
        started=datetime.now(UTC),
        duration_s=20.0,
        notices=["no netem here"],
        versions={"numpy": "2"},
    )


def whole(**more: Any) -> dict[str, Any]:
    found = points(spec())
    return sweep_document(
        spec(),
        [
            (point.at, Path(f"point-{index}"), point_document(point.spec, 0.5, **more))
            for index, point in enumerate(found, 1)
        ],
    )
