"""Runs that an earlier attempt has finished, out of the controller's database, as if they had been run just now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from experiments.results.admissions import Admissions
from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run
from experiments.results.outcome import FlowOutcome
from workloads.plan import Plan

_OF_PLAN: Final = ("id", "application", "counted")
_OTHERS: Final = (*_OF_PLAN, "port", "copy_packets")
_OF_RECORD: Final = [column.name for column in fields(FlowOutcome) if column.name not in _OTHERS]


def finished_run(
    run: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    modes: Sequence[Mapping[str, Any]],
    plan: Plan,
) -> Run:
    """Return a run as `Experiment` makes it; run, flows, modes: as the API answers them.

    Raises:
        KeyError, TypeError, ValueError: it was not kept by this Capstan, or of other flows than *plan*'s.
    """
    measures: Mapping[str, Any] = run["measures"]
    types, admitted = measures.get("types_learnt"), measures.get("admitted")
    copies: Mapping[str, int] = measures.get("copy_packets", {})
    planned = [flow for flow in plan.flows if flow.counted]  # the others are in no figure
    if [flow["flow"] for flow in flows] != [planned_flow.id for planned_flow in planned]:
        raise ValueError(f"run {run['id']} has other flows than planned")
    outcomes = [
        FlowOutcome(
            port=flow["destination_port"],
            copy_packets=copies.get(str(planned_flow.id), 0),
            **{name: getattr(planned_flow, name) for name in _OF_PLAN},
            **{name: flow[name] for name in _OF_RECORD},
        )
        for planned_flow, flow in zip(planned, flows, strict=True)
    ]
    return Run(
        label=run["label"],
        scheme=run["scheme"],
        repeat=run["repeat"],
        plan=plan.digest(),
        duration_s=measures.get("duration_s", run["finished_at"] - run["started_at"]),
        flows=tuple(outcomes),
        cpu=CpuUse(**run["cpu"]) if run["cpu"] else None,
        modes=tuple({name: change[name] for name in ("at_s", "leaf", "mode", "cause")} for change in modes),
        splits=tuple(measures.get("path_splits", ())),
        changes=tuple(measures.get("fabric_changes", ())),
        types=None if types is None else tuple(types),
        run_id=run["id"],
        disturbed=tuple(measures.get("disturbed", ())),
        repeated=measures.get("repeated", 0),
        limited_before=measures.get("limited_before", 0),
        notices=tuple(measures.get("notices", ())),
        admitted=None if admitted is None else Admissions(**admitted),
        drops=measures.get("drops"),
        not_counted=len(plan.flows) - len(planned),
    )
