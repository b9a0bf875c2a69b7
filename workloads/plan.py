"""A plan: every flow of one run, fixed before it begins, and the same for every scheme that is compared."""

from __future__ import annotations

import hashlib
import heapq
import json
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from capstan_client.errors import CapstanError
from workloads.applications import Part, hosts_of, mean_bytes, parts
from workloads.arrivals import flow_rate, start_times
from workloads.description import (
    FIRST_SOURCE_PORT,
    LAST_SOURCE_PORT,
    PORT_CHANGE,
    Application,
    Endpoint,
    Flows,
    Workload,
)
from workloads.patterns import Pair, pairs, senders
from workloads.records import TrafficClassName


class PlanError(CapstanError, ValueError):
    """A workload that gives no usable plan; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """One flow to be. `size_bytes` is None for a background flow that sends until the run is over.

    The source port is planned too: flow hashes (ECMP, flow keys) then fall alike in every scheme. So is that of
    the copy, for schemes that replicate short flows; None where the range has no port left for it. port: of the
    receiver; None: the generator's. counted: whether its time is part of the figures.
    """

    id: int
    source: str
    destination: str
    source_port: int
    start_s: float
    size_bytes: int | None
    traffic_class: TrafficClassName
    copy_port: int | None = None
    application: str = ""
    port: int | None = None
    counted: bool = True


_FIELDS: Final = tuple(field.name for field in fields(PlannedFlow))
_values: Final = attrgetter(*_FIELDS)


@dataclass(frozen=True, slots=True)
class Plan:
    """Flows by start time (seconds since the run's start), and the window over which rates are measured.

    `window_s` spans from the end of the warm-up to the last planned arrival: the same for all schemes.
    """

    flows: tuple[PlannedFlow, ...]
    window_s: tuple[float, float]

    @property
    def sized(self) -> tuple[PlannedFlow, ...]:
        """Return flows that end by themselves."""
        return tuple(flow for flow in self.flows if flow.size_bytes is not None)

    @property
    def background(self) -> tuple[PlannedFlow, ...]:
        """Return flows without a size, which go on until the run ends."""
        return tuple(flow for flow in self.flows if flow.size_bytes is None)

    @property
    def ports(self) -> list[int]:
        """Return ports of receivers, beside the generator's own."""
        return sorted({flow.port for flow in self.flows if flow.port is not None})

    def digest(self) -> str:
        """Return SHA-256 (hex) of all flows: equal digests are equal plans."""
        data = [dict(zip(_FIELDS, _values(flow), strict=True)) for flow in self.flows]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def build_plan(
    workload: Workload,
    hosts: Sequence[Endpoint],
    *,
    seed: int,
    repeat: int,
    warm_up_s: float,
    capacity_bps: float | None,
) -> Plan:
    """Return the plan of repeat number *repeat* (0..). The same arguments give the same plan, on any machine.

    Every quantity has a random stream of its own, and so has each application, so that changing one (say, the
    sizes) leaves the others.

    capacity_bps: what the fabric carries between the pattern's hosts (see `offered_capacity_bps`).

    Raises:
        PlanError, ApplicationsError, ArrivalsError, PatternError: the workload cannot be.
    """

    def stream(name: str) -> np.random.Generator:
        return np.random.default_rng([seed, repeat, zlib.crc32(name.encode())])

    flows = workload.flows
    mix = parts(flows)
    rate = flow_rate(flows.arrivals, capacity_bps, mean_bytes(mix))
    arriving = _merged([_arriving(flows, part, hosts, rate=rate, stream=stream) for part in mix], flows.count)
    if not arriving:
        raise PlanError(
            f"no flow arrives within {flows.duration_s} s at {rate:.3g} flows/s",
            remedy="lengthen duration_s or raise the rate",
        )
    background = workload.long_flows
    long_ends = (
        pairs(background.pattern, hosts, stream("long pairs"), n=background.number, spread=True)
        if background
        else []
    )
    number = len(long_ends)
    ports = _source_ports(
        [a.host for a, _ in long_ends] + [arrival.ends[0].host for arrival in arriving], stream("ports")
    )
    planned = [
        PlannedFlow(index, a.host, b.host, int(ports[index]), 0.0, None, "long")
        for index, (a, b) in enumerate(long_ends)
    ]
    for index, arrival in enumerate(arriving, number):
        kind: TrafficClassName = "short" if arrival.size < workload.short_limit_bytes else "long"
        copy = index + len(arriving)
        planned.append(
            PlannedFlow(
                index,
                arrival.ends[0].host,
                arrival.ends[1].host,
                int(ports[index]),
                round(warm_up_s + arrival.start_s, 6),
                arrival.size,
                kind,
                int(ports[copy]) if copy < len(ports) else None,
                arrival.application.name,
                _port(flows, arrival.application, arrival.start_s),
                arrival.start_s >= flows.lead_in_s,
            )
        )
    if not any(flow.counted for flow in planned[number:]):
        raise PlanError(
            f"no flow arrives after lead_in_s ({flows.lead_in_s:g} s)", remedy="shorten it or have more flows"
        )
    return Plan(tuple(planned), window_s=(warm_up_s, planned[-1].start_s))


def _source_ports(sources: Sequence[str], rng: np.random.Generator) -> Sequence[int]:
    """Return flows' source ports, each its own, and those left for copies; of too many flows, each among its host's.

    Raises:
        PlanError: a host sends more flows than it has ports.
    """
    ports: list[int] = rng.permutation(np.arange(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1)).tolist()
    if len(sources) <= len(ports):
        return ports
    used: Counter[str] = Counter()
    own = []
    for host in sources:
        if used[host] == len(ports):
            raise PlanError(f"host {host} sends more than {len(ports)} flows; use more repeats instead")
        own.append(ports[used[host]])
        used[host] += 1
    return own


class _Arriving(NamedTuple):
    start_s: float
    size: int
    ends: Pair
    application: Application


def _arriving(
    flows: Flows,
    part: Part,
    hosts: Sequence[Endpoint],
    *,
    rate: float,
    stream: Callable[[str], np.random.Generator],
) -> list[_Arriving]:
    """Return flows of one application, of *rate* flows/s in all.

    Of a number of flows, so many: `_merged` drops the rest.
    """
    name = f" of {part.application.name}" if part.application.name else ""
    starts = start_times(
        flows.arrivals,
        rate * part.share,
        stream(f"arrivals{name}"),
        count=flows.count,
        duration_s=flows.duration_s,
    )
    sizes = part.sizes.sample(stream(f"sizes{name}"), len(starts))
    ends = pairs(flows.pattern, hosts_of(part.application, hosts), stream(f"pairs{name}"), n=len(starts))
    return [
        _Arriving(float(start), int(size), pair, part.application)
        for start, size, pair in zip(starts, sizes, ends, strict=True)
    ]


def _merged(applications: Sequence[Sequence[_Arriving]], count: int | None) -> list[_Arriving]:
    """Return the first *count* in order of time: Poisson processes together are one."""
    flows = list(heapq.merge(*applications, key=lambda flow: flow.start_s))
    return flows if count is None else flows[:count]


def sending_hosts(flows: Flows, hosts: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the hosts that send flows with a size: of applications with hosts of their own only some of those.

    Raises:
        ApplicationsError, PatternError: the hosts of an application are not there, or too few.
    """
    given = [hosts_of(application, hosts) for application in flows.applications] or [list(hosts)]
    sending = {sender.host for own in given for sender in senders(flows.pattern, own)}
    return [host for host in hosts if host.host in sending]


def offered_capacity_bps(
    workload: Workload,
    hosts: Sequence[Endpoint],
    uplinks_bps: float | None,
    access_bps: float | None,
) -> float | None:
    """Return bit/s that the sending hosts of a workload can put through the fabric; None if nothing limits them.

    uplinks_bps: all uplinks of one leaf together; access_bps: one host's link. Per sending leaf the smaller
    of the uplinks and its hosts' links counts.
    """
    sending = sending_hosts(workload.flows, hosts)
    total = 0.0
    for leaf in {host.leaf for host in sending}:
        members = sum(host.leaf == leaf for host in sending)
        limits = [uplinks_bps, None if access_bps is None else members * access_bps]
        given = [limit for limit in limits if limit is not None]
        if not given:
            return None
        total += min(given)
    return total


def _port(flows: Flows, application: Application, start_s: float) -> int | None:
    """Return where the servers of *application* listen to a flow that starts at *start_s*."""
    port = application.port
    changed = application.name == flows.changes_port and start_s >= flows.lead_in_s
    return port + PORT_CHANGE if changed and port is not None else port
