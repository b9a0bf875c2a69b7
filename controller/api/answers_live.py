"""What the API answers about the fabric in operation: links with their loads, flows and their histories, faults."""

from __future__ import annotations

from typing import Literal, TypedDict

from controller.api.answers import PathView
from controller.live.flows import State
from controller.schemes.scheme import Mode


class QueueLoadView(TypedDict):
    """A queue of the sending port; 0 is served first."""

    queue: int
    waiting_packets: int
    bits_per_s: float
    dropped_per_s: float


class LoadView(TypedDict):
    """One direction of a link. ``share``: of its rate, 0..1; null where that is not known. ``queued_packets`` and
    ``dropped_per_s``: of all ``queues`` of the sending port; null where it is not known."""

    bits_per_s: float
    packets_per_s: float
    share: float | None
    queued_packets: int | None
    dropped_per_s: float | None
    queues: list[QueueLoadView]


class LinkLoadView(TypedDict):
    """``ab``: from the end named first to the other, ``ba``: back; null: not measured."""

    name: str
    kind: Literal["fabric", "access"]
    up: bool
    rate_kbps: float | None
    ab: LoadView | None
    ba: LoadView | None


class LinksView(TypedDict):
    """``at``: when it was measured, over the ``interval_s`` before."""

    at: float
    interval_s: float
    links: list[LinkLoadView]


class FlowCounts(TypedDict):
    """What the agents of a flow's sender and receiver count. ``paths``: packets by path stamp (as text)."""

    priority: int
    bytes: int
    received_bytes: int
    packets: int
    repairs: int
    recovered: int
    lost: int
    reordered: int
    held: int
    release_timeouts: int
    paths: dict[str, int]


class LiveFlow(FlowCounts):
    """A flow as agents report it; times are Unix seconds. ``paths``: packets by path stamp (as text),
    ``paths_now``: of them, those since the sample before; ``bytes``, ``packets``, ``repairs``, ``priority`` (0 is
    served first; a port's last queue takes what is beyond it) are the sender's."""

    id: int
    source: str
    destination: str
    protocol: str
    source_port: int
    destination_port: int
    traffic_class: str
    state: State
    started_at: float
    last_at: float
    bits_per_s: float
    paths_now: dict[str, int]


class LiveFlowsView(TypedDict):
    """Newest first; ``next``: go on with ``before=next``, null at the end."""

    flows: list[LiveFlow]
    next: int | None


class FlowStep(FlowCounts):
    """What a flow has done since the step before; ``priority``: what its newest packets had."""

    at: float


class ModeAt(TypedDict):
    at: float
    leaf: str
    mode: Mode
    cause: str


class FullestView(TypedDict):
    """Of the queues on a flow's way, the fullest at a moment. ``direction``: "ab" is from the end named first."""

    at: float
    link: str
    direction: Literal["ab", "ba"]
    queued_packets: int
    dropped_per_s: float


class FaultChange(TypedDict):
    at: float
    kind: Literal["fault-began", "fault-ended"]
    fault: FaultView


class FlowDetail(TypedDict):
    """``modes``: of its two leaves; the first of each is from before its start. ``queues``: moments at which something
    waited on its paths, as far as links were sampled then. ``faults``: what began and ended meanwhile."""

    flow: LiveFlow
    timeline: list[FlowStep]
    modes: list[ModeAt]
    paths: list[PathView]
    queues: list[FullestView]
    faults: list[FaultChange]


class FaultView(TypedDict):
    """``rate_mbps``, ``delay_ms``: of slow links; null where the fault is not about them."""

    id: int
    kind: Literal["link-down", "switch-down", "slow-link", "agent-down"]
    target: str
    rate_mbps: float | None
    delay_ms: float | None
    began_at: float


class FaultsView(TypedDict):
    """``possible``: whether this controller makes faults at all: in labs only."""

    faults: list[FaultView]
    possible: bool


class EndedFault(TypedDict):
    ended: int


class RestartView(TypedDict):
    """A part of the lab that ended, how, and after how long it was back."""

    part: str
    how: str
    after_s: float
