"""What the API answers about CAPTON's admission."""

from __future__ import annotations

from typing import Literal, TypedDict

from protocol.sent_again import FlowState, Trigger, Verdict


class CaptonTotals(TypedDict):
    granted_flows: int
    waiting_flows: int
    granted_bps: int
    remaining_bytes: int


class CaptonFlow(TypedDict):
    """``rate_bps``: of the link, 0 while it waits. ``asked_bytes``: with its first request. ``path``: its stamp, where
    it was granted one of its own."""

    flow: int
    source: str
    destination: str
    state: Literal["granted", "waiting"]
    rate_bps: int
    remaining_bytes: int
    asked_bytes: int
    asked_s_ago: float
    path: int | None


class CaptonLink(TypedDict):
    """A virtual link: a host's, or all those above a leaf or pod together. ``kind`` path: one link of single paths."""

    name: str
    of: str
    kind: str
    direction: str
    capacity_bps: int
    granted_bps: int
    utilisation: float


class CaptonHost(TypedDict):
    """What an agent has counted since its start, but ``unscheduled_now``: flows that send without a decision."""

    host: str
    flows_small: int
    flows_scheduled: int
    flows_unscheduled_by_fail_safe: int
    unscheduled_now: int
    bytes_sent_again: int


class LatencyBucket(TypedDict):
    from_us: float
    to_us: float
    count: int


class CaptonLatency(TypedDict):
    """From request to decision, as agents have measured it; quantiles are the upper ends of their buckets."""

    count: int
    median_us: float | None
    p99_us: float | None
    buckets: list[LatencyBucket]


class CaptonView(TypedDict):
    """``enabled``: whether the scheme has admission. ``flows``: those with the least left first, at most 1000."""

    enabled: bool
    scheme: str
    paths: str | None
    totals: CaptonTotals
    flows: list[CaptonFlow]
    links: list[CaptonLink]
    counters: dict[str, int]
    hosts: list[CaptonHost]
    latency: CaptonLatency


class ResentCause(TypedDict):
    """``verdict``: "queue" (dropped in the host's queue, before its agent), "needless" (it was there), "lost"."""

    state: FlowState
    trigger: Trigger
    verdict: Verdict
    bytes: int


class ResentEpisode(TypedDict):
    """Payload that one connection retransmitted, until all was acknowledged that had left then. ``quiet_s``: how long
    nothing new had been acknowledged when it began. ``late_s``: how late the agent's loop was at most in the second
    before. ``number``: of all that were reported."""

    number: int
    s_ago: float
    host: str
    source: str
    source_port: int
    destination: str
    destination_port: int
    state: FlowState
    trigger: Trigger
    lasted_s: float
    quiet_s: float
    late_s: float
    in_flight_bytes: int
    bytes: int
    needless_bytes: int
    queue_bytes: int


class ResentView(TypedDict):
    """Since the controller's start. ``episodes``: how many; ``newest``: at most 1000 of them, the newest first."""

    episodes: int
    bytes: int
    by_cause: list[ResentCause]
    newest: list[ResentEpisode]
