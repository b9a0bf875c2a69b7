"""A recording (`experiments.results.packet_trace`) out of what was captured of a run on real switches."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from experiments.results.captured import (
    CapturedFrame,
    CapturedLink,
    CapturedRun,
    Datagram,
    PlannedFlows,
    host_names,
    packets_of,
)
from experiments.results.packet_trace import FLIGHT, OUTCOMES, PacketTrace, SwitchRecording, modes_in_window
from topologies.links import FRAME_BYTES

_SENT, _DROPPED, _PENDING = (OUTCOMES.index(outcome) for outcome in ("sent", "dropped", "pending"))
_HALF: Final = 1 << 31
_PS_PER_NS: Final = 1000
_SWITCH_PS: Final = 50 * 10**9
"""What a switch on a busy machine may take for a packet beside its port."""


class _Hop(NamedTuple):
    """Times are ps from the window's begin. left_ps: None while it waits, and where it was dropped."""

    offered_ps: int
    packet: int
    link: int
    left_ps: int | None
    flight_ps: int
    outcome: int


@dataclass(slots=True)
class _Building:
    run: CapturedRun
    hops: list[_Hop] = field(default_factory=list)
    unplaced_drops: int = 0
    left_out: int = 0


def captured_trace(frames: Sequence[CapturedFrame], run: CapturedRun, *, cut: bool) -> PacketTrace | None:
    """Return the recording of a capture; None where no packet of an agent was under way in its window.

    A packet is held at a port until it is seen at the link's far end: the last of that time, up to what a wire of the
    link's rate would take, counts as its flight. cut: the capture was full at the window's end.
    """
    within = [frame for frame in frames if run.begin_ns <= frame.at_ns <= run.end_ns]
    seen = list(packets_of(within).values())
    building = _Building(run)
    places, choices = host_names(run.hosts), _Choices(run)
    for sightings in seen:
        for frame, datagram in sightings:
            choices.learn(run.links[frame.link], frame.link, datagram)
    for number, sightings in enumerate(seen):
        _follow(building, choices, number, sightings=sightings, places=places)
    hops = sorted(building.hops, key=lambda hop: hop.offered_ps)
    if len(hops) > run.most_hops:
        full_ns = run.begin_ns + hops[run.most_hops].offered_ps // _PS_PER_NS - 1
        return captured_trace(within, replace(run, end_ns=full_ns), cut=True)
    if not hops:
        return None
    return _trace(building, hops, [sightings[0] for sightings in seen], places, cut=cut)


def _follow(
    building: _Building,
    choices: _Choices,
    number: int,
    *,
    sightings: Sequence[tuple[CapturedFrame, Datagram]],
    places: dict[bytes, int],
) -> None:
    """Add the hops of one packet, from its sender's port to where it was seen last, and what became of it there."""
    run = building.run
    first, datagram = sightings[0]
    if datagram.name.source not in places or datagram.name.destination not in places:
        building.left_out += len(sightings)
        return
    end = run.hosts[places[datagram.name.destination]].name
    node = run.hosts[places[datagram.name.source]].name
    offered_ps: int | None = _sent_ps(run, first.at_ns, datagram.sent_us)
    if run.links[first.link].source != node:  # it was beyond its first links when the window began
        node, offered_ps = run.links[first.link].source, None
    for frame, _ in sightings:
        link = run.links[frame.link]
        if link.source != node:
            building.left_out += 1
            return
        at_ps = (frame.at_ns - run.begin_ns) * _PS_PER_NS
        if offered_ps is not None and offered_ps >= 0:
            held_ps = max(0, at_ps - offered_ps)
            flight_ps = min(held_ps, link.crossing_ps(frame.size)) if link.bps or link.delay_ps else held_ps
            left_ps = offered_ps + held_ps - flight_ps
            building.hops.append(_Hop(offered_ps, number, frame.link, left_ps, flight_ps, _SENT))
        node, offered_ps = link.destination, at_ps
    if node == end or offered_ps is None:
        return
    last_ps = (run.end_ns - run.begin_ns) * _PS_PER_NS
    row = choices.of(node, end, sightings[-1][1])
    stay_ps = choices.longest_stay_ps(node) if row is None else _stay_ps(run.links[row])
    outcome = _PENDING if offered_ps + stay_ps >= last_ps else _DROPPED
    if row is not None:
        building.hops.append(_Hop(offered_ps, number, row, None, 0, outcome))
    elif outcome == _DROPPED:
        building.unplaced_drops += 1


def _sent_ps(run: CapturedRun, at_ns: int, sent_us: int) -> int:
    """Return when its agent made a datagram that was first seen at *at_ns*, ps from the window's begin."""
    seen_us, beyond_ns = divmod(at_ns - run.monotonic_ns, 1000)
    ago_us = (seen_us - sent_us) % (2 * _HALF)
    ago_ns = 0 if ago_us >= _HALF else ago_us * 1000 + beyond_ns
    return (at_ns - ago_ns - run.begin_ns) * _PS_PER_NS


def _stay_ps(link: CapturedLink) -> int:
    """Return how long a packet may be at a full port, behind as many full frames as that holds."""
    return link.crossing_ps((link.room + 2) * FRAME_BYTES) + _SWITCH_PS


