"""HyLine's scheduling: a granted flow has one path of its own, which the controller chooses.

S. Abbasloo, Y. Xu, H. J. Chao: "HyLine: a Simple and Practical Flow Scheduling for Commodity Datacenters", IFIP
Networking 2018, joins routing and scheduling of the flows above a threshold in a central entity (the threshold:
`controller/schemes/hyline.yaml`). Here, to compare with
`controller.capton.scheduler`: at each event, in increasing order of what flows have left, a flow is granted the path on
which it gets the highest rate, if that is its line rate or at least ``least_share`` of it. A flow that was granted
keeps its path as long as that holds it. Plain: all flows are gone through at each event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.capton.fabric import HostPlace, VirtualLink
from controller.capton.scheduler import ActiveFlow, Decision, LinkUse, Parameters
from plain.reading import did_you_mean

Pair = tuple[str, str]
"""Leaf of the source and of the destination."""


@dataclass(frozen=True, slots=True)
class SinglePath:
    """A path between two leaves: the stamp that names it, and its links with their rates in bit/s."""

    stamp: int
    links: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Flow:
    number: int
    source: str
    destination: str
    remaining: float
    """Bytes, at the time of the last event."""
    asked: float
    turn: int
    rate_bps: int = 0
    stamp: int = 0
    end: float | None = None
    """When all its bytes should have left; only while it is granted."""


class SinglePathScheduler:
    """As `Scheduler`, with a path of its own for each flow; seconds of one clock, whole bit/s."""

    def __init__(
        self,
        hosts: tuple[HostPlace, ...],
        paths: Mapping[Pair, tuple[SinglePath, ...]],
        parameters: Parameters,
    ) -> None:
        self._hosts: Final = {host.name: host for host in hosts}
        self._paths = paths
        self._parameters: Final = parameters
        self._flows: Final[dict[int, _Flow]] = {}
        self._now = 0.0
        self._turn = 0
        self._capacity: Final[dict[str, int]] = {}
        for host in hosts:
            self._capacity[f"{host.name} up"], self._capacity[f"{host.name} down"] = host.access
        for several in paths.values():
            for path in several:
                self._capacity.update(path.links)
        self._unallocated = dict(self._capacity)

    def request(self, flow: int, source: str, destination: str, size: int, *, now: float) -> list[Decision]:
        """Return the decisions of `Scheduler.request`."""
        return self._take(_Flow(flow, source, destination, max(1, size), now, self._turn), now)

    def take_over(self, flow: ActiveFlow, asked_at: float, now: float) -> list[Decision]:
        """Return the decisions of `Scheduler.take_over`; the flow keeps its path if it can."""
        remaining_bytes = max(1, flow.remaining_bytes)
        ends = flow.source, flow.destination
        return self._take(
            _Flow(flow.flow, *ends, remaining_bytes, asked_at, self._turn, stamp=flow.stamp), now
        )

    def _take(self, flow: _Flow, now: float) -> list[Decision]:
        for name in (flow.source, flow.destination):
            if name not in self._hosts:
                raise ValueError(f"host {name!r} is not known{did_you_mean(name, self._hosts)}")
        known = self._flows.get(flow.number)
        if flow.source == flow.destination or (
            known is not None and (known.source, known.destination) != (flow.source, flow.destination)
        ):
            raise ValueError(f"flow {flow.number} cannot go from {flow.source!r} to {flow.destination!r}")
        self._pass(now)
        if known is None:
            self._flows[flow.number] = flow
            self._turn += 1
        else:
            known.remaining, known.end = flow.remaining, None
        return self._decide()

    def finished(self, flow: int, now: float) -> list[Decision]:
        """Return the decisions of `Scheduler.finished`."""
        self._pass(now)
        self._flows.pop(flow, None)
        return self._decide()

    def capacity(self, link: VirtualLink, rate_bps: int, now: float) -> list[Decision]:
        """Return nothing: where links change, so do paths, and a scheduler is made anew."""
        self._pass(now)
        return self._decide()

    def expire(self, now: float) -> list[Decision]:
        """Return the decisions of `Scheduler.expire`."""
        self._pass(now)
        timeout_s = self._parameters.finish_timeout_s
        over = [
            flow.number
            for flow in self._flows.values()
            if flow.end is not None and flow.end + timeout_s <= self._now
        ]
        for number in over:
            del self._flows[number]
        return [Decision(number, 0) for number in over] + self._decide()

    def next_event(self) -> float | None:
        """Return what `Scheduler.next_event` does."""
        end = min((flow.end for flow in self._flows.values() if flow.end is not None), default=None)
        return None if end is None else end + self._parameters.finish_timeout_s

    def flows(self, now: float) -> list[ActiveFlow]:
        """Return what `Scheduler.flows` does, each with its path."""
        self._pass(now)
        return [
            ActiveFlow(
                flow.number, flow.source, flow.destination, round(flow.remaining), flow.rate_bps, flow.stamp
            )
            for flow in self._ordered()
        ]

    def links(self) -> dict[VirtualLink, LinkUse]:
        """Return what is granted of each link: access links, then single ones."""
        loads = {}
        for name, capacity in self._capacity.items():
            of, _, way = name.rpartition(" ")
            link = VirtualLink(of, "up" if way == "up" else "down") if of else VirtualLink(name, "up")
            loads[link] = LinkUse(capacity, capacity - self._unallocated[name])
        return loads

    def __contains__(self, flow: int) -> bool:
        return flow in self._flows

    def _pass(self, now: float) -> None:
        """Take off what was sent since the last event."""
        for flow in self._flows.values():
            flow.remaining = max(0.0, flow.remaining - flow.rate_bps / 8 * max(0.0, now - self._now))
        self._now = max(self._now, now)

    def _ordered(self) -> list[_Flow]:
        ageing = self._parameters.ageing_bytes_per_s
        return sorted(
            self._flows.values(),
            key=lambda flow: (flow.remaining - ageing * (self._now - flow.asked), flow.turn),
        )

    def _decide(self) -> list[Decision]:
        before, unallocated = self._unallocated, dict(self._capacity)
        self._unallocated = unallocated
        decisions = []
        for flow in self._ordered():
            rate, path = self._best(flow, unallocated, before)
            for name in self._links_of(flow, path):
                unallocated[name] -= rate
            stamp = 0 if path is None or not rate else path.stamp
            if (rate, stamp) != (flow.rate_bps, flow.stamp):
                if rate != flow.rate_bps:
                    flow.end = None
                flow.rate_bps, flow.stamp = rate, stamp
                decisions.append(Decision(flow.number, rate, stamp))
            if rate and flow.end is None:
                flow.end = self._now + flow.remaining * 8 / rate
        return sorted(decisions, key=lambda decision: decision.rate_bps > 0)

    def _best(
        self, flow: _Flow, unallocated: Mapping[str, int], before: Mapping[str, int]
    ) -> tuple[int, SinglePath | None]:
        """Return the rate and path: the highest, the path that it has, the one with the most left until now, the lowest
        stamp."""
        source, destination = self._hosts[flow.source], self._hosts[flow.destination]
        paths: tuple[SinglePath | None, ...] = (None,)
        if source.groups[:1] != destination.groups[:1]:
            paths = self._paths.get((source.groups[0], destination.groups[0]), ())
        best: tuple[tuple[int, bool, int, int], SinglePath | None] | None = None
        for path in paths:
            links = self._links_of(flow, path)
            line = min(self._capacity[name] for name in links)
            open_bps = min(unallocated[name] for name in links)
            rate = min(line, open_bps) if open_bps >= self._parameters.least_share * line else 0
            stamp = 0 if path is None else path.stamp
            key = (rate, stamp == flow.stamp, min(before[name] for name in links), -stamp)
            if best is None or key > best[0]:
                best = key, path
        return (0, None) if best is None else (best[0][0], best[1])

    def _links_of(self, flow: _Flow, path: SinglePath | None) -> list[str]:
        inner = [] if path is None else [name for name, _ in path.links]
        return [f"{flow.source} up", *inner, f"{flow.destination} down"]
