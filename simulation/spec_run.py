"""One run of a spec, simulated: a plan's flows under one scheme, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import capstan_native

from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run
from experiments.results.outcome import FlowOutcome
from experiments.spec.spec import SchemeChoice, Spec
from protocol.datagram import OVERLAY_OVERHEAD_BYTES
from simulation.fabrics import SettingsError
from simulation.settings import Buffer
from simulation.spec_fabric import SimulatedFabric
from simulation.spec_scheme import SimulatedScheme
from simulation.tcp import Tcp
from workloads.flow_header import SINK_PORT
from workloads.plan import Plan

_PS_PER_S: Final = 10**12
_EVENTS_A_STEP: Final = 1_000_000
_ENDLESS_BYTES: Final = 2**32 - 1
"""What a flow without an end may send at most: more than any lab has carried in a run."""
_HEADERS: Final = 20 + 20 + 12
"""Of IPv4 and TCP inside the tunnel, with a timestamp."""
NOT_LIMITED: Final = CpuUse(1.0, 1.0, None, 0.0, False)
"""A simulation has all the time it needs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one spec share."""

    spec: Spec
    fabric: SimulatedFabric
    transport: Tcp


def simulate_run(
    setting: Setting,
    choice: SchemeChoice,
    scheme: SimulatedScheme,
    repeat: int,
    plan: Plan,
    progress: Callable[[int], None] = lambda finished: None,
) -> Run:
    """Return what became of a plan's flows under a scheme. progress: called with the number of finished flows.

    Raises:
        SettingsError: it cannot be, or carries nothing; the text says why.
    """
    spec = setting.spec
    deadline_s = plan.window_s[1] + spec.timeout_s
    background = [row for row, flow in enumerate(plan.flows) if flow.size_bytes is None]
    noted: list[list[int]] = []
    try:
        simulation = _simulation(setting, scheme, repeat, plan)

        def go_on(until_s: float) -> None:
            until_ps = round(until_s * _PS_PER_S)
            while not simulation.run_until(_EVENTS_A_STEP, until_ps):
                progress(simulation.finished())

        for moment in plan.window_s:
            go_on(moment)
            noted.append(simulation.acknowledged(background))
        go_on(deadline_s)
        simulation.stop()
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"scheme {choice.label}, repeat {repeat + 1}: {error}") from None
    windows = dict(zip(background, zip(*noted, strict=True), strict=True))
    flows, records = simulation.flows(), simulation.records()
    outcomes = tuple(
        _outcome(row, plan, setting, flows, records[row], windows.get(row)) for row in range(len(plan.flows))
    )
    return Run(
        label=choice.label,
        scheme=choice.name,
        repeat=repeat,
        plan=plan.digest(),
        duration_s=simulation.now_ps() / _PS_PER_S,
        flows=outcomes,
        cpu=NOT_LIMITED,
    )


def payload_bytes(spec: Spec) -> int:
    """Return the data of a full packet: what the tunnel and its headers leave of the fabric's MTU."""
    return spec.fabric.mtu - OVERLAY_OVERHEAD_BYTES - _HEADERS


def _simulation(
    setting: Setting, scheme: SimulatedScheme, repeat: int, plan: Plan
) -> capstan_native.Simulation:
    spec, places = setting.spec, setting.spec.fabric.hosts()
    number = {place.name: index for index, place in enumerate(places)}
    link = spec.fabric.link
    buffer = Buffer(
        "fifo" if scheme.queues == 1 else "queues",
        limit_packets=scheme.room or link.buffer_packets,
        queues=scheme.queues,
    )
    settings: dict[str, Any] = {
        "fabric": setting.fabric.native,
        "buffer": buffer.to_native(),
        "payload_bytes": payload_bytes(spec),
        "header_bytes": _HEADERS,
        "acknowledgement_bytes": _HEADERS,
        "balancing": "hash",
        "seed": (spec.seed << 16 | repeat) % 2**64,
    }
    asked: dict[str, Any] = {
        "policy": scheme.policy,
        "groups": list(scheme.groups),
        "clock": scheme.clock,
        "addresses": [ip_address(place.overlay).packed for place in places],
        "lines": [(flow.source_port, flow.port or SINK_PORT, flow.size_bytes is None) for flow in plan.flows],
    }
    return capstan_native.Simulation(
        settings,
        setting.transport.to_native(),
        [round(flow.start_s * _PS_PER_S) for flow in plan.flows],
        [number[flow.source] for flow in plan.flows],
        [number[flow.destination] for flow in plan.flows],
        [flow.size_bytes or _ENDLESS_BYTES for flow in plan.flows],
        scheme=asked,
        rooms=[] if scheme.room else list(setting.fabric.rooms),
    )


def _outcome(
    row: int,
    plan: Plan,
    setting: Setting,
    flows: capstan_native.SimulatedFlows,
    record: Mapping[str, Any],
    noted: tuple[int, ...] | None,
) -> FlowOutcome:
    planned, completed = plan.flows[row], flows["completed_ps"][row]
    started_s = round(planned.start_s, 6)
    finished = completed is not None
    endless = planned.size_bytes is None
    acknowledged, resent = flows["acknowledged"][row], flows["resent"][row]
    return FlowOutcome(
        id=planned.id,
        source=planned.source,
        destination=planned.destination,
        source_port=planned.source_port,
        traffic_class=planned.traffic_class,
        size_bytes=planned.size_bytes,
        state="background" if endless else "finished" if finished else "failed",
        error="" if endless or finished else f"not finished: {acknowledged} B acknowledged at the run's end",
        planned_s=planned.start_s,
        started_s=started_s,
        fct_s=None if completed is None or endless else completed / _PS_PER_S - planned.start_s,
        bytes_acked=acknowledged,
        window_bytes=0 if noted is None else noted[1] - noted[0],
        window_s=0.0 if noted is None else plan.window_s[1] - plan.window_s[0],
        retransmissions=resent,
        bytes_retransmitted=resent * payload_bytes(setting.spec),
        duplicates_reported=flows["duplicates"][row],
        reordering_events=0,
        out_of_order=flows["early"][row],
        rtt_ms=flows["round_trip_ps"][row] / 1e9,
        min_rtt_ms=flows["least_round_trip_ps"][row] / 1e9,
        packets=record["packets"],
        repairs=record["repairs"],
        recovered=record["recovered"],
        lost=record["lost"],
        reordered=record["reordered"],
        release_timeouts=record["release_timeouts"],
        application=planned.application,
        port=planned.port or SINK_PORT,
        counted=planned.counted,
        paths={str(stamp): count for stamp, count in sorted(record["paths"].items())},
    )
