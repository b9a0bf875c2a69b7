"""How the fabric, its modes and its agents look in the API."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from controller.api.answers import (
    FabricView,
    ModesView,
    PathView,
    Place,
    PortQueuesObject,
    QueuesView,
    SchemeView,
)
from controller.api.answers_live import FaultChange, ModeAt
from controller.fabric.graph import PortRef
from controller.lifecycle import RunningController
from controller.live.event_log import EventLog
from controller.live.queue_history import Way
from controller.live.topics import fault_object
from controller.plane.effects import ModeChanged
from controller.plane.faults import FaultBegan, FaultEnded
from controller.plane.naming import FabricNames, switch_names
from controller.plane.snapshot import FabricSnapshot, HostInfo, PathInfo
from controller.queues.ports import PortState
from controller.queues.service import SwitchQueues
from controller.schemes.current import CurrentScheme
from controller.schemes.loader import scheme_to_dict
from controller.schemes.policy import policy_for
from ovsdb.port_queues import PortQueues, QueueCounters


def fabric_view(
    snapshot: FabricSnapshot, rates: Mapping[str, float], overlay: Mapping[str, list[str]]
) -> FabricView:
    """Return switches, links and hosts as discovered. *rates*: kbit/s by link; *overlay*: by underlay address."""
    names = FabricNames(snapshot)
    return {
        "switches": [
            {
                "name": names.switch(switch.dpid),
                "dpid": f"{switch.dpid:016x}",
                "connected": switch.connected,
                "tier": switch.tier,
                "role": names.role(switch.dpid),
                "stamp": switch.stamp,
            }
            for switch in snapshot.switches
        ],
        "links": [
            {
                "name": link.name,
                "kind": "fabric",
                "a": _end(link.a, names),
                "b": _end(link.b, names),
                "up": link.up,
                "speed_kbps": link.speed_kbps,
                "rate_kbps": rates.get(link.name) or link.speed_kbps or None,
            }
            for link in names.links
            if link.a is not None
        ],
        "hosts": [
            {
                "name": host.name,
                "underlay_ip": host.ipv4,
                "mac": host.mac,
                "agent": host.agent,
                "place": _end(host.place, names) if host.place else None,
                "link": host_link(host, names) if host.place else None,
                "overlay": overlay.get(host.ipv4, []),
            }
            for host in snapshot.hosts
        ],
        "scheme": snapshot.scheme,
        "settled": snapshot.settled,
    }


def path_views(
    paths: Iterable[PathInfo], snapshot: FabricSnapshot, source: str, target: str
) -> list[PathView]:
    """Return paths between two hosts (by name or address) by the names of their switches and links.

    They may be older than *snapshot*: a path whose link is gone by then is left out, all are where a host has no place.
    """
    names = FabricNames(snapshot)
    hosts = {name: host for host in snapshot.hosts if host.place for name in (host.ipv4, host.name)}
    if source not in hosts or target not in hosts:
        return []
    stamps = {switch.stamp: switch.dpid for switch in snapshot.switches}
    shown: list[PathView] = []
    for path in paths:
        steps = zip(path.switches[:-1], path.ports[:-1], strict=True)
        ways = [link for step in steps if (link := names.link(PortRef(*step))) is not None]
        if len(ways) < len(path.switches) - 1:
            continue
        turn = stamps.get(path.stamp) if path.stamp else None
        shown.append(
            {
                "stamp": path.stamp,
                "switches": [names.switch(dpid) for dpid in path.switches],
                "links": [
                    host_link(hosts[source], names),
                    *(way.name for way in ways),
                    host_link(hosts[target], names),
                ],
                "turn": None if turn is None else names.switch(turn),
            }
        )
    return shown


def host_link(host: HostInfo, names: FabricNames) -> str:
    """Return the name of a host's link; its place is known."""
    assert host.place is not None
    return f"{host.name or host.ipv4}-{names.switch(host.place.dpid)}"


def modes_view(snapshot: FabricSnapshot, events: EventLog, since: int | None) -> ModesView:
    """Return every leaf's mode now, and the changes after a cursor."""
    names = FabricNames(snapshot)
    logged, cursor = ([], events.cursor) if since is None else events.page(since)
    return {
        "leaves": [
            {
                "leaf": names.switch(mode.leaf),
                "mode": mode.mode,
                "since_at": events.wall(mode.since),
            }
            for mode in snapshot.modes
        ],
        "events": [
            {
                "cursor": event.cursor,
                "at": event.at,
                "leaf": names.switch(event.data.leaf),
                "mode": event.data.mode,
                "cause": event.data.cause,
            }
            for event in logged
            if isinstance(event.data, ModeChanged)
        ],
        "cursor": cursor,
    }


