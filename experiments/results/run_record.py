"""A run as the store keeps it, and the order in which a repeat's schemes run."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict
from typing import Any, Final

from experiments.results.document import Run
from experiments.results.packet_trace import PacketTrace, trace_bytes
from experiments.spec.spec import SchemeChoice
from plain.field_values import field_values

_IN_CSV_ONLY: Final = ("copy_packets", "application", "port", "counted")
"""Fields of a flow that the database does not have so: its packets are the flow's own, and all its flows count."""


def rotated(schemes: tuple[SchemeChoice, ...], repeat: int) -> tuple[SchemeChoice, ...]:
    """Return the order of one repeat: each scheme is first in turn, so that none always follows another."""
    first = repeat % len(schemes)
    return schemes[first:] + schemes[:first]


def run_body(run: Run, seed: int, epoch_wall: float) -> dict[str, Any]:
    """Return a run as the API takes it. epoch_wall: its start, Unix seconds."""
    flows = []
    for flow in run.flows:
        if not flow.counted:
            continue
        data = field_values(flow)
        data["flow"] = data.pop("id")
        data["destination_port"] = flow.port
        for name in _IN_CSV_ONLY:
            del data[name]
        data["paths"] = dict(flow.paths)
        if flow.started_s is not None and flow.fct_s is not None:
            data["finished_s"] = round(flow.started_s + flow.fct_s, 6)
        flows.append(data)
    return {
        "scheme": run.scheme,
        "label": run.label,
        "repeat": run.repeat,
        "seed": seed,
        "started_at": epoch_wall,
        "finished_at": epoch_wall + run.duration_s,
        "cpu_limited": run.cpu_limited,
        "cpu": {} if run.cpu is None else asdict(run.cpu),
        "measures": {
            "short": run.short_flows(),
            "long": {"goodput_mbps": run.goodput_mbps},
            "duration_s": run.duration_s,
            **run.happened(),
            "drops": None if run.drops is None else dict(run.drops),
            "admitted": None if run.admitted is None else asdict(run.admitted),
            "copy_packets": {str(flow.id): flow.copy_packets for flow in run.flows if flow.copy_packets},
        },
        "flows": flows,
    }


def recording_body(trace: PacketTrace | None) -> dict[str, Any]:
    """Return what the API takes of a run's recording beside the run; nothing where there is none."""
    if trace is None:
        return {}
    return {
        "recording": {
            "from_ms": trace.begin_ps / 1e9,
            "for_ms": trace.length_ps / 1e9,
            "hops": len(trace.hops["packet"]),
            "cut": trace.cut,
            "file": b64encode(trace_bytes(trace)).decode(),
        }
    }
