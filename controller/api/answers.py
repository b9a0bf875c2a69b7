"""What the API answers: types that mypy checks the views by, and that `openapi` describes."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypedDict

from controller.agents.asking import AgentInfo, Unconfirmed
from controller.api.bodies import ImpairmentBody
from controller.api.describing import Open, With
from controller.live.flows import State
from controller.live.naming import Role
from controller.queues.ports import By
from controller.schemes.scheme import Mode, Scheme
from controller.store.models import Experiment, FlowRecord, Run
from controller.tpfs.learner import LearnerState
from protocol.control import FlowEntry
from protocol.policy import Policy

SchemeObject = Annotated[dict[str, Any], Scheme]
AgentObject = Annotated[dict[str, Any], AgentInfo]
UnconfirmedObject = Annotated[dict[str, Any], Unconfirmed]
ImpairmentObject = Annotated[dict[str, Any], ImpairmentBody]
LearnerObject = Annotated[dict[str, Any], LearnerState]
_OF_JOB: Final[dict[str, Any]] = {
    "kind": Literal["experiment", "sweep", "point", "recorded"],
    "title": str,
    "parent": int | None,
    "point": int | None,
    "at": list[Any] | None,
    "words": str,
    "points": int,
    "started_at": float | None,
    "attempt": int,
}
ExperimentObject = Annotated[dict[str, Any], With(Experiment, _OF_JOB)]
RunObject = Annotated[dict[str, Any], Run]
FlowObject = Annotated[dict[str, Any], FlowRecord]
AddedRun = Annotated[dict[str, Any], With(Run, {"mode_events": int})]


class ChildView(TypedDict):
    """A point of a sweep. ``cpu_limited``: null while it has no results."""

    id: int
    point: int
    at: list[Any]
    words: str
    state: str
    error: str
    cpu_limited: bool | None


ExperimentWithRuns = Annotated[
    dict[str, Any],
    With(
        Experiment,
        {
            **_OF_JOB,
            "runs": list[RunObject],
            "children": list[ChildView],
            "progress": dict[str, Any] | None,
        },
    ),
]


class Health(TypedDict):
    """``reasons``: what is waited for. Switches, links, hosts and agents: how many are there."""

    ready: bool
    reasons: list[str]
    version: str
    uptime_s: float
    scheme: str
    switches: int
    links: int
    hosts: int
    agents: int


class Place(TypedDict):
    """A port of a switch."""

    switch: str
    port: int


class SwitchView(TypedDict):
    """``tier``: 0 is a leaf; null while no hosts are known. ``stamp``: its path stamp."""

    name: str
    dpid: str
    connected: bool
    tier: int | None
    role: Role | None
    stamp: int


class LinkView(TypedDict):
    """``name``: of its ends, the lower tier (``a``) first. ``speed_kbps``: the lower of what its two ports say, 0 if
    they do not; ``rate_kbps``: what it carries (in a lab less than its ports say), null where nobody knows."""

    name: str
    kind: Literal["fabric"]
    a: Place
    b: Place
    up: bool
    speed_kbps: int
    rate_kbps: float | None


class HostView(TypedDict):
    """``name``: as its agent says, "" without one. ``place``: null until it was heard."""

    name: str
    underlay_ip: str
    mac: str
    agent: bool
    place: Place | None
    link: str | None
    overlay: list[str]


class PathView(TypedDict):
    """One path: switches and links in order; ``stamp``: what its packets carry at the end, which is that of ``turn``,
    the switch from which it goes down (0 and null where no switch stamps)."""

    stamp: int
    switches: list[str]
    links: list[str]
    turn: str | None


class PathsView(TypedDict):
    paths: list[PathView]


class QueueLoadView(TypedDict):
    """A queue of the sending port; 0 is served first."""

    queue: int
    waiting_packets: int
    bits_per_s: float
    dropped_per_s: float


class LoadView(TypedDict):
    """One direction of a link. ``share``: of its rate, 0..1; null where that is not known. ``queued_packets`` and
    ``dropped_per_s``: of all ``queues`` of the sending port; null where it does not tell."""

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


class LiveFlow(TypedDict):
    """A flow as agents tell of it; times are Unix seconds. ``paths``: packets by path stamp (as text),
    ``paths_now``: of them, those since the sample before; ``bytes``, ``packets``, ``repairs``, ``priority`` (0 is
    served first; a port's last queue takes what is beyond it) are the sender's."""

    id: int
    source: str
    destination: str
    protocol: str
    source_port: int
    destination_port: int
    traffic_class: str
    priority: int
    state: State
    started_at: float
    last_at: float
    bytes: int
    received_bytes: int
    packets: int
    bits_per_s: float
    paths: dict[str, int]
    paths_now: dict[str, int]
    repairs: int
    recovered: int
    lost: int
    reordered: int
    held: int
    release_timeouts: int


class LiveFlowsView(TypedDict):
    """Newest first; ``next``: go on with ``before=next``, null at the end."""

    flows: list[LiveFlow]
    next: int | None


class FlowStep(TypedDict):
    """What a flow has done since the step before; ``priority``: what its newest packets had."""

    at: float
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


class FlowStory(TypedDict):
    """``modes``: of its two leaves; the first of each is from before its start. ``queues``: moments at which something
    waited on its paths, as far as somebody watched the links. ``faults``: what began and ended meanwhile."""

    flow: LiveFlow
    timeline: list[FlowStep]
    modes: list[ModeAt]
    paths: list[PathView]
    queues: list[FullestView]
    faults: list[FaultChange]


class FaultView(TypedDict):
    """``rate_mbps``, ``delay_ms``: of slow links; null where the fault is not about them."""

    id: int
    kind: str
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


class FabricView(TypedDict):
    """The fabric as discovered; ``settled``: links are not still being found."""

    switches: list[SwitchView]
    links: list[LinkView]
    hosts: list[HostView]
    scheme: str
    settled: bool


class QueuesWanted(TypedDict):
    """``buffer_packets``: of each queue; null: as many as the link's buffer."""

    number: int
    buffer_packets: int | None


class QueueCount(TypedDict):
    """Since the queue was made; ``queue`` 0 is served first."""

    queue: int
    waiting_packets: int
    waiting_bytes: int
    dropped_packets: int
    sent_packets: int
    sent_bytes: int


class PortQueuesObject(TypedDict):
    """``by``: who gives the port its queues: a writer on the switch, Open vSwitch itself, or nobody. ``problem``: why
    they are not what is wanted, or "". ``limits``: what this port cannot do. null: not known."""

    port: int
    name: str
    by: By
    queues: int
    buffer_packets: int | None
    rate_bps: int | None
    in_force: bool
    problem: str
    limits: list[str]
    counters: list[QueueCount]


class SwitchQueuesObject(TypedDict):
    """``datapath``: "netdev" (userspace) or "system" (kernel), "" while its database has not answered."""

    switch: str
    datapath: str
    in_force: bool
    problems: list[str]
    counted_s_ago: float | None
    ports: list[PortQueuesObject]


class QueuesView(TypedDict):
    wanted: QueuesWanted
    switches: list[SwitchQueuesObject]


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
    """What an agent has counted since its start, but ``unscheduled_now``: flows that send although nobody decided."""

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


class LeafMode(TypedDict):
    leaf: str
    mode: Mode
    since_at: float


class ModeChange(TypedDict):
    cursor: int
    at: float
    leaf: str
    mode: Mode
    cause: str


class ModesView(TypedDict):
    leaves: list[LeafMode]
    events: list[ModeChange]
    cursor: int


class EventHead(TypedDict):
    """An event; further fields by its kind."""

    cursor: int
    at: float
    kind: str


EventObject = Annotated[dict[str, Any], Open(EventHead)]


class EventsView(TypedDict):
    """``cursor``: of the newest event told; go on with ``since=cursor``."""

    events: list[EventObject]
    cursor: int


class AgentsView(TypedDict):
    agents: list[AgentObject]


class SchemesView(TypedDict):
    schemes: list[SchemeObject]


class SchemeView(TypedDict):
    """The scheme in force, with its overrides; ``policy``: what agents have been told."""

    scheme: SchemeObject
    base: str
    overrides: dict[str, Any]
    packet_time_us: float
    version: int
    policy: Annotated[dict[str, Any], Policy]


class AppliedScheme(SchemeView):
    """As `SchemeView`; ``applied_ms``: until everybody had confirmed."""

    applied_ms: float


class ReportView(TypedDict):
    """``missing``: hosts that did not answer in time."""

    hosts: dict[str, list[Annotated[dict[str, Any], FlowEntry]]]
    missing: list[str]


class ExperimentsView(TypedDict):
    """Newest first; ``next``: go on with ``before=next``, null at the end."""

    experiments: list[ExperimentObject]
    next: int | None


class ResultsView(TypedDict):
    experiment: ExperimentObject
    runs: list[RunObject]
    summary: dict[str, Any] | None


class FlowsView(TypedDict):
    """Oldest first; ``next``: go on with ``after=next``, null at the end."""

    flows: list[FlowObject]
    next: int | None


class KeptMode(TypedDict):
    """A mode change during a run; ``at_s``: from the run's start."""

    run: int
    at_s: float
    leaf: str
    mode: Mode
    cause: str


class KeptModes(TypedDict):
    modes: list[Annotated[dict[str, Any], KeptMode]]


class FigureView(TypedDict):
    """A figure: ``NAME.FORMAT`` beside the list of them."""

    name: str
    caption: str
    formats: list[Literal["svg", "png"]]


class FiguresView(TypedDict):
    figures: list[FigureView]


class ExperimentHead(TypedDict):
    id: int
    name: str
    state: str
    created_at: float


class EstimateView(TypedDict):
    """``low`` and ``high``: its interval, null where it has none; ``n``: flows that it is of."""

    mean: float
    low: float | None
    high: float | None
    n: int | None


class ComparedMeasure(TypedDict):
    """``ratio``: b / a; null where a is 0."""

    name: str
    unit: str
    a: EstimateView
    b: EstimateView
    ratio: float | None


class ComparedScheme(TypedDict):
    """``cpu_limited``: of a and of b."""

    label: str
    cpu_limited: list[bool]
    measures: list[ComparedMeasure]


class ComparisonView(TypedDict):
    """``experiments``: a and b; ``schemes``: those that both have, with what both have measured."""

    experiments: list[ExperimentHead]
    schemes: list[ComparedScheme]


class SessionView(TypedDict):
    """What the token that was shown allows."""

    role: Literal["operate", "read"]