def modes_between(
    running: RunningController, leaves: Collection[str], began_at: float, ended_at: float
) -> list[ModeAt]:
    """Return mode changes of some leaves between two moments (Unix seconds), after the mode that each had at
    first.
    """
    names = running.live.names()
    first: dict[str, ModeAt] = {}
    modes: list[ModeAt] = []
    for logged in running.events.since(0):
        if not isinstance(logged.data, ModeChanged) or logged.at > ended_at:
            continue
        leaf = names.switch(logged.data.leaf)
        if leaf in leaves:
            change: ModeAt = {
                "at": logged.at,
                "leaf": leaf,
                "mode": logged.data.mode,
                "cause": logged.data.cause,
            }
            if logged.at < began_at:
                first[leaf] = change
            else:
                modes.append(change)
    return [*first.values(), *modes]


def ways_of(path: PathView, names: FabricNames) -> list[Way]:
    """Return a path's links, each with the direction in which the path goes; not that of the sending host."""
    ways: list[Way] = []
    for source, name in zip(path["switches"], path["links"][1:], strict=True):
        link = names.by_name(name)
        if link is not None:
            forth = link.a is not None and names.switch(link.a.dpid) == source
            ways.append((link.name, "ab" if forth else "ba"))
    return ways


def faults_between(running: RunningController, began_at: float, ended_at: float) -> list[FaultChange]:
    """Return faults that began or ended between two moments (Unix seconds)."""
    return [
        {
            "at": logged.at,
            "kind": "fault-began" if isinstance(logged.data, FaultBegan) else "fault-ended",
            "fault": fault_object(logged.data.fault),
        }
        for logged in running.events.since(0)
        if isinstance(logged.data, FaultBegan | FaultEnded) and began_at <= logged.at <= ended_at
    ]


def queues_view(wanted: PortQueues, switches: list[SwitchQueues], snapshot: FabricSnapshot) -> QueuesView:
    """Return queues of all ports; counters' age is as of now."""
    names, now = switch_names(snapshot.switches), time.monotonic()
    return {
        "wanted": {"number": wanted.number, "buffer_packets": wanted.buffer_packets},
        "switches": [
            {
                "switch": names.get(switch.dpid, switch.name),
                "datapath": switch.datapath,
                "in_force": switch.in_force,
                "problems": list(switch.problems),
                "counted_s_ago": None if switch.counted_at is None else round(now - switch.counted_at, 3),
                "ports": [_port_queues(port, switch.counters.get(port.name, ())) for port in switch.ports],
            }
            for switch in switches
        ],
    }


def _port_queues(port: PortState, counters: tuple[QueueCounters, ...]) -> PortQueuesObject:
    if len(counters) != port.queues:
        counters = ()  # of the queues that the port had before
    return {
        "port": port.number,
        "name": port.name,
        "by": port.by,
        "queues": port.queues,
        "buffer_packets": port.buffer_packets or None,
        "rate_bps": port.rate_bps or None,
        "in_force": port.in_force,
        "problem": port.problem,
        "limits": list(port.limits),
        "counters": [
            {
                "queue": queue,
                "waiting_packets": counter.waiting_packets,
                "waiting_bytes": counter.waiting_bytes,
                "dropped_packets": counter.dropped_packets,
                "sent_packets": counter.sent_packets,
                "sent_bytes": counter.sent_bytes,
            }
            for queue, counter in enumerate(counters)
        ],
    }


def scheme_view(current: CurrentScheme) -> SchemeView:
    """Return the scheme in force, and the policy that agents have."""
    return {
        "scheme": scheme_to_dict(current.scheme),
        "base": current.base,
        "overrides": current.overrides,
        "packet_time_us": current.packet_time_s * 1e6,
        "version": current.version,
        "policy": policy_for(current.scheme, current.packet_time_s, current.version).to_dict(),
    }


def _end(place: PortRef, names: FabricNames) -> Place:
    return {"switch": names.switch(place.dpid), "port": place.port}
