"""What an experiment is, as its YAML file says it: typed, frozen, checked elsewhere (`experiments.spec.check`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from experiments.spec.simulated import Simulation
from plain.reading import build
from protocol.packet_time import PACKET_BYTES, packet_time_s
from topologies.fabric_spec import FabricSpec
from workloads.applications import mean_bytes, parts
from workloads.arrivals import busy_s, flow_rate
from workloads.description import LONGEST_LABEL, Endpoint, Label, Positive, Transport, Workload
from workloads.plan import Plan, build_plan, offered_capacity_bps

DRAIN_MARGIN_S: Final = 0.2
ALL_SCHEMES: Final = "all"
"""In place of a scheme's name: every scheme that comes with Capstan, and is not listed by itself."""
Measure = Literal[
    "all-mean",
    "short-mean",
    "short-p99",
    "long-mean",
    "medium-mean",
    "large-mean",
    "long-goodput",
    "short-retransmissions",
    "long-retransmissions",
    "all-retransmissions",
    "short-reordering",
    "short-round-trip",
    "short-round-trip-tail",
    "short-unused-paths",
    "long-path-spread",
    "datagrams",
    "unscheduled",
]
"""Completion times of a class of flows, the sum of background flows' rates, or a share (`results.run_shares`)."""
PARTS_OF_A_WHOLE: Final[tuple[Measure, ...]] = (
    "short-retransmissions",
    "long-retransmissions",
    "all-retransmissions",
    "short-reordering",
    "short-unused-paths",
    "unscheduled",
)
"""Shares that are a percentage, so that a claim may be about one scheme's alone."""


Seconds = Annotated[float, Meta(ge=0, le=600)]
Overrides = Annotated[
    Mapping[str, Any],
    Meta(
        description="what differs from the scheme's file, in its words: {long: {release: {packet_times: 8}}}"
    ),
]


@dataclass(frozen=True, slots=True)
class SchemeChoice:
    """One scheme to run; a spec may give its name alone."""

    name: Annotated[str, Meta(description=f"a scheme's name, the path of its file, or {ALL_SCHEMES}")]
    label: Annotated[Label, Meta(description="what tables call it; default: its name")] = ""
    overrides: Overrides = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figure of ours in which a claim would show: *scheme* is better than *against* in *measure*.

    With *points*, of a sweep over one axis, *scheme* is taken at the first of two points and *against* at the second,
    so that workloads and fabrics can be compared under one scheme; the same point twice judges there alone; else both
    are taken at every point. Without *against* the figure is a share of *scheme* itself, in %.

    A spec has one of at_most, at_least and between (results of earlier ones may have none: any difference that the
    interval confirms counts).
    """

    measure: Annotated[
        Measure, Meta(description="completion time of a class, rate of background flows, or a share")
    ]
    scheme: Annotated[str, Meta(description="label of the scheme that the paper says is better")]
    against: Annotated[
        str,
        Meta(description="label of the other; empty: none, the figure is the scheme's share itself, in %"),
    ] = ""
    at_most: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="the claimed ratio of times, or without against the share in %, which may be 0"),
    ] = None
    at_least: Annotated[Positive | None, Meta(description="the claimed ratio of goodput")] = None
    between: Annotated[
        Annotated[tuple[float, ...], Meta(min_length=2, max_length=2)] | None,
        Meta(description="the claimed range of the ratio"),
    ] = None
    points: Annotated[
        Annotated[tuple[float | str, ...], Meta(min_length=2, max_length=2)] | None,
        Meta(description="two points of a sweep over one axis, as shown: of scheme, and of against"),
    ] = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says that should be seen, printed beside the results."""

    text: Annotated[str, Meta(description="what should be seen")]
    source: Annotated[str, Meta(description="paper, venue, year")] = ""
    figure: Annotated[str, Meta(description="where in it, like 'Fig. 11'")] = ""
    kind: Annotated[
        Literal["qualitative", "figures"],
        Meta(
            description="figures: the text has the paper's own; qualitative: only what it concludes from them"
        ),
    ] = "qualitative"
    compare: Annotated[
        Comparison | None,
        Meta(description="the ratio of ours in which it would show, printed beside it"),
    ] = None
    """None in results of earlier specs only."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a sweep: values that the named fields of the spec take in turn, all of them alike."""

    label: Annotated[str, Meta(min_length=1, description="what tables and figures call it")]
    fields: Annotated[
        tuple[str, ...],
        Meta(description="dotted paths of the fields that take the values, like workload.long_flows.number"),
    ]
    values: Annotated[tuple[Any, ...], Meta(description="the values, in the order of the figure")]
    unit: Annotated[str, Meta(description="of the values as they are shown")] = ""
    shown: Annotated[
        tuple[float, ...] | None,
        Meta(description="other numbers to show in their place, one for each"),
    ] = None

    @property
    def ticks(self) -> tuple[Any, ...]:
        """Return what each value is called."""
        return self.values if self.shown is None else self.shown


