"""Messages between the controller and a host agent, over one reliable byte stream (`protocol.frames`).

Opening, so that neither side's token ever crosses the wire::

    controller -> Challenge(nonce)
    agent      -> Hello(proof = HMAC-SHA256(token, "agent" + nonce), nonce, who it is)
    controller -> Welcome(proof = HMAC-SHA256(token, "controller" + agent's nonce)) or Refused

then Directory, Policy and Paths whenever they change; the agent answers a Policy with PolicyApplied, sends Counters
every second, FlowReport (in parts) when asked by Report, and ActiveFlows while WatchFlows asks for them; SentAgain
where admission is in force and TCP has sent something again. PathLoad goes both ways, under policies that share it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from protocol import admission
from protocol.limits import (
    ACTIVE_MOST,
    COLUMN_MOST,
    PATHS_MOST,
    Count,
    Name,
    Port,
    Seconds,
    Text,
    Version,
)
from protocol.priority import FeatureName, TypePriority
from protocol.sent_again import SentAgain

FLOWS_PER_PART: Final = 256
"""Of a report: with the most paths that an agent counts of a flow (1024) they fit a frame."""
PathCounts = Annotated[dict[Name, Count], Meta(max_length=PATHS_MOST)]
"""Datagrams by path stamp, as text."""
Numbers = Annotated[list[int], Meta(max_length=COLUMN_MOST)]
Addresses = Annotated[list[Text], Meta(max_length=COLUMN_MOST)]
Times = Annotated[list[Seconds], Meta(max_length=COLUMN_MOST)]
MOST_FLOWS: Final = 131072
"""Of all parts of a report: those of two tables of an agent that are full."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The controller asks an agent to prove that it has the token."""

    type: ClassVar[str] = "challenge"
    nonce: Text


@dataclass(frozen=True, slots=True)
class Hello:
    """Who the agent is. Addresses as text; ``session`` is the number in its datagrams."""

    type: ClassVar[str] = "hello"
    proof: Text
    nonce: Text
    host: Text
    underlay_ip: Text
    underlay_mac: Text
    overlay: Annotated[list[Text], Meta(max_length=COLUMN_MOST)]
    session: int
    version: Text


