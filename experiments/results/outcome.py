"""What became of the flows of one run: generator's and agents' records of each, joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capstan_client.errors import CapstanError
from workloads.plan import Plan, PlannedFlow
from workloads.records import FlowState, ReceivedFlow, SentFlow, TrafficClassName

_TCP: Final = 6
Entries = Sequence[Mapping[str, Any]]
"""Agents' records of flows (plain `protocol.control.FlowEntry`)."""


class OutcomeError(CapstanError, RuntimeError):
    """The records of a run are not complete: it is no result."""


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """One flow. Times are seconds since the run's start; None: did not happen.

    paths: datagrams that the receiving agent got, by path stamp ("0": below one leaf). packets: inner packets
    that the sending agent wrapped, without repairs. copy_packets: those of the copy that was not first, where the
    sender replicated the flow; no other count has them, nor have `paths` theirs. out_of_order: TCP segments that
    the receiving kernel got behind a gap; reordered: what the receiving agent saw out of order before its own
    release. counted: whether it is part of the figures.
    """

    id: int
    source: str
    destination: str
    source_port: int
    traffic_class: TrafficClassName
    size_bytes: int | None
    state: FlowState
    error: str
    planned_s: float
    started_s: float | None
    fct_s: float | None
    bytes_acked: int
    window_bytes: int
    window_s: float
    retransmissions: int
    bytes_retransmitted: int
    duplicates_reported: int
    reordering_events: int
    out_of_order: int
    rtt_ms: float
    min_rtt_ms: float
    packets: int = 0
    repairs: int = 0
    recovered: int = 0
    lost: int = 0
    reordered: int = 0
    release_timeouts: int = 0
    copy_packets: int = 0
    application: str = ""
    port: int = 0
    counted: bool = True
    paths: Mapping[str, int] = field(default_factory=dict)


Runs = Sequence[Sequence[FlowOutcome]]
"""Outcomes of one scheme: one sequence for each repeat, planned flows in the plan's order."""


def join(
    plan: Plan,
    sent: Iterable[SentFlow],
    received: Iterable[ReceivedFlow],
    agent_flows: Iterable[Mapping[str, Any]],
) -> tuple[FlowOutcome, ...]:
    """Return one outcome for every planned flow, in the plan's order.

    agent_flows: plain `protocol.control.FlowEntry` records of all agents; matched by inner 5-tuple, the
    direction of the payload.

    Raises:
        OutcomeError: a planned flow has no record.
    """
    by_id = {flow.id: flow for flow in sent}
    got = {(flow.id, flow.copy): flow for flow in received}
    entries = _by_connection(agent_flows)
    outcomes = []
    for planned in plan.flows:
        flow = by_id.get(planned.id)
        if flow is None:
            raise OutcomeError(f"flow {planned.id} ({planned.source} to {planned.destination}) has no record")
        address = (flow.source_address, flow.source_port, flow.address, flow.port)
        other = (flow.source_address, flow.other_port, flow.address, flow.port)
        outcomes.append(
            _outcome(
                planned,
                flow,
                got.get((planned.id, 0 if flow.source_port == planned.source_port else 1)),
                at_sender=entries.get(("sender", *address), []),
                at_receiver=entries.get(("receiver", *address), []),
                of_copy=[] if flow.other_port is None else entries.get(("sender", *other), []),
            )
        )
    return tuple(outcomes)


def _by_connection(
    agent_flows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str, int | None, str, int], Entries]:
    """Return agents' records of TCP flows by side and inner 4-tuple."""
    entries: dict[tuple[str, str, int | None, str, int], list[Mapping[str, Any]]] = {}
    for entry in agent_flows:
        if entry["protocol"] == _TCP:
            key = (
                entry["side"],
                entry["source"],
                entry["source_port"],
                entry["destination"],
                entry["destination_port"],
            )
            entries.setdefault(key, []).append(entry)
    return dict(entries)


def _outcome(
    planned: PlannedFlow,
    flow: SentFlow,
    arrived: ReceivedFlow | None,
    *,
    at_sender: Entries,
    at_receiver: Entries,
    of_copy: Entries,
) -> FlowOutcome:
    """Return what became of a flow. of_copy: the sending agent's records of the copy that was not first."""
    return FlowOutcome(
        id=flow.id,
        source=planned.source,
        destination=planned.destination,
        source_port=flow.source_port,
        traffic_class=planned.traffic_class,
        size_bytes=flow.size_bytes,
        state=flow.state,
        error=flow.error,
        planned_s=flow.planned_s,
        started_s=flow.started_s,
        fct_s=flow.fct_s,
        bytes_acked=flow.bytes_acked,
        window_bytes=flow.window_bytes,
        window_s=flow.window_s,
        retransmissions=flow.retransmissions,
        bytes_retransmitted=flow.bytes_retransmitted,
        duplicates_reported=flow.duplicates_reported,
        reordering_events=flow.reordering_events,
        out_of_order=arrived.out_of_order if arrived else 0,
        rtt_ms=flow.rtt_ms,
        min_rtt_ms=flow.min_rtt_ms,
        packets=_total(at_sender, "packets"),
        repairs=_total(at_sender, "repairs"),
        recovered=_total(at_receiver, "recovered"),
        lost=_total(at_receiver, "lost"),
        reordered=_total(at_receiver, "reordered"),
        release_timeouts=_total(at_receiver, "release_timeouts"),
        copy_packets=_total(of_copy, "packets"),
        application=planned.application,
        port=flow.port,
        counted=planned.counted,
        paths=_paths(at_receiver),
    )


def _total(entries: Entries, name: str) -> int:
    return sum(int(entry.get(name, 0)) for entry in entries)


def _paths(entries: Entries) -> dict[str, int]:
    paths: dict[str, int] = {}
    for entry in entries:
        for stamp, count in entry.get("paths", {}).items():
            paths[str(stamp)] = paths.get(str(stamp), 0) + int(count)
    return {stamp: paths[stamp] for stamp in sorted(paths, key=int)}