@dataclass(frozen=True, slots=True)
class Spec:
    """One experiment, or a grid of them (`experiments.spec.sweep.points`)."""

    name: Annotated[Label, Meta(description="short name; results are kept under it")]
    title: Annotated[str, Meta(description="one line for people")]
    fabric: FabricSpec
    schemes: Annotated[tuple[SchemeChoice, ...], Meta(min_length=1, description="what to compare")]
    workload: Workload
    description: Annotated[str, Meta(description="what it shows, and what was scaled and why")] = ""
    baseline: Annotated[
        Label, Meta(description="scheme that the others are compared with; default: the first")
    ] = ""
    policy: Annotated[
        Mapping[str, Any],
        Meta(description="overrides for every scheme, in the words of a scheme's file; a scheme's own win"),
    ] = field(default_factory=dict)
    transport: Transport = field(default_factory=Transport)
    repeats: Annotated[int, Meta(ge=1, le=1000, description="runs of each scheme, with other seeds each")] = 1
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1, description="seed of arrivals, sizes and pairs")] = 1
    warm_up_s: Annotated[
        Seconds, Meta(description="seconds of background flows before the first sized flow")
    ] = 1.0
    quiet_s: Annotated[
        Seconds | None,
        Meta(description="seconds between two runs; default: as long as full queues take to drain"),
    ] = None
    timeout_s: Annotated[
        float, Meta(ge=1, le=3600, description="a flow not finished this long after the last arrival failed")
    ] = 20.0
    keep_learnt: Annotated[
        bool,
        Meta(description="runs begin with the flow types of those before them; default: each learns its own"),
    ] = False
    simulation: Annotated[
        Simulation,
        Meta(description="for ./capstan simulate; all but agree_within for nothing else"),
    ] = field(default_factory=Simulation)
    claims: Annotated[tuple[Claim, ...], Meta(description="printed beside the results")] = ()
    sweep: Annotated[
        tuple[Axis, ...], Meta(description="run the grid of all combinations of these values")
    ] = ()

    @property
    def packet_time_s(self) -> float:
        """Return the seconds that 1500 B take on the slowest link between switches."""
        rate = self.fabric.slowest_link_mbps
        if rate is None:
            raise ValueError("a fabric without a shaped link has no packet time")
        return packet_time_s(rate)

    @property
    def pause_s(self) -> float:
        """Return the seconds of silence between two runs: `quiet_s`, or what full queues take to drain."""
        if self.quiet_s is not None:
            return self.quiet_s
        return self.fabric.link.full_packets(PACKET_BYTES) * self.packet_time_s + DRAIN_MARGIN_S

    def endpoints(self) -> list[Endpoint]:
        """Return the hosts, with their overlay addresses."""
        return [Endpoint(place.name, place.leaf, place.overlay) for place in self.fabric.hosts()]

    def capacity_bps(self) -> float | None:
        """Return bit/s that this workload's senders can put through the fabric; None if nothing limits them."""
        return offered_capacity_bps(
            self.workload, self.endpoints(), uplinks_bps(self.fabric), self._access_bps
        )

    @property
    def _access_bps(self) -> float | None:
        rate = self.fabric.access.rate_mbps
        return None if rate is None else rate * 1e6

    def expected_flows(self) -> float:
        """Return how many flows with a size one run has, or is to have: within `duration_s` they arrive at random."""
        flows = self.workload.flows
        if flows.count is not None:
            return flows.count
        rate = flow_rate(flows.arrivals, self.capacity_bps(), mean_bytes(parts(flows)))
        return rate * busy_s(flows.arrivals, flows.duration_s or 0.0)

    def plan(self, repeat: int) -> Plan:
        """Return the flows of one repeat; every scheme gets the same."""
        return build_plan(
            self.workload,
            self.endpoints(),
            seed=self.seed,
            repeat=repeat,
            warm_up_s=self.warm_up_s,
            capacity_bps=self.capacity_bps(),
        )

    def long_flow_pressure(self) -> float | None:
        """Return long flows x access rate / fabric rate: above 1 they can fill every path (None: unshaped
        links).
        """
        uplinks, long_flows = uplinks_bps(self.fabric), self.workload.long_flows
        if uplinks is None or self._access_bps is None or long_flows is None:
            return None
        return long_flows.number * self._access_bps / uplinks


