"""A window of a simulated run, recorded packet by packet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from experiments.results.packet_trace import MOST_HOPS, PacketTrace, modes_in_window
from simulation.fabrics import SettingsError

if TYPE_CHECKING:
    import capstan_native

    from experiments.spec.spec import Spec
    from simulation.scheme_hosts import SimulatedHosts
    from simulation.spec_fabric import Room, SimulatedFabric
    from workloads.plan import Plan

_PS_PER_MS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: a plan's flows on a spec's fabric, under a scheme. hosts: with the ports under it."""

    spec: Spec
    scheme: str
    repeat: int
    plan: Plan
    fabric: SimulatedFabric
    hosts: SimulatedHosts


@dataclass(slots=True)
class Recorder:
    """Records the window of a run from `from_ms` on, for `for_ms` milliseconds, MOST_HOPS hops at most."""

    from_ms: float
    for_ms: float
    trace: PacketTrace | None = field(default=None, init=False)

    def begin(self, simulation: capstan_native.Simulation) -> None:
        """Have a run recorded that has not begun. Raises ValueError for a window that cannot be."""
        begin_ps = round(self.from_ms * _PS_PER_MS)
        simulation.record(begin_ps, begin_ps + round(self.for_ms * _PS_PER_MS), MOST_HOPS)

    def take(self, simulation: capstan_native.Simulation, recorded: Recorded) -> None:
        """Take what a run that is over has recorded.

        Raises:
            SettingsError: nothing happened in the window.
        """
        recording = simulation.recording()
        if recording is None or not recording["hops"]["packet"]:
            raise SettingsError(
                f"no packet was under way from {self.from_ms:g} ms on for {self.for_ms:g} ms: the run took "
                f"{simulation.now_ps() / _PS_PER_MS:g} ms",
                remedy="record another window",
            )
        begin_ps, full_ps = round(self.from_ms * _PS_PER_MS), recording["full_at_ps"]
        end_ps = min(begin_ps + round(self.for_ms * _PS_PER_MS), simulation.now_ps())
        end_ps = end_ps if full_ps is None else full_ps
        hops, releases = recording["hops"], recording["releases"]
        rows = sorted({*recording["packets"]["flow"], *releases["flow"]} - {-1})
        place = {row: index for index, row in enumerate(rows)} | {-1: -1}
        self.trace = PacketTrace(
            spec=recorded.spec.name,
            scheme=recorded.scheme,
            repeat=recorded.repeat,
            begin_ps=begin_ps,
            length_ps=end_ps - begin_ps,
            cut=full_ps is not None,
            hosts=tuple(place.name for place in recorded.spec.fabric.hosts()),
            links=_links(recorded, simulation.links()),
            flows=_flows(recorded, rows),
            packets=recording["packets"] | {"flow": [place[row] for row in recording["packets"]["flow"]]},
            hops={**hops, "offered_ps": [time_ps - begin_ps for time_ps in hops["offered_ps"]]},
            releases={
                **releases,
                "at_ps": [time_ps - begin_ps for time_ps in releases["at_ps"]],
                "flow": [place[row] for row in releases["flow"]],
            },
            modes=_modes(simulation, begin_ps, end_ps),
        )


def _links(recorded: Recorded, links: Sequence[capstan_native.SimulatedLink]) -> dict[str, list[Any]]:
    """Return the links by number, each with the nodes that it joins."""
    ends = [("", "")] * len(links)
    for name, (up, down) in recorded.fabric.links.items():
        lower, upper = name.split("-")
        ends[up], ends[down] = (lower, upper), (upper, lower)
    rooms = {room[0]: _room(recorded, room) for room in recorded.fabric.rooms}
    return {
        "from": [sender for sender, _ in ends],
        "to": [receiver for _, receiver in ends],
        "bps": [link["bps"] for link in links],
        "delay_ps": [link["delay_ps"] for link in links],
        "room_packets": [rooms.get(number, 0) for number in range(len(links))],
    }


def _room(recorded: Recorded, room: Room) -> int:
    """Return how many full packets wait for a link at most, in all queues of its port; 0: that is not fixed."""
    hosts, (number, packets, own_bytes) = recorded.hosts, room
    of_host = number < len(recorded.spec.fabric.hosts())
    if hosts.by_link == "none" or (hosts.by_link == "hosts" and not of_host):
        packets, own_bytes = hosts.buffer.limit_packets, hosts.buffer.limit_bytes
    queues = hosts.buffer.queues if hosts.buffer.queue == "queues" else 1
    return queues * (packets or (own_bytes or 0) // recorded.spec.fabric.mtu)


def _flows(recorded: Recorded, rows: Sequence[int]) -> dict[str, list[Any]]:
    """Return the flows of these rows; those behind the plan's are copies of its short flows, in their order."""
    flows = recorded.plan.flows
    copied = [flow for flow in flows if flow.traffic_class == "short"]
    of = [flows[row] if row < len(flows) else copied[row - len(flows)] for row in rows]
    number = {place.name: index for index, place in enumerate(recorded.spec.fabric.hosts())}
    return {
        "id": [flow.id for flow in of],
        "source": [number[flow.source] for flow in of],
        "destination": [number[flow.destination] for flow in of],
        "bytes": [flow.size_bytes for flow in of],
        "class": [flow.traffic_class for flow in of],
    }


def _modes(simulation: capstan_native.Simulation, begin_ps: int, end_ps: int) -> dict[str, list[Any]]:
    changes = [(time_ps, leaf, mode == "on") for time_ps, leaf, mode, _ in simulation.mode_changes()]
    return modes_in_window(changes, begin_ps, end_ps)
