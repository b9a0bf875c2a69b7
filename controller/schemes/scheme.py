"""A scheme: which path, coding and release policies short and long flows get. One YAML file each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from msgspec import Meta

from controller.schemes.hosts import Dctcp, PFabric
from protocol.admission import AdmissionPolicy
from protocol.packet_time import FLUSH_PACKET_TIMES, PATH_TIMES
from protocol.policy import (
    PATH_PARAMETERS,
    CodingRules,
    NotNegative,
    PathKind,
    PathSettings,
    ReleaseRule,
)

GroupKind = Literal["spray", "hash", "label"]
"""What serves a class at a switch: a dp_hash group, an ECMP hash group, or the way to the path that the agent names
(what names none, or a dead one, is sprayed)."""
Replication = Literal["flow", "syn"]
"""What senders open twice (RepFlow, INFOCOM 2014): whole short flows, or their connections only (RepSYN)."""
Mode = Literal["on", "off"]
"""Whether short flows are present (CAPS, section VII)."""
_MODES: tuple[Mode, ...] = ("on", "off")


Positive = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Paper:
    """Where a scheme is published. ``section``: which part of the paper, in words ("section 3", "Eq. 1-5"); "" if all
    of it. ``authors``, ``doi``: "" if not known.
    """

    title: str
    venue: str
    year: int
    authors: str = ""
    section: str = ""
    doi: str = ""


@dataclass(frozen=True, slots=True)
class ByMode:
    """A leaf group that follows the leaf's mode (CAPS's long flows: on: hash, off: spray)."""

    on: GroupKind
    off: GroupKind


@dataclass(frozen=True, slots=True)
class Coding(CodingRules):
    """Coding of one class's packets, with its times in packet times."""

    sampling_packet_times: Positive | None = None
    flush_packet_times: Positive = FLUSH_PACKET_TIMES


@dataclass(frozen=True, slots=True)
class PathParameters:
    """Parameters of a path policy, as in `protocol.policy.PathSettings`; only those that ``entropy`` has may be given.

    Times are in packet times, but for ``suspend_s``, which goes with TCP's own timers.
    """

    flowcell_bytes: int | None = None
    gap_packet_times: Positive | None = None
    congested_packet_times: Positive | None = None
    explore_packets: int | None = None
    freeze_packet_times: Positive | None = None
    avoid_packet_times: Positive | None = None
    congested_share: float | None = None
    rounds: int | None = None
    idle_rounds: int | None = None
    suspend_s: float | None = None

    def given(self) -> dict[str, float]:
        """Return what is not left out."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Release:
    """In-order release at the receiving agent."""

    packet_times: Positive
    """timer: how long packets behind a gap are held. paths: after which silence a path is waited for no more."""
    rule: ReleaseRule = "timer"


@dataclass(frozen=True, slots=True)
class ClassScheme:
    """How one class of packets is served."""

    group: GroupKind | None = None
    """Fixed leaf group; None when ``by_mode`` decides."""
    by_mode: ByMode | None = None
    entropy: PathKind = "spray"
    path: PathParameters | None = None
    coding: Coding | None = None
    release: Release | None = None
    priority: int = 0
    """Of the class's packets: 0 (served first) .. 7, in as many queues as the scheme has."""

    def path_settings(self, packet_time_s: float) -> PathSettings:
        """Return the path policy for the agents. packet_time_s: of 1500 B on the slowest fabric link."""
        values: dict[str, Any] = {
            name: times * packet_time_s
            for name, times in PATH_TIMES.items()
            if name in PATH_PARAMETERS.get(self.entropy, ())
        }
        for name, value in (self.path or PathParameters()).given().items():
            if name.endswith("_packet_times"):
                values[name.removesuffix("packet_times") + "s"] = value * packet_time_s
            else:
                values[name] = value
        return PathSettings(self.entropy, **values)

    def group_in(self, mode: Mode) -> GroupKind:
        """Return the leaf group that serves this class while the leaf is in *mode*."""
        if self.by_mode is not None:
            return self.by_mode.on if mode == "on" else self.by_mode.off
        assert self.group is not None  # checked when the scheme is read
        return self.group


@dataclass(frozen=True, slots=True)
class ModeRule:
    """When a leaf is ON: from the first short packet until a sampling time passes without one."""

    sampling_packet_times: Positive = 6.25
    quiet_intervals: Annotated[int, Meta(ge=1, le=1024)] = 1
    longest_hold: Annotated[int, Meta(ge=1, le=1024)] = 4
    """The hold doubles where a leaf turned ON again soon, up to so many times the shortest one; 1: never (CAPS,
    Algorithm 1)."""


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """How paths are split into low-latency ones for short and throughput ones for long flows (Freeway)."""

    deadline_packet_times: Positive = 100.0
    """99 % of the short flows' bursts are to wait at most this long."""
    burst_packets: Positive = 10.0
    """Mean length of such a burst: TCP's first window."""
    sampling_packet_times: Positive = 64.0
    samples: Annotated[int, Meta(ge=1, le=1000)] = 8
    """A load counts as the highest of so many."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Strict-priority queues of every port (docs/queues.md)."""

    number: int = 8
    buffer_packets: int | None = None
    """What each of them holds, in packets; None: as many as the link's buffer."""