class _Choices:
    """Which link a packet that was seen no more had been meant for."""

    def __init__(self, run: CapturedRun) -> None:
        self._links = run.links
        self._seen: dict[tuple[str, bytes, bytes, tuple[int, int]], int] = {}
        self._from: dict[str, list[int]] = {}
        self._to: dict[str, list[str]] = {}
        for row, link in enumerate(run.links):
            self._from.setdefault(link.source, []).append(row)
            self._to.setdefault(link.destination, []).append(link.source)
        self._distances: dict[str, dict[str, int]] = {}

    def learn(self, link: CapturedLink, row: int, datagram: Datagram) -> None:
        """Take note of the link that a packet with these addresses and ports took."""
        self._seen[link.source, datagram.name.source, datagram.name.destination, datagram.ports] = row

    def of(self, node: str, end: str, datagram: Datagram) -> int | None:
        """Return the only link towards its destination, or that of packets with the same addresses and ports."""
        distances = self._distances.setdefault(end, self._distances_to(end))
        shortest = [
            row
            for row in self._from.get(node, ())
            if distances.get(self._links[row].destination, -2) == distances.get(node, 0) - 1
        ]
        if len(shortest) == 1:
            return shortest[0]
        key = (node, datagram.name.source, datagram.name.destination, datagram.ports)
        return self._seen.get(key)

    def longest_stay_ps(self, node: str) -> int:
        """Return the longest stay at any port of a node."""
        return max((_stay_ps(self._links[row]) for row in self._from.get(node, ())), default=0)

    def _distances_to(self, end: str) -> dict[str, int]:
        distances, waiting = {end: 0}, deque([end])
        while waiting:
            node = waiting.popleft()
            for before in self._to.get(node, ()):
                if before not in distances:
                    distances[before] = distances[node] + 1
                    waiting.append(before)
        return distances


def _trace(
    building: _Building,
    hops: Sequence[_Hop],
    seen: Sequence[tuple[CapturedFrame, Datagram]],
    places: dict[bytes, int],
    *,
    cut: bool,
) -> PacketTrace:
    run = building.run
    planned = PlannedFlows(run.plan, run.hosts)
    for _, datagram in seen:
        planned.learn(datagram)
    numbers = list(dict.fromkeys(hop.packet for hop in hops))
    packet = {number: row for row, number in enumerate(numbers)}
    shown = [seen[number] for number in numbers]
    rows = [planned.row(datagram) for _, datagram in shown]
    used = sorted({row for row in rows if row is not None})
    flow = {row: place for place, row in enumerate(used)}
    flows = [run.plan.flows[row] for row in used]
    host = {place.name: number for number, place in enumerate(run.hosts)}
    return PacketTrace(
        spec=run.spec,
        scheme=run.scheme,
        repeat=run.repeat,
        begin_ps=run.begin_ps,
        length_ps=(run.end_ns - run.begin_ns) * _PS_PER_NS,
        cut=cut,
        hosts=tuple(place.name for place in run.hosts),
        links={
            "from": [link.source for link in run.links],
            "to": [link.destination for link in run.links],
            "bps": [link.bps for link in run.links],
            "delay_ps": [link.delay_ps for link in run.links],
            "room_packets": [link.room for link in run.links],
        },
        flows={
            "id": [planned.id for planned in flows],
            "source": [host[planned.source] for planned in flows],
            "destination": [host[planned.destination] for planned in flows],
            "bytes": [planned.size_bytes for planned in flows],
            "class": [planned.traffic_class for planned in flows],
        },
        packets={
            "flow": [-1 if row is None else flow[row] for row in rows],
            "number": [datagram.position for _, datagram in shown],
            "kind": [datagram.kind for _, datagram in shown],
            "class": [datagram.traffic_class for _, datagram in shown],
            "bytes": [frame.size for frame, _ in shown],
            "source": [places[datagram.name.source] for _, datagram in shown],
            "destination": [places[datagram.name.destination] for _, datagram in shown],
        },
        hops={
            "packet": [packet[hop.packet] for hop in hops],
            "link": [hop.link for hop in hops],
            "offered_ps": [hop.offered_ps for hop in hops],
            "waited_ps": [0 if hop.left_ps is None else hop.left_ps - hop.offered_ps for hop in hops],
            "outcome": [hop.outcome for hop in hops],
            "queue": _queues(hops),
            FLIGHT: [hop.flight_ps for hop in hops],
        },
        releases={"at_ps": [], "flow": [], "number": [], "kind": []},
        modes=_modes(run),
        switches=SwitchRecording(building.unplaced_drops, building.left_out),
    )


def _queues(hops: Iterable[_Hop]) -> list[int]:
    """Return for each hop, in the order of time, how many packets waited at its port when it had come."""
    waiting: dict[int, list[float]] = {}
    counts = []
    for hop in hops:
        ends = waiting.setdefault(hop.link, [])
        del ends[: bisect.bisect_right(ends, hop.offered_ps)]
        if hop.outcome != _DROPPED:
            left_ps = float("inf") if hop.left_ps is None else hop.left_ps
            if left_ps > hop.offered_ps:
                bisect.insort(ends, left_ps)
        counts.append(len(ends))
    return counts


def _modes(run: CapturedRun) -> dict[str, list[Any]]:
    end_ps = run.begin_ps + (run.end_ns - run.begin_ns) * _PS_PER_NS
    changes = [
        (round(change["at_s"] * 10**12), int(change["leaf"][1:]) - 1, change["mode"] == "on")
        for change in run.modes
    ]
    return modes_in_window(changes, run.begin_ps, end_ps)
