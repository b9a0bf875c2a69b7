"""Flow records: what was measured of each flow, as the generator reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrafficClassName = Literal["short", "long"]
Replication = Literal["flow", "syn"]
"""What a sender opens twice: a whole flow (RepFlow), or its connection only (RepSYN)."""
FlowState = Literal["finished", "background", "failed"]
"""finished: the receiving application acknowledged all bytes; background: sent until the run's end."""


@dataclass(frozen=True, slots=True)
class FlowOrder:
    """What a sending host gets of each of its flows: the plan with addresses.

    replication: open it twice, from `source_port` and from `copy_port`; None: once. port: of the receiver; None:
    the generator's own.
    """

    id: int
    address: str
    source_port: int
    start_s: float
    size_bytes: int | None
    traffic_class: TrafficClassName
    copy_port: int | None = None
    replication: Replication | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SentFlow:
    """One flow as its sender measured it. Times: seconds since the run's start.

    `fct_s` is from before connect() to the byte by which the receiving application says that it has read
    everything; None unless finished. `window_bytes` were acknowledged by TCP within `window_s` seconds of the
    measuring window (background flows). A replicated flow's times, source port and `bytes_acked` are those of
    the copy that was first, its counts those of both copies; `other_port` is the other copy's.
    """

    id: int
    state: FlowState
    error: str
    traffic_class: TrafficClassName
    size_bytes: int | None
    source_address: str
    source_port: int
    address: str
    port: int
    planned_s: float
    started_s: float | None
    finished_s: float | None
    fct_s: float | None
    bytes_acked: int = 0
    window_bytes: int = 0
    window_s: float = 0.0
    retransmissions: int = 0
    bytes_retransmitted: int = 0
    reordering_events: int = 0
    duplicates_reported: int = 0
    rtt_ms: float = 0.0
    min_rtt_ms: float = 0.0
    other_port: int | None = None


@dataclass(frozen=True, slots=True)
class ReceivedFlow:
    """One flow as its receiver measured it; `id` and `copy` are what the sender wrote into the flow's header."""

    id: int
    bytes: int
    out_of_order: int
    """TCP segments that arrived behind a gap."""
    copy: int = 0
