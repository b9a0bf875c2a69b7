"""What a schema cannot say of a spec: parts that are missing, unknown or do not fit each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from experiments.spec.simulated import Simulation, buffer_problem
from experiments.spec.spec import (
    ALL_SCHEMES,
    PARTS_OF_A_WHOLE,
    Claim,
    is_scheme_file,
    scheme_choice,
    uplinks_bps,
)
from experiments.spec.sweep import show
from plain.overrides import merge
from plain.reading import PlainError, build, did_you_mean
from plain.shown import shown
from plain.yaml_source import Path as FieldPath
from plain.yaml_source import Problem, Source, path_of, text_of
from topologies.fabric_spec import FabricSpec, FabricSpecError
from workloads.applications import ApplicationsError, hosts_of, mean_bytes, parts
from workloads.arrivals import ArrivalsError, busy_s, flow_rate, start_times
from workloads.description import MOST_FLOWS, SOURCE_PORTS, Endpoint, Transport, Workload
from workloads.patterns import PatternError, senders
from workloads.plan import offered_capacity_bps, sending_hosts

T = TypeVar("T")
CheckOverrides = Callable[[str, Mapping[str, Any]], str | None]
"""Given a scheme's name and the overrides that it will get: what is wrong with them, or None."""
_ROUNDING: Final = 1e-9
"""A load of 1, as flows a second times their size, may come out a little above the capacity."""


