"""TPFS's presets as flows through strict queues and nothing else: what prediction can gain, and what it does gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.schemes import loader
from controller.schemes.overrides import with_overrides
from controller.schemes.scheme import Priority
from controller.tpfs.records import RECORD
from controller.tpfs.types import flow_types
from experiments.spec.check import find_spec
from experiments.spec.spec import SchemeChoice, Spec, spec_from_dict
from experiments.spec.sweep import only, points
from models.strict_queues import Job, by_bytes_sent, by_remaining, by_size, completion_times
from models.strict_queues import Priority as Order
from models.study import Axis, Panel, Study, curve
from plain.overrides import merge
from plain.yaml_source import read
from workloads.plan import Plan, PlannedFlow

PRESETS: Final = ("tpfs-fig7", "tpfs-fig8", "tpfs-tenants")
LOAD: Final = "0.6"
LEARNT_BY_S: Final = 8.0
"""Types are those of flows that began earlier: the presets' lead_in_s."""
SRPT: Final = "srpt"
PIAS: Final = "pias"
"""What the others are compared with."""
SHARES: Final = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995)
PORT: Final = 7000
"""Of receivers of applications that share one."""
_Times = NDArray[np.float64]


def strict_queues() -> Study:
    """Return each preset at one load: its schemes, and shortest remaining time first with a queue for every size."""
    panels, rows = [], []
    for name in PRESETS:
        (point,) = points(only(_spec(name), [LOAD]))
        spec = point.spec
        plan = spec.plan(0)
        counted = np.array([flow.counted for flow in plan.flows])
        sizes = np.array([flow.size_bytes for flow in plan.flows])[counted]
        times = {label: flow_times[counted] for label, flow_times in _times(spec, plan).items()}
        short = sizes < spec.workload.short_limit_bytes
        large = sizes >= (spec.workload.large_limit_bytes or np.inf)
        first = times[PIAS][short].mean()
        for label, flow_times in times.items():
            rows.append(
                (
                    name.removeprefix("tpfs-"),
                    label,
                    round(flow_times[short].mean() * 1e3, 1),
                    round(flow_times[short].mean() / first, 2),
                    round(float(np.quantile(flow_times[short], 0.99)) * 1e3, 1),
                    round(flow_times[~short & ~large].mean() * 1e3, 1),
                    round(flow_times[large].mean() * 1e3),
                )
            )
        panels.append(
            Panel(
                f"{name}: {np.count_nonzero(short)} short flows",
                Axis("share of short flows"),
                Axis("finished within", "ms"),
                SHARES,
                tuple(
                    curve(label, list(np.quantile(flow_times[short], SHARES) * 1e3))
                    for label, flow_times in times.items()
                ),
            )
        )
    return Study(
        f"TPFS: what strict queues do with the presets' flows (load {LOAD})",
        tuple(panels),
        ("preset", "scheme", "short ms", "to pias", "p99 ms", "medium ms", "large ms"),
        tuple(rows),
        (
            "Mean completion times of the counted flows of one repeat; p99: of short ones.",
            f"Types are those of the first {LEARNT_BY_S:g} s of each run. srpt: sizes are known, and each has a queue.",
        ),
    )


def _spec(name: str) -> Spec:
    return spec_from_dict(read(find_spec(name).read_text(encoding="utf-8"), name).data)


def _times(spec: Spec, plan: Plan) -> dict[str, _Times]:
    """Return the completion times in seconds by scheme's label; a flow takes one of the spines' paths at random."""
    links = spec.fabric.spines
    rate = (spec.fabric.slowest_link_mbps or 0.0) * 1e6
    rng = np.random.default_rng(spec.seed)
    jobs = [Job(flow.start_s, flow.size_bytes or 0, int(rng.integers(links))) for flow in plan.flows]
    times = {}
    for choice in spec.schemes:
        order = _orders(_priority(spec, choice), plan)
        times[choice.label] = np.array(completion_times(jobs, order, links, rate))
    times[SRPT] = np.array(completion_times(jobs, [by_remaining(job.size) for job in jobs], links, rate))
    return times


def _priority(spec: Spec, choice: SchemeChoice) -> Priority:
    scheme = with_overrides(loader.load(choice.name), merge(spec.policy, choice.overrides))
    if scheme.priority is None:
        raise ValueError(f"scheme {choice.name!r} has no priority by bytes sent or size")
    return scheme.priority


def _orders(priority: Priority, plan: Plan) -> list[Order]:
    """Return what decides over the packets of each of the plan's flows."""
    default = priority.scaled()
    if priority.kind == "size":
        return [by_size(default, flow.size_bytes or 0) for flow in plan.flows]
    if priority.prediction is None:
        return [by_bytes_sent(default)] * len(plan.flows)
    records, hosts = _records([flow for flow in plan.flows if flow.start_s < LEARNT_BY_S])
    types = flow_types(
        records,
        hosts,
        default,
        load=priority.prediction.load,
        delta=priority.prediction.delta_bytes,
        printed=priority.prediction.printed,
    )
    of_value = (
        {}
        if types is None
        else {value: flow_type.thresholds_bytes for flow_type in types.types for value in flow_type.values}
    )
    features = () if types is None else types.features
    return [
        by_bytes_sent(of_value.get(tuple(_text(flow, feature) for feature in features), default))
        for flow in plan.flows
    ]


def _text(flow: PlannedFlow, feature: str) -> str:
    """Return a flow's value of one feature, as `flow_types` writes it."""
    return {
        "source": flow.source,
        "destination": flow.destination,
        "source_port": str(flow.source_port),
        "destination_port": str(flow.port or PORT),
    }[feature]


def _records(flows: list[PlannedFlow]) -> tuple[NDArray[np.void], list[str]]:
    """Return agents' records of *flows* and of their answers of a byte each; hosts are named by their addresses."""
    hosts = sorted({flow.source for flow in flows} | {flow.destination for flow in flows})
    number = {host: index for index, host in enumerate(hosts)}
    answers = [
        replace(
            flow,
            source=flow.destination,
            destination=flow.source,
            source_port=flow.port or PORT,
            port=flow.source_port,
            size_bytes=1,
        )
        for flow in flows
    ]
    records = np.zeros(2 * len(flows), RECORD)
    for record, flow in zip(records, [*flows, *answers], strict=True):
        record["host"] = record["source"] = number[flow.source]
        record["destination"] = number[flow.destination]
        record["source_port"], record["destination_port"] = flow.source_port, flow.port or PORT
        record["protocol"], record["bytes"] = 6, flow.size_bytes or 0
        record["start"] = record["end"] = flow.start_s
    return records, hosts