@dataclass(frozen=True, slots=True)
class Welcome:
    """The agent is taken in; the controller proves in turn that it has the token."""

    type: ClassVar[str] = "welcome"
    proof: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The agent is not taken in; the connection ends."""

    type: ClassVar[str] = "refused"
    reason: str


@dataclass(frozen=True, slots=True)
class Peer:
    """An agent. ``leaf``: the switch that it is at, "" while that is not known; peers of a leaf share their paths."""

    host: str
    underlay_ip: str
    overlay: list[str]
    session: int
    leaf: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """All agents of the fabric (the receiver among them); replaces the last one.

    ``authenticated``: datagrams are, by the keys of the `DatagramKeys` before it.
    """

    type: ClassVar[str] = "directory"
    peers: list[Peer]
    authenticated: bool = False


@dataclass(frozen=True, slots=True)
class DatagramKeys:
    """Keys by which the receiver and each of its peers authenticate datagrams; replaces the last ones.

    ``keys``: by the peer's underlay address, each key (32 hexadecimal digits) by its number on the wire (as text).
    ``sending``: the number of the one to send by.
    """

    type: ClassVar[str] = "datagram-keys"
    sending: int
    keys: dict[str, dict[str, str]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Paths:
    """Which paths are alive from the receiver's leaf; replaces the last one.

    ``paths``: by destination leaf (as in `Peer.leaf`) the stamps of its paths, ascending; a leaf that is missing is
    the receiver's own, or cannot be reached, or is reached without a switch that stamps. ``by_class``: the stamps
    that a traffic class ("short", "long", "control") is to keep to, wherever it goes; a class that is missing has
    them all.
    """

    type: ClassVar[str] = "paths"
    paths: dict[str, tuple[int, ...]]
    by_class: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathLoad:
    """What is on the paths from a leaf; replaces the last one. Sent only under policies that share it.

    From an agent: what its host has there. From the controller: what the other hosts at its leaf have together.
    ``short_flows``: those that are active, by path stamp (as text). ``delays_s``: how long packets wait, in seconds
    above the least, by destination leaf and path stamp; a path that is missing is free or unknown.
    """

    type: ClassVar[str] = "path-load"
    short_flows: dict[Text, int]
    delays_s: dict[Text, dict[Text, float]]


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """What is in force from now on: a `protocol.policy.Policy` as plain data."""

    type: ClassVar[str] = "policy"
    policy: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FlowTypes:
    """Types of flows with thresholds of their own, under policy *version* (another one's are ignored); replaces the
    last ones. Flows go on with what they have sent."""

    type: ClassVar[str] = "flow-types"
    version: int
    features: tuple[FeatureName, ...]
    types: tuple[TypePriority, ...]


@dataclass(frozen=True, slots=True)
class FinishedFlows:
    """Flows of the sender's host that have ended, under policies that predict: columns of equal length.

    ``bytes``: payload; times are seconds of the host's monotonic clock, ``now_s`` among them.
    """

    type: ClassVar[str] = "finished-flows"
    now_s: Seconds
    protocol: Numbers
    source: Addresses
    source_port: Numbers
    destination: Addresses
    destination_port: Numbers
    bytes: Numbers
    start_s: Times
    end_s: Times


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """An agent has taken that version of the policy; ``error``: why it has not."""

    type: ClassVar[str] = "policy-applied"
    version: Version
    error: str = ""


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals since the agent's start, by name; gauges carry a unit in their name."""

    type: ClassVar[str] = "counters"
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """Ask for the records of all flows that were active since the last report that said ``forget``."""

    type: ClassVar[str] = "report"
    id: Count
    forget: bool = False


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """One inner flow and direction as one agent saw it.

    ``side`` is "sender" or "receiver". ``paths`` counts datagrams by path stamp (receiver: seen; "0" is no
    top tier), ``paths_by_class`` the same for each traffic class that they came in: ``traffic_class`` is that of the
    newest data, but a long flow began as a short one, and its control packets are a class of their own. ``priority``
    (sender): of its newest data. Times are seconds of the host's monotonic clock.
    """

    side: Name
    protocol: Count
    source: Text
    source_port: Port
    destination: Text
    destination_port: Port
    traffic_class: Name
    packets: Count
    bytes: Count
    first_s: Seconds
    last_s: Seconds
    paths: PathCounts = field(default_factory=dict)
    repairs: Count = 0
    recovered: Count = 0
    lost: Count = 0
    reordered: Count = 0
    held: Count = 0
    release_timeouts: Count = 0
    paths_by_class: Annotated[dict[Name, PathCounts], Meta(max_length=8)] = field(default_factory=dict)
    priority: Count = 0


@dataclass(frozen=True, slots=True)
class FlowReport:
    """The answer to the request with this ``id``, or a part of it. ``more``: another part follows."""

    type: ClassVar[str] = "flows"
    id: Count
    flows: Annotated[list[FlowEntry], Meta(max_length=MOST_FLOWS)]
    more: bool = False

    @classmethod
    def parts(cls, number: int, flows: list[FlowEntry]) -> list[FlowReport]:
        """Return *flows* as the answer to the request *number*."""
        firsts = range(0, max(1, len(flows)), FLOWS_PER_PART)
        return [
            cls(number, flows[first : first + FLOWS_PER_PART], first + FLOWS_PER_PART < len(flows))
            for first in firsts
        ]


@dataclass(frozen=True, slots=True)
class WatchFlows:
    """Ask for the flows that are active, as `ActiveFlows` every so many seconds; 0: no longer."""

    type: ClassVar[str] = "watch-flows"
    every_s: float
    most: int


@dataclass(frozen=True, slots=True)
class ActiveFlows:
    """Flows that were active since the last one, those with the most bytes; ``more``: how many found no room.

    ``now_s``: the clock that the entries' times are of. What entries count begins where a report last said ``forget``.
    """

    type: ClassVar[str] = "active-flows"
    now_s: Seconds
    flows: Annotated[list[FlowEntry], Meta(max_length=ACTIVE_MOST)]
    more: Count = 0


@dataclass(frozen=True, slots=True)
class Impair:
    """Make the receiving side of an agent lossy on purpose, for tests: shares 0..1, delay in seconds."""

    type: ClassVar[str] = "impair"
    loss: float = 0.0
    reorder: float = 0.0
    reorder_delay_s: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0


@dataclass(frozen=True, slots=True)
class Crash:
    """End at once, as a process does that is killed: a fault that is made on purpose, in labs."""

    type: ClassVar[str] = "crash"


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for a `Pong` with the same ``id``."""

    type: ClassVar[str] = "ping"
    id: Count


@dataclass(frozen=True, slots=True)
class Pong:
    """Answers a `Ping`."""

    type: ClassVar[str] = "pong"
    id: Count


Message = (
    Challenge
    | Hello
    | Welcome
    | Refused
    | Directory
    | DatagramKeys
    | Paths
    | PathLoad
    | SetPolicy
    | FlowTypes
    | FinishedFlows
    | PolicyApplied
    | Counters
    | Report
    | FlowReport
    | WatchFlows
    | ActiveFlows
    | Impair
    | Crash
    | Ping
    | Pong
    | SentAgain
    | admission.AdmissionMessage
)


def proof(token: str, role: str, nonce: str) -> str:
    """Return HMAC-SHA256 of role and nonce under the shared token, hex. Compare with `hmac.compare_digest`."""
    return hmac.new(token.encode(), f"{role}:{nonce}".encode(), hashlib.sha256).hexdigest()
