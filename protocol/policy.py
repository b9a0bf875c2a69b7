"""The policy document: what every agent does with the packets of its host.

A scheme is a composition (docs/architecture.md): per traffic class a path policy, a coding policy and a
release policy. The agent acts on this document alone and keeps its last one while the controller is away.
All times are in seconds; the controller has already turned packet times into seconds. Their defaults are a scheme's, at
the default link rate (`protocol.packet_time`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from capstan_client.errors import CapstanError
from plain.bounds import first_beyond
from plain.reading import PlainError, build
from protocol.admission import AdmissionPolicy
from protocol.packet_time import FLUSH_PACKET_TIMES, PACKET_TIME_S, PATH_TIMES
from protocol.priority import MOST_BYTES, PriorityPolicy, priority_problem
from protocol.underlay import PRIORITIES

PathKind = Literal[
    "spray",
    "flow-hash",
    "label-hash",
    "round-robin",
    "granted",
    "flowcell",
    "flowlet",
    "tr",
    "reps",
    "plb",
    "unblocked",
    "file",
]
"""How source ports are chosen (docs/paths.md); ``file``: by what each agent was started with."""
CodeName = Literal["xor", "rlc", "ldpc", "mds"]
RedundancyRule = Literal["paper", "target-decode-probability", "adaptive", "htpc", "one-per-unit"]
"""How many repairs a unit gets (docs/coding.md)."""
UnitRule = Literal["optimal", "window"]
"""Size of a unit: CAPS's Eq. 4, or the flow's congestion window."""
EstimatorName = Literal["paths", "rtt", "rtt-average", "rtt-smoothed", "loss-rate", "marks"]
"""How pB is estimated (docs/coding.md); ``marks`` needs ports that mark packets."""

ReleaseRule = Literal["timer", "paths"]
"""When packets behind a gap go on: after a time, or when every path has delivered a later one (docs/schemes.md)."""


class PolicyError(CapstanError, ValueError):
    """A policy document that cannot be used; the text names the field."""


SHARING: Final[frozenset[PathKind]] = frozenset({"tr", "file"})
"""Kinds whose agents share what is on the paths of their leaf (`protocol.control.PathLoad`); of ``file`` an own policy
may."""

PathTime = Annotated[float, Meta(gt=0, le=600)]
NotNegative = Annotated[int, Meta(ge=0, le=MOST_BYTES)]


@dataclass(frozen=True, slots=True)
class PathSettings:
    """What has no meaning to a kind is at its default (`PATH_PARAMETERS`)."""

    kind: PathKind = "spray"
    flowcell_bytes: Annotated[int, Meta(ge=1, le=1 << 30)] = 65536
    """flowcell: bytes of inner packets on one path, then the next."""
    gap_s: PathTime = PATH_TIMES["gap_s"] * PACKET_TIME_S
    """flowlet: a longer pause ends a flowlet."""
    congested_s: PathTime = PATH_TIMES["congested_s"] * PACKET_TIME_S
    """reps, plb: a one-way delay that is more than this above the least counts as a congestion mark; unblocked: as
    blocked."""
    explore_packets: Annotated[int, Meta(ge=1, le=65536)] = 32
    """reps: sent at random when a flow begins or thaws."""
    freeze_s: PathTime = PATH_TIMES["freeze_s"] * PACKET_TIME_S
    """reps: how long a loss freezes a flow."""
    congested_share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """plb: of a round's packets; makes the round congested."""
    rounds: Annotated[int, Meta(ge=1, le=10000)] = 12
    """plb: congested rounds in succession that move a flow."""
    idle_rounds: Annotated[int, Meta(ge=1)] = 3
    """plb: as ``rounds``, for a flow that has nothing on its way."""
    avoid_s: PathTime = PATH_TIMES["avoid_s"] * PACKET_TIME_S
    """unblocked: how long a blocked path is avoided."""
    suspend_s: PathTime = 60.0
    """plb: for one to two times that long after a time-out, congestion moves the flow no more."""