@dataclass(frozen=True, slots=True)
class Printed:
    """Thresholds of types queue by queue, as TPFS's Eq. 4-7 are printed (but for beta, which is the share that
    stays)."""

    most_alpha: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    """Of each queue's good load, how much may be moved (the paper's test bed: 0.1); None: Eq. 7."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How flows' types are learnt (docs/tpfs.md)."""

    interval_s: Annotated[float, Meta(ge=0.5, le=86400.0)] = 60.0
    load: Annotated[float, Meta(gt=0, lt=1)] = 0.6
    """Of the links, for the model that chooses delta."""
    delta_bytes: Annotated[float, Meta(ge=0)] | None = None
    """Good load that may be removed, of all records; None: by the model."""
    printed: Printed | None = None
    """None: our own choice of thresholds, over all queues at once."""
    most_records: Annotated[int, Meta(ge=1000, le=10_000_000)] = 1_000_000
    most_age_s: Annotated[float, Meta(ge=1.0, le=30 * 86400.0)] = 7200.0


@dataclass(frozen=True, slots=True)
class Priority:
    """Priority of short and long flows' packets, whatever their class (docs/tpfs.md)."""

    kind: Literal["bytes-sent", "size"] = "bytes-sent"
    thresholds_bytes: tuple[int, ...] = ()
    """One fewer than there are queues."""
    scale: Positive = 1.0
    """The thresholds are for flows that are larger by 1 / scale than those of the experiment."""
    prediction: Prediction | None = None
    """None: the thresholds are the same for all flows."""

    def scaled(self) -> tuple[int, ...]:
        """Return the thresholds in bytes of the experiment's flows."""
        return tuple(round(threshold * self.scale) for threshold in self.thresholds_bytes)


@dataclass(frozen=True, slots=True)
class LoadThreshold:
    """HyLine's: at this load of the network, flows of up to so much payload leave at once."""

    load: Annotated[float, Meta(gt=0, le=1)]
    bytes: Annotated[int, Meta(ge=0, le=1 << 40)]


@dataclass(frozen=True, slots=True)
class Admission(AdmissionPolicy):
    """Large flows ask the controller before they send (CAPTON; docs/capton.md). Times are the control channel's.

    threshold_bytes: as for agents, where no load decides.
    """

    paths: Literal["all", "one"] = "all"
    """Of a granted flow: all in turn, over virtual links; or one, which the controller chooses (HyLine)."""
    load: float | None = None
    """Of the network, for ``threshold_by_load``."""
    threshold_by_load: tuple[LoadThreshold, ...] = ()
    """The row whose load is nearest counts (CAPTON, Table 4); without rows, ``threshold_bytes``."""
    least_share: Annotated[float, Meta(ge=1e-6, le=1)] = 1.0
    ageing_bytes_per_s: Annotated[int, Meta(ge=0, le=1 << 40)] = 0
    finish_timeout_s: Annotated[float, Meta(gt=0, le=600)] = 0.5
    """See `controller.capton.scheduler.Parameters`."""

    def threshold(self) -> int:
        """Return the payload bytes up to which flows leave at once."""
        if self.load is None or not self.threshold_by_load:
            return self.threshold_bytes
        load = self.load
        return min(self.threshold_by_load, key=lambda row: (abs(row.load - load), row.load)).bytes

    def policy(self) -> AdmissionPolicy:
        """Return the settings for agents."""
        same = {item.name: getattr(self, item.name) for item in fields(AdmissionPolicy)}
        return AdmissionPolicy(**same | {"threshold_bytes": self.threshold()})


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme as its file says it."""

    name: str
    title: str
    summary: str
    short: ClassScheme
    long: ClassScheme
    control: ClassScheme
    papers: tuple[Paper, ...] = ()
    mode: ModeRule | None = None
    """None: the scheme has no modes, leaves need no signal."""
    partition: PartitionRule | None = None
    """None: every class may use all paths."""
    queues: Queues | None = None
    """None: one queue a port."""
    priority: Priority | None = None
    """None: each class has its own."""
    admission: Admission | None = None
    """None: every flow sends when it likes."""
    dctcp: Dctcp | None = None
    """None: hosts' TCP is the experiment's. For simulations alone."""
    pfabric: PFabric | None = None
    """None: hosts send by TCP. For simulations alone."""
    short_limit_bytes: NotNegative = 100_000
    replication: Replication | None = None
    """Done by the sending application, here the traffic generator: agents and switches know nothing of it."""
    prior_knowledge: bool = False
    """Whether flows whose size was announced are believed; False: only what they have sent counts."""

    @property
    def limit_bytes(self) -> int:
        """Return what a short flow sends less than: where a load sets the threshold, a flow that needs no
        grant is short.
        """
        if self.admission is not None and self.admission.threshold_by_load:
            return self.admission.threshold() + 1
        return self.short_limit_bytes

    @property
    def lab_problem(self) -> str | None:
        """Return what of the scheme no lab has, and what to do; None: nothing, it can be in force."""
        if self.pfabric is not None:
            part = "`pfabric` (its senders and its ports)"
        elif self.dctcp is not None:
            part = "`dctcp` (ports that mark packets)"
        elif self.estimates_by_marks:
            part = "`estimator: marks` (of ports that mark packets)"
        else:
            return None
        return f"scheme {self.name}: {part} is for simulations only: use ./capstan simulate, or leave the scheme out"

    @property
    def estimates_by_marks(self) -> bool:
        """Return whether a coded class asks for the estimator that reads switches' marks."""
        codings = (self.short.coding, self.long.coding)
        return any(coding is not None and coding.estimator == "marks" for coding in codings)

    @property
    def labels(self) -> bool:
        """Return whether any class may be sent by path labels."""
        classes = (self.short, self.long, self.control)
        return any(served.group_in(mode) == "label" for served in classes for mode in _MODES)

    def group_of(self, kind: Literal["short", "long", "control"], mode: Mode) -> GroupKind:
        """Return the kind of group that serves a class in a mode."""
        served: ClassScheme = getattr(self, kind)
        return served.group_in(mode)
