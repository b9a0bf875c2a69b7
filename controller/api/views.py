"""How the fabric, its modes and its agents look in the API."""

from __future__ import annotations

import dataclasses
import time

from controller.agents.asking import AgentInfo
from controller.api.answers import (
    AgentObject,
    EventObject,
    FabricView,
    ModesView,
    Place,
    PortQueuesObject,
    QueuesView,
    SchemeView,
)
from controller.effects import ModeChanged
from controller.events import EventLog, Logged, kind_of
from controller.fabric.graph import PortRef
from controller.queues.ports import PortState
from controller.queues.service import SwitchQueues
from controller.running import CurrentScheme, leaf_names
from controller.schemes.loader import scheme_to_dict
from controller.schemes.policy import policy_for
from controller.snapshot import FabricSnapshot
from ovsdb.port_queues import PortQueues, QueueCounters


def fabric_view(snapshot: FabricSnapshot) -> FabricView:
    """Switches, links and hosts as discovered."""
    names = leaf_names(snapshot)
    return {
        "switches": [
            {
                "name": names[switch.dpid],
                "dpid": f"{switch.dpid:016x}",
                "connected": switch.connected,
                "tier": switch.tier,
                "stamp": switch.stamp,
            }
            for switch in snapshot.switches
        ],
        "links": [
            {
                "a": _end(link.a, names),
                "b": _end(link.b, names),
                "up": link.up,
                "speed_kbps": link.speed_kbps,
            }
            for link in snapshot.links
        ],
        "hosts": [
            {
                "name": host.name,
                "underlay_ip": host.ipv4,
                "mac": host.mac,
                "agent": host.agent,
                "place": _end(host.place, names) if host.place else None,
            }
            for host in snapshot.hosts
        ],
        "scheme": snapshot.scheme,
        "settled": snapshot.settled,
    }


def modes_view(snapshot: FabricSnapshot, events: EventLog, since: int | None) -> ModesView:
    """Every leaf's mode now, and the changes after a cursor."""
    names = leaf_names(snapshot)
    logged = [] if since is None else events.since(since)
    return {
        "leaves": [
            {
                "leaf": names.get(one.leaf, str(one.leaf)),
                "mode": one.mode,
                "since_at": events.wall(one.since),
            }
            for one in snapshot.modes
        ],
        "events": [
            {
                "cursor": one.cursor,
                "at": one.at,
                "leaf": names.get(one.data.leaf, str(one.data.leaf)),
                "mode": one.data.mode,
                "cause": one.data.cause,
            }
            for one in logged
            if isinstance(one.data, ModeChanged)
        ],
        "cursor": events.cursor,
    }


def queues_view(wanted: PortQueues, switches: list[SwitchQueues], snapshot: FabricSnapshot) -> QueuesView:
    """Queues of all ports; counters' age is as of now."""
    names, now = leaf_names(snapshot), time.monotonic()
    return {
        "wanted": {"number": wanted.number, "buffer_packets": wanted.buffer_packets},
        "switches": [
            {
                "switch": names.get(one.dpid, one.name),
                "datapath": one.datapath,
                "in_force": one.in_force,
                "problems": list(one.problems),
                "counted_s_ago": None if one.counted_at is None else round(now - one.counted_at, 3),
                "ports": [_port_queues(port, one.counters.get(port.name, ())) for port in one.ports],
            }
            for one in switches
        ],
    }


def _port_queues(port: PortState, counters: tuple[QueueCounters, ...]) -> PortQueuesObject:
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
                "waiting_packets": one.waiting_packets,
                "waiting_bytes": one.waiting_bytes,
                "dropped_packets": one.dropped_packets,
                "sent_packets": one.sent_packets,
                "sent_bytes": one.sent_bytes,
            }
            for queue, one in enumerate(counters)
        ],
    }


def event_view(logged: Logged) -> EventObject:
    """One event of any kind."""
    return {
        "cursor": logged.cursor,
        "at": logged.at,
        "kind": kind_of(logged.data),
        **{key: value for key, value in dataclasses.asdict(logged.data).items() if key != "at"},
    }


def agent_view(agent: AgentInfo) -> AgentObject:
    """One agent."""
    return dataclasses.asdict(agent)


def scheme_view(current: CurrentScheme) -> SchemeView:
    """The scheme in force, and the policy that agents have."""
    return {
        "scheme": scheme_to_dict(current.scheme),
        "base": current.base,
        "overrides": current.overrides,
        "packet_time_us": current.packet_time_s * 1e6,
        "version": current.version,
        "policy": policy_for(current.scheme, current.packet_time_s, current.version).to_dict(),
    }


def _end(place: PortRef, names: dict[int, str]) -> Place:
    return {"switch": names.get(place.dpid, f"{place.dpid:#x}"), "port": place.port}