PATH_PARAMETERS: Final[dict[PathKind, frozenset[str]]] = {
    "flowcell": frozenset({"flowcell_bytes"}),
    "flowlet": frozenset({"gap_s"}),
    "reps": frozenset({"congested_s", "explore_packets", "freeze_s"}),
    "plb": frozenset({"congested_s", "congested_share", "rounds", "idle_rounds", "suspend_s"}),
    "unblocked": frozenset({"congested_s", "avoid_s"}),
}
"""Which parameters a kind has; a kind that is missing has none."""


@dataclass(frozen=True, slots=True)
class Weight:
    """HTPC's: how the redundancy of a flow fades with the payload bytes D that it has sent."""

    full_bytes: NotNegative = 100_000
    """T_s: up to here a flow has the weight 1."""
    none_bytes: NotNegative = 1_000_000
    """T_w: from here on it has the weight 0."""
    fast_retransmit: Annotated[int, Meta(ge=0, le=128)] = 3
    """T_fr: duplicate ACKs that make TCP send again without a time-out."""

    def problem(self) -> tuple[str, str] | None:
        """Return field and text of what cannot be; None if all is well."""
        if self.none_bytes <= self.full_bytes:
            return "none_bytes", f"must be above full_bytes ({self.full_bytes} B)"
        return None


@dataclass(frozen=True, slots=True)
class CodingRules:
    """Coding of one class's packets (CAPS, section VI; rules and estimators: docs/coding.md), but for its times."""

    code: CodeName = "rlc"
    redundancy: RedundancyRule = "target-decode-probability"
    target_decode_probability: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    estimator: EstimatorName = "paths"
    unit: UnitRule = "optimal"
    weight: Weight | None = None
    """Of redundancy ``htpc``, and of no other."""
    max_k: Annotated[int, Meta(ge=1, le=128)] = 32
    """Most source packets in one unit; the unit size is the smaller of this and what ``unit`` says."""
    max_r: Annotated[int, Meta(ge=1, le=64)] = 16
    max_overhead: Annotated[float, Meta(gt=0, le=64)] = 0.75
    """Most repairs per source packet: past some share of blocked paths, repairs only lengthen the queues."""


@dataclass(frozen=True, slots=True)
class CodingPolicy(CodingRules):
    """Coding of one class's packets."""

    sampling_s: Annotated[float, Meta(gt=0, le=60)] | None = None
    """Sampling time of all estimators but ``paths``; None: 256 packet times."""
    flush_s: Annotated[float, Meta(gt=0, le=1)] = FLUSH_PACKET_TIMES * PACKET_TIME_S
    """A unit that has got no packet for this long is closed with the packets it has."""


@dataclass(frozen=True, slots=True)
class ReleasePolicy:
    """In-order release at the receiver: how long packets behind a gap are held."""

    timeout_s: Annotated[float, Meta(gt=0, le=10)] = 0.017
    """timer: at most this long. paths: a path that was silent for this long is waited for no more."""
    rule: ReleaseRule = "timer"


@dataclass(frozen=True, slots=True)
class ClassPolicy:
    """How the packets of one class are sent and received. None: without coding, without in-order release."""

    path: PathSettings = field(default_factory=PathSettings)
    coding: CodingPolicy | None = None
    release: ReleasePolicy | None = None
    priority: Annotated[int, Meta(ge=0, le=PRIORITIES - 1)] = 0
    """In the outer DSCP of the class's packets: 0 (served first) .. 7."""