class Meaning:
    """Checks of the parts that fit the schema; a part with problems of its own is left alone."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source = source
        self._data: dict[str, Any] = source.data
        self._bad = [problem.path for problem in problems]
        self._found: list[Problem] = []

    def problems(self, schemes: Collection[str], check_overrides: CheckOverrides | None) -> list[Problem]:
        """Return the problems of all parts. schemes, check_overrides: as `experiments.spec.check.check` takes them."""
        self._schemes(schemes, check_overrides)
        fabric = self._fabric()
        workload = self._workload()
        self._transport()
        if fabric is not None:
            self._simulation(fabric)
        if fabric is not None and workload is not None:
            self._together(fabric, workload)
        return self._found

    def _say(self, path: FieldPath, message: str) -> None:
        self._found.append(Problem(*self._source.place(path), text_of(path), message))

    def _fits(self, *path: str | int) -> bool:
        """Return whether this part is there and had no problem yet (nor lacks anything)."""
        part: Any = self._data
        for step in path:
            try:
                part = part[step]
            except (KeyError, IndexError, TypeError):
                return False
        here = text_of(path)
        return not any(bad == here or bad.startswith((f"{here}.", f"{here}[")) for bad in self._bad)

    def _built(self, kind: type[T], *path: str | int) -> T | None:
        """Return what a part that fits the schema stands for; None: a number of it is beyond what a float holds."""
        part: Any = self._data
        for step in path:
            part = part[step]
        try:
            return build(kind, part, text_of(path))
        except PlainError as error:
            self._say(path_of(error.where), error.what)
            return None

    def _schemes(self, known: Collection[str], check_overrides: CheckOverrides | None) -> None:
        items = self._data.get("schemes")
        policy = self._data.get("policy") or {}
        labels: dict[str, int] = {}
        listed = self._listed(items)
        for index, item in enumerate(items if isinstance(items, list) else []):
            if not self._fits("schemes", index):
                continue
            choice = scheme_choice(item)
            where: FieldPath = ("schemes", index) if isinstance(item, str) else ("schemes", index, "name")
            every = choice.name == ALL_SCHEMES
            names = sorted(set(known) - listed) if every else [choice.name]
            if is_scheme_file(choice.name):
                if not Path(choice.name).is_file():
                    self._say(where, f"there is no file {shown(choice.name)} (from where this is run)")
            elif not every and choice.name not in known:
                self._say(
                    where, f"scheme {shown(choice.name)} is not known{did_you_mean(choice.name, known)}"
                )
            elif check_overrides is not None and self._fits("policy") | ("policy" not in self._data):
                for name in names:
                    self._overrides(index, name, policy, choice.overrides, check_overrides=check_overrides)
            for label in names if every else [choice.label]:
                if label in labels:
                    text = f"{shown(label)} is there already (schemes[{labels[label]}]); give a label"
                    self._say(where, text)
                labels.setdefault(label, index)
        if labels:
            self._claims(labels)
        baseline = self._data.get("baseline")
        if isinstance(baseline, str) and labels and baseline not in labels:
            self._say(
                ("baseline",), f"{shown(baseline)} is not among the schemes{did_you_mean(baseline, labels)}"
            )

    def _listed(self, items: object) -> set[str]:
        """Return the names of the schemes that are listed by themselves."""
        given = items if isinstance(items, list) else []
        return {scheme_choice(item).name for index, item in enumerate(given) if self._fits("schemes", index)}

    def _claims(self, labels: Collection[str]) -> None:
        claims = self._data.get("claims")
        for index, item in enumerate(claims if isinstance(claims, list) else []):
            if not self._fits("claims", index) or self._built(Claim, "claims", index) is None:
                continue
            compare, where = item.get("compare"), ("claims", index, "compare")
            if compare is None:
                self._say(
                    ("claims", index),
                    "has no compare: name the ratio of ours in which it shows, and the paper's number",
                )
                continue
            against = compare.get("against", "")
            for name, label in (("scheme", compare["scheme"]), ("against", against)):
                if label not in labels and (label or name == "scheme"):
                    hint = did_you_mean(label, labels)
                    self._say((*where, name), f"{shown(label)} is not among the schemes{hint}")
            if not against and compare["measure"] not in PARTS_OF_A_WHOLE:
                self._say(
                    where,
                    f"needs an against for {compare['measure']}: without it only {', '.join(PARTS_OF_A_WHOLE)}",
                )
            if compare.get("points") is not None:
                self._points_of_claim(compare, (*where, "points"))
            elif compare["scheme"] == against:
                self._say(
                    (*where, "against"),
                    "is the scheme itself: compare it with another, or name two points of a sweep (points)",
                )
            wrong = "at_most" if compare["measure"] == "long-goodput" else "at_least"
            if compare.get(wrong) is not None:
                self._say(
                    (*where, wrong),
                    f"is not for {compare['measure']}: goodput takes at_least, times and shares at_most",
                )
            limits = [name for name in ("at_most", "at_least", "between") if compare.get(name) is not None]
            if len(limits) != 1:
                given = " and ".join(limits) or "none"
                self._say(
                    where,
                    f"needs one of at_most, at_least, between (has {given}); 1 where the paper has no number",
                )
            elif against and compare.get("at_most") == 0:
                self._say((*where, "at_most"), "is 0, which no ratio can be: leave against out")
            elif limits == ["between"] and not 0 < compare["between"][0] < compare["between"][1]:
                self._say((*where, "between"), "must be two numbers above 0, the lesser first")

    def _points_of_claim(self, compare: Mapping[str, Any], where: tuple[str | int, ...]) -> None:
        """Say what is wrong with the two points of a sweep that a claim compares."""
        axes = self._data.get("sweep")
        if axes is not None and not self._fits("sweep"):
            return
        if not isinstance(axes, list) or len(axes) != 1 or not isinstance(axes[0], dict):
            self._say(where, "needs a sweep over one axis")
            return
        there = [show(tick) for tick in axes[0].get("shown") or axes[0].get("values") or ()]
        for place, point in enumerate(compare["points"]):
            if show(point) not in there:
                self._say(
                    (*where, place), f"{show(point)!r} is no point of the sweep; there are {', '.join(there)}"
                )
        first, second = compare["points"]
        if show(first) != show(second) and not compare.get("against"):
            self._say(where, "must be the same twice for a share without against")
        if show(first) == show(second) and compare["scheme"] == compare.get("against"):
            self._say(where, "must differ where a scheme is compared with itself")
        if compare["measure"] == "short-p99" and show(first) != show(second):
            self._say(where, "cannot compare a p99: a repeat alone has too few flows for it")

    def _overrides(
        self,
        index: int,
        name: str,
        policy: Mapping[str, Any],
        own: Mapping[str, Any],
        *,
        check_overrides: CheckOverrides,
    ) -> None:
        wrong = check_overrides(name, policy) if policy else None
        if wrong:
            self._say(("policy",), f"scheme {name!r}: {wrong}")
            return
        wrong = check_overrides(name, merge(policy, own)) if own else None
        if wrong:
            self._say(("schemes", index, "overrides"), wrong)

    def _fabric(self) -> FabricSpec | None:
        if not self._fits("fabric"):
            return None
        try:
            fabric = FabricSpec.from_dict(self._data["fabric"])
        except FabricSpecError as error:
            self._say(("fabric", *error.where.split(".")), error.what)
            return None
        if fabric.slowest_link_mbps is None:
            self._say(
                ("fabric", "link"),
                "needs a rate_mbps: timers are given in packet times of the slowest link between switches",
            )
            return None
        unshaped = next(_unshaped(fabric), None)
        if unshaped is not None:
            self._say(
                ("fabric", "overrides", unshaped) if unshaped in fabric.overrides else ("fabric", "link"),
                f"needs a rate_mbps: {unshaped} has none, and every link between switches needs one",
            )
            return None
        cut_off = next(iter(_cut_off(fabric)), None)
        if cut_off is not None:
            self._say(
                ("fabric", "down"), f"has all links of {cut_off} to other switches: leave one of them out"
            )
            return None
        return fabric

    def _workload(self) -> Workload | None:
        if not self._fits("workload"):
            return None
        workload = self._built(Workload, "workload")
        if workload is None:
            return None
        flows = workload.flows
        fine = True
        try:
            parts(flows)
        except ApplicationsError as error:
            self._say(("workload", "flows", *error.path), str(error))
            fine = False
        except OverflowError:
            self._say(("workload", "flows", "sizes"), "is beyond what a float holds")
            return None
        large = workload.large_limit_bytes
        if large is not None and large <= workload.short_limit_bytes:
            self._say(
                ("workload", "large_limit_bytes"),
                f"must be above short_limit_bytes ({workload.short_limit_bytes})",
            )
            fine = False
        if (flows.count is None) == (flows.duration_s is None):
            self._say(("workload", "flows"), "exactly one of count and duration_s is needed")
            fine = False
        try:
            flow_rate(flows.arrivals, 1.0, 1.0)
            # of no flows: only the periods are looked at
            start_times(flows.arrivals, 1.0, np.random.default_rng(0), count=0, duration_s=None)
        except ArrivalsError as error:
            self._say(("workload", "flows", "arrivals"), str(error))
            fine = False
        return workload if fine else None

    def _transport(self) -> None:
        if self._fits("transport"):
            try:
                build(Transport, self._data["transport"], "transport")
            except PlainError as error:
                self._say(("transport",), error.what)

    def _simulation(self, fabric: FabricSpec) -> None:
        if not self._fits("simulation"):
            return
        simulation = build(Simulation, self._data["simulation"] or {}, "simulation")
        wrong = buffer_problem(simulation, fabric.mtu)
        if wrong is not None:
            field, text = wrong
            self._say(("simulation", *field.split(".")), text)

    def _together(self, fabric: FabricSpec, workload: Workload) -> None:
        hosts = [Endpoint(place.name, place.leaf, place.overlay) for place in fabric.hosts()]
        for part, pattern in self._patterns(workload):
            try:
                if len(hosts) < 2:
                    raise PatternError(f"needs at least two hosts, the fabric has {len(hosts)}")
                senders(pattern, hosts)
            except PatternError as error:
                self._say(("workload", part, "pattern"), str(error))
                return
        if not self._tenants(workload, hosts):
            return
        access = fabric.access.rate_mbps
        capacity = offered_capacity_bps(
            workload, hosts, uplinks_bps(fabric), None if access is None else access * 1e6
        )
        flows = workload.flows
        mean = mean_bytes(parts(flows))
        try:
            rate = flow_rate(flows.arrivals, capacity, mean)
        except ArrivalsError as error:
            self._say(("workload", "flows", "arrivals"), str(error))
            return
        if capacity is not None and rate * mean * 8 > capacity * (1 + _ROUNDING):
            self._say(
                ("workload", "flows", "arrivals"),
                f"{rate:.3g} flows/s of {mean / 1e3:.4g} kB on average are {rate * mean * 8 / 1e6:.3g} Mbit/s, "
                f"more than the {capacity / 1e6:.3g} Mbit/s that the fabric carries; lower the rate or the sizes",
            )
        # rates are those within ON periods
        number = (
            flows.count if flows.count is not None else rate * busy_s(flows.arrivals, flows.duration_s or 0)
        )
        sources = len(sending_hosts(flows, hosts))
        most = min(MOST_FLOWS, sources * SOURCE_PORTS)
        if number > most:
            self._say(
                ("workload", "flows"),
                f"{number:.0f} flows are too many for one run of {sources} sending hosts ({most}): use more repeats "
                "instead",
            )
        if number < 1:
            self._say(
                ("workload", "flows", "duration_s"),
                f"{flows.duration_s} s at {rate:.3g} flows/s is less than one flow; lengthen it",
            )
        elif number < 1 + rate * busy_s(flows.arrivals, flows.lead_in_s):
            self._say(
                ("workload", "flows", "lead_in_s"),
                f"{flows.lead_in_s:g} s at {rate:.3g} flows/s leave none of {number:.0f} flows to be counted; "
                "shorten it",
            )

    def _tenants(self, workload: Workload, hosts: list[Endpoint]) -> bool:
        """Return whether the hosts of every application are there, and enough for the pattern."""
        for index, application in enumerate(workload.flows.applications):
            where: FieldPath = ("workload", "flows", "applications", index, "hosts")
            try:
                own = hosts_of(application, hosts)
                if len(own) < 2:
                    raise PatternError(f"needs at least two hosts, not {len(own)}")
                senders(workload.flows.pattern, own)
            except (ApplicationsError, PatternError) as error:
                self._say(where, str(error))
                return False
        return True

    def _patterns(self, workload: Workload) -> Iterator[tuple[str, Any]]:
        yield "flows", workload.flows.pattern
        if workload.long_flows is not None:
            yield "long_flows", workload.long_flows.pattern


def _unshaped(fabric: FabricSpec) -> Iterator[str]:
    """Yield the links between switches that have no rate."""
    names: Iterable[str] = fabric.link_names() if fabric.link.rate_mbps is None else fabric.overrides
    for name in names:
        if not name.startswith("h") and fabric.link_named(name).rate_mbps is None:
            yield name


def _cut_off(fabric: FabricSpec) -> Iterator[str]:
    """Yield the leaves (edge switches) all of whose links to other switches are down."""
    ups: dict[str, list[bool]] = {}
    for name in fabric.link_names() if fabric.down else ():
        if name[0] in "le":
            ups.setdefault(name.partition("-")[0], []).append(name not in fabric.down)
    yield from (leaf for leaf, up in ups.items() if not any(up))
