"""What senders measure of a plan's flows where all goes well."""

from __future__ import annotations

from collections.abc import Callable

from workloads.plan import Plan, PlannedFlow
from workloads.records import SentFlow


def sent(plan: Plan, fct_s: Callable[[PlannedFlow], float]) -> list[SentFlow]:
    """Return all flows of *plan*: with these completion times (seconds), and background flows of 4 Mbit/s."""
    return [
        SentFlow(
            id=flow.id,
            state="background" if flow.size_bytes is None else "finished",
            error="",
            traffic_class=flow.traffic_class,
            size_bytes=flow.size_bytes,
            source_address=f"10.128.1.{flow.source[1:]}",
            source_port=flow.source_port,
            address=f"10.128.2.{flow.destination[1:]}",
            port=5501,
            planned_s=flow.start_s,
            started_s=flow.start_s,
            finished_s=flow.start_s + 1,
            fct_s=None if flow.size_bytes is None else fct_s(flow),
            window_bytes=1_000_000 if flow.size_bytes is None else 0,
            window_s=2.0 if flow.size_bytes is None else 0.0,
        )
        for flow in plan.flows
    ]