@dataclass(frozen=True, slots=True)
class Policy:
    """All that an agent gets of the scheme in force."""

    version: int
    scheme: str
    packet_time_s: Annotated[float, Meta(gt=0)] = PACKET_TIME_S
    """Time of 1500 B on the slowest fabric link."""
    short_limit_bytes: NotNegative = 100_000
    """A flow is short while it has sent less payload than this (per inner 5-tuple and direction)."""
    prior_knowledge: bool = False
    """Whether announced sizes (`host_agent.announcements`) are believed: such a flow has its class from its first
    packet. False: only what a flow has sent counts."""
    short: ClassPolicy = field(default_factory=ClassPolicy)
    long: ClassPolicy = field(default_factory=ClassPolicy)
    control: ClassPolicy = field(default_factory=ClassPolicy)
    priority: PriorityPolicy = field(default_factory=PriorityPolicy)
    """Of the packets of short and long flows; kind ``class``: their class's."""
    admission: AdmissionPolicy | None = None
    """Of flows that ask the controller before they send (CAPTON); None: none does."""

    @property
    def shares_paths(self) -> bool:
        """Return whether agents may report what is on the paths of their leaf."""
        return any(of_class.path.kind in SHARING for of_class in (self.short, self.long, self.control))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; `from_dict` is its inverse."""
        data = dataclasses.asdict(self)
        data["priority"]["thresholds_bytes"] = list(self.priority.thresholds_bytes)
        return data

    @classmethod
    def from_dict(cls, data: object) -> Policy:
        """Return the policy. Raise PolicyError naming the first field that is unknown, missing or out of
        range.
        """
        try:
            policy = build(cls, data, "policy")
        except PlainError as error:
            raise PolicyError(str(error)) from None
        _check(policy)
        return policy


DEFAULT_POLICY: Final = Policy(
    version=0,
    scheme="none",
    short=ClassPolicy(PathSettings("flow-hash")),
    long=ClassPolicy(PathSettings("flow-hash")),
    control=ClassPolicy(PathSettings("flow-hash")),
)
"""What an agent does before the controller has said anything: plain ECMP."""


def _check(policy: Policy) -> None:
    def need(true: bool, where: str, text: str) -> None:
        if not true:
            raise PolicyError(f"policy.{where}: {text}")

    for name in ("short", "long", "control"):
        of_class: ClassPolicy = getattr(policy, name)
        wrong = path_problem(of_class.path)
        if wrong is not None:
            need(False, f"{name}.path.{wrong[0]}", wrong[1])
        if of_class.coding is not None:
            need(name != "control", f"{name}.coding", "control packets are never coded")
            wrong = coding_problem(of_class.coding, of_class.coding.sampling_s)
            if wrong is not None:
                need(False, f"{name}.coding.{wrong[0]}", wrong[1])
    wrong = priority_problem(policy.priority)
    if wrong is not None:
        need(False, f"priority.{wrong[0]}", wrong[1])
    wrong = None if policy.admission is None else policy.admission.problem()
    if wrong is not None:
        need(False, f"admission.{wrong[0]}", wrong[1])
    codings = [coding for coding in (policy.short.coding, policy.long.coding) if coding is not None]
    different = one_estimator([(coding.estimator, coding.sampling_s) for coding in codings])
    need(different is None, "long.coding.estimator", different or "")


def coding_problem(rules: CodingRules, sampling: float | None) -> tuple[str, str] | None:
    """Return field and text of what does not go together in a coding (of a scheme or a policy) with this sampling time
    of its own; None if all does.
    """
    redundancy, weight = rules.redundancy, rules.weight
    if redundancy == "htpc" and weight is None:
        return "weight", "is missing: redundancy htpc needs it (`weight: {}` for the defaults)"
    if redundancy != "htpc" and weight is not None:
        return "weight", f"means nothing to redundancy {redundancy}, only to htpc: leave it out"
    if weight is not None and (wrong := weight.problem()) is not None:
        return f"weight.{wrong[0]}", wrong[1]
    if redundancy == "adaptive" and rules.code not in ("rlc", "mds"):
        text = f"adaptive counts symbols, which decide for codes rlc and mds, not for {rules.code}"
        return "redundancy", text
    if sampling is not None and rules.estimator == "paths":
        return "sampling_s", "means nothing to estimator paths, only to the others: leave it out"
    return None


def one_estimator(wanted: Sequence[tuple[EstimatorName, float | None]]) -> str | None:
    """Return what is wrong if coded classes, short before long, want different estimators (name, sampling time)."""
    if len(set(wanted)) < 2:
        return None
    short, long = (
        f"{name} with {'the default' if time is None else f'{time:g}'} sampling time" for name, time in wanted
    )
    return f"{long} is not what short.coding has ({short}): one estimator serves both classes"


def path_problem(path: PathSettings) -> tuple[str, str] | None:
    """Return field and text of what cannot be in a path policy; None if all can."""
    wrong = first_beyond(path)
    if wrong is not None:
        return wrong
    if path.idle_rounds > path.rounds:
        return "idle_rounds", f"must be at most rounds ({path.rounds})"
    return None
