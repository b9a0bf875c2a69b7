"""What the API answers about the fabric: types that mypy checks the views by, and that `openapi` describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from controller.agents.asking import AgentInfo
from controller.api.bodies import ImpairmentBody
from controller.api.describing import Open
from controller.plane.naming import Role
from controller.queues.ports import By
from controller.schemes.scheme import Mode, Scheme
from controller.tpfs.learner import LearnerState
from protocol.control import FlowEntry
from protocol.policy import Policy

SchemeObject = Annotated[dict[str, Any], Scheme]
AgentObject = Annotated[dict[str, Any], AgentInfo]
ImpairmentObject = Annotated[dict[str, Any], ImpairmentBody]
LearnerObject = Annotated[dict[str, Any], LearnerState]


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
    they do not; ``rate_kbps``: what it carries (in a lab less than its ports say), null where it is not known."""

    name: str
    kind: Literal["fabric"]
    a: Place
    b: Place
    up: bool
    speed_kbps: int
    rate_kbps: float | None


class HostView(TypedDict):
    """``name``: as its agent says, "" without one. ``place``: null until it was seen at a port."""

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
    """``by``: who gives the port its queues: a writer on the switch, Open vSwitch itself, or none. ``problem``: why
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
    """``cursor``: go on with ``since=cursor``."""

    events: list[EventObject]
    cursor: int


class AgentsView(TypedDict):
    agents: list[AgentObject]


class SchemesView(TypedDict):
    schemes: list[SchemeObject]


class SchemeView(TypedDict):
    """The scheme in force, with its overrides; ``policy``: what agents have got."""

    scheme: SchemeObject
    base: str
    overrides: dict[str, Any]
    packet_time_us: float
    version: int
    policy: Annotated[dict[str, Any], Policy]


class AppliedScheme(SchemeView):
    """As `SchemeView`; ``applied_ms``: until all switches and agents had confirmed."""

    applied_ms: float


class ReportView(TypedDict):
    """``missing``: hosts that did not answer in time."""

    hosts: dict[str, list[Annotated[dict[str, Any], FlowEntry]]]
    missing: list[str]


class SessionView(TypedDict):
    """What the token that was shown allows. until: when the session ends (Unix seconds); null: none is needed."""

    role: Literal["operate", "read"]
    until: int | None


class EndedSession(TypedDict):
    """The browser has forgotten its session, if it had any."""

    ended: bool