def uplinks_bps(fabric: FabricSpec) -> float | None:
    """Return bit/s of the first leaf's uplinks together, as they start out; None if one of them is unshaped."""
    total = 0.0
    for name in fabric.link_names():
        if name.startswith(("l1-", "e1-")):
            rate = fabric.link_named(name).rate_mbps
            if rate is None:
                return None
            total += 0.0 if name in fabric.down else rate * 1e6
    return total


def spec_from_dict(data: Mapping[str, Any]) -> Spec:
    """Return the spec that plain data describes. Data that `experiments.spec.check` finds no fault with never
    raises.

    Raises:
        PlainError, FabricSpecError: the first thing that does not fit.
    """
    values = dict(data)
    values["fabric"] = FabricSpec.from_dict(values.get("fabric") or {})
    values["schemes"] = tuple(scheme_choice(item) for item in values.get("schemes") or ())
    values["workload"] = build(Workload, values.get("workload"), "workload")
    values["transport"] = build(Transport, values.get("transport") or {}, "transport")
    values["simulation"] = build(Simulation, values.get("simulation") or {}, "simulation")
    values["claims"] = tuple(build(Claim, item, "claims") for item in values.get("claims") or ())
    values["sweep"] = tuple(build(Axis, item, "sweep") for item in values.get("sweep") or ())
    values["policy"] = values.get("policy") or {}
    for name in ("warm_up_s", "quiet_s", "timeout_s"):
        if values.get(name) is not None:
            values[name] = float(values[name])
    spec = Spec(**values)
    if not spec.baseline and spec.schemes:
        spec = Spec(**(values | {"baseline": spec.schemes[0].label}))
    return spec


def scheme_choice(item: object) -> SchemeChoice:
    """Return a scheme as a spec writes it: its name, or an object with name, label and overrides."""
    if isinstance(item, str):
        item = {"name": item}
    assert isinstance(item, Mapping)
    name = item["name"]
    label = label_of(Path(name).stem) if is_scheme_file(name) else name
    return SchemeChoice(name, item.get("label", label), item.get("overrides") or {})


def label_of(name: str) -> str:
    """Return a name as a label may be written, which that of a file need not be: `my-scheme` for `My Scheme`."""
    return re.sub("[^a-z0-9._-]", "-", name.lower()).lstrip("._-")[:LONGEST_LABEL] or "scheme"


def with_all_schemes(spec: Spec, known: Callable[[], Iterable[str]]) -> Spec:
    """Return the spec with every *known* scheme that it does not list in the place of "all", with the same
    overrides.

    known: called only for a spec that has "all"; to say which schemes a lab can have, all of them are read.
    """
    listed = {choice.name for choice in spec.schemes}
    schemes: list[SchemeChoice] = []
    for choice in spec.schemes:
        if choice.name == ALL_SCHEMES:
            rest = (name for name in known() if name not in listed)
            schemes += [SchemeChoice(name, name, choice.overrides) for name in rest]
        else:
            schemes.append(choice)
    baseline = schemes[0].label if spec.baseline == ALL_SCHEMES else spec.baseline
    return replace(spec, schemes=tuple(schemes), baseline=baseline)


MOST_NAMED: Final = 4
"""Schemes that a title names; of more it says the number."""


def title_with(title: str, own: Sequence[str], chosen: Sequence[str]) -> str:
    """Return the title of a spec of which *chosen* schemes run, by their labels, in place of its *own*.

    A title often names the schemes that its spec compares: it must not stay as it is over others.
    """
    if set(own) == set(chosen):
        return title
    if list(chosen) == [ALL_SCHEMES]:
        return f"{title} (all schemes)"
    named = ", ".join(chosen) if len(chosen) <= MOST_NAMED else f"{len(chosen)} schemes"
    return f"{title} (only {named})"


def is_scheme_file(name: str) -> bool:
    """Return whether a scheme is given by its file's path instead of by name."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def fabric_words(spec: Spec) -> str:
    """Return words such as `2 leaves x 16 spines, 8 hosts, links of 3 Mbit/s`."""
    fabric = spec.fabric
    if fabric.topology == "leaf-spine":
        shape = f"{fabric.leaves} leaves x {fabric.spines} spines"
    else:
        shape = f"{fabric.k}-ary fat tree"
    rate = fabric.slowest_link_mbps
    links = "unshaped links" if rate is None else f"links of {rate:g} Mbit/s"
    return f"{shape}, {len(fabric.hosts())} hosts, {links}"
