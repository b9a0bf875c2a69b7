"""What `benchmarks.overload` measured, as figures with goals and notes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Final

from benchmarks.busy import idle_percent
from benchmarks.figures import Figure, Goal, percentile
from benchmarks.overload_fabric import LINKS
from experiments.results.cpu_use import CpuSample

BLOCK_S: Final = 120.0
AFTER_S: Final = 10.0
RATIO_GOAL: Final = Goal(1.5, cores=2)
"""Of what is flooded to what is alone. Where the floor alone is above, it says nothing of the controller: then what the
flood adds to the floor is taken off first."""
HEALTH_GOAL_MS: Final = Goal(100.0, cores=2)
MEMORY_GOAL_MIB: Final = 1024.0
"""Of both processes together."""
CONNECTIONS_GOAL: Final = 16
"""Sockets more than before the load: between the two processes, and of the benchmark's own clients."""
KEPT_GOAL_MIB: Final = 256.0
"""More than before, after the load: what allocators keep."""


@dataclass
class Block:
    """What was measured in one of the blocks; times in milliseconds."""

    on_ms: list[float] = field(default_factory=list)
    off_ms: list[float] = field(default_factory=list)
    health_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)
    """Of two processes that share nothing with the controller but the processors (`overload_floor`)."""
    most_bytes: int = 0
    """Resident memory of the controller and its HTTP process, the most of it."""
    idle: list[tuple[CpuSample, CpuSample]] = field(default_factory=list)


@dataclass
class Measured:
    """All blocks, and what was there before, beside and after the load."""

    alone: Block = field(default_factory=Block)
    loaded: Block = field(default_factory=Block)
    after: Block = field(default_factory=Block)
    loads: dict[str, float] = field(default_factory=dict)
    links_lost: int = 0
    links_after: int = 0
    connections_before: int = 0
    connections_after: int = 0
    hosts_after: int = 0
    switches_after: int = 0
    agents: Block | None = None
    """Beside `overload_agents`."""
    bodies: Block | None = None
    """Beside `overload_bodies`."""
    clients: dict[str, dict[str, float]] = field(default_factory=dict)
    """What there was of these two loads, by block."""

    def blocks(self) -> dict[str, Block]:
        """Return the blocks that were measured, in their order."""
        named = {"alone": self.alone, "agents": self.agents, "bodies": self.bodies}
        named |= {"loaded": self.loaded, "after": self.after}
        return {name: block for name, block in named.items() if block is not None}


def figures(measured: Measured) -> dict[str, Figure]:
    """Return all figures of what was measured."""
    result: dict[str, Figure] = {}
    blocks = measured.blocks()
    for name, block in blocks.items():
        result[f"on_median_{name}"] = Figure(statistics.median(block.on_ms), "ms")
        result[f"on_p99_{name}"] = Figure(percentile(block.on_ms, 99), "ms")
        result[f"off_p99_{name}"] = Figure(percentile(block.off_ms, 99), "ms")
        result[f"floor_p99_{name}"] = Figure(percentile(block.floor_ms, 99), "ms")
        result[f"cycles_{name}"] = Figure(len(block.off_ms), "changes each way", better="higher")
        result[f"processors_idle_{name}"] = Figure(idle_percent(block.idle), "%", better="higher")
    for name in [name for name in blocks if name != "alone"]:
        for way in ("on", "off"):
            result |= _compared(result, way, name)
        floor = result[f"floor_p99_{name}"].value
        result[f"floor_p99_{name}_to_alone"] = Figure(floor / result["floor_p99_alone"].value, "times")
        result[f"on_p99_{name}_over_floor"] = Figure(result[f"on_p99_{name}"].value - floor, "ms")
    for name, block in blocks.items():
        goal = None if name == "alone" else HEALTH_GOAL_MS
        result[f"health_p99_{name}"] = Figure(percentile(block.health_ms, 99), "ms", goal)
        result[f"health_max_{name}"] = Figure(max(block.health_ms), "ms")
        memory_goal = None if name in ("alone", "after") else MEMORY_GOAL_MIB
        result[f"memory_{name}"] = Figure(block.most_bytes / 2**20, "MiB at most", memory_goal)
    kept_mib = (measured.after.most_bytes - measured.alone.most_bytes) / 2**20
    result["memory_kept_after"] = Figure(kept_mib, "MiB more than alone", KEPT_GOAL_MIB)
    result["links_lost"] = Figure(measured.links_lost, "links that went down in the whole run", 0)
    result["links_after"] = Figure(measured.links_after, f"of {LINKS} links up", LINKS, "higher")
    more = measured.connections_after - measured.connections_before
    result["connections_after"] = Figure(more, "sockets more than before the load", CONNECTIONS_GOAL)
    result["hosts_after"] = Figure(measured.hosts_after, "hosts of the load still known", 0)
    result["switches_after"] = Figure(measured.switches_after, "switches of the load still known", 0)
    return result | _of_loads(measured.loads) | _of_clients(measured)


def _compared(p99: dict[str, Figure], way: str, name: str) -> dict[str, Figure]:
    """Return how a block's p99 compares with what it is alone: as it is, and less what the flood adds to the floor."""
    alone, floor_alone = p99[f"{way}_p99_alone"].value, p99["floor_p99_alone"].value
    there, floor = p99[f"{way}_p99_{name}"].value, p99[f"floor_p99_{name}"].value
    floor_allows = floor <= RATIO_GOAL.value * floor_alone
    less_floor = (there - max(0.0, floor - floor_alone)) / alone
    return {
        f"{way}_p99_{name}_to_alone": Figure(there / alone, "times", RATIO_GOAL if floor_allows else None),
        f"{way}_p99_{name}_less_floor": Figure(
            less_floor, "times, without what is added to the floor", RATIO_GOAL
        ),
    }


def _of_loads(loads: dict[str, float]) -> dict[str, Figure]:
    seconds = loads.get("seconds", 0.0) or 1.0
    return {
        "packet_ins": Figure(
            loads.get("packet_ins", 0) / seconds, "packet-ins/s that were sent", better="higher"
        ),
        "packet_ins_taken": Figure(
            loads.get("packet_ins_taken", 0) / seconds, "packet-ins/s that were taken", better="higher"
        ),
        "dpids": Figure(loads.get("dpids", 0), "datapath ids that connected", better="higher"),
        "ports": Figure(loads.get("ports", 0), "ports that they said they have", better="higher"),
        "readers": Figure(
            loads.get("readers", 0), "readers of the stream that read nothing", better="higher"
        ),
        "silent": Figure(loads.get("silent", 0), "connections without a request", better="higher"),
        "uploads": Figure(loads.get("uploads", 0), "bodies of 64 MiB that were begun", better="higher"),
        "pipelines": Figure(loads.get("pipelines", 0), "times 500 requests, no answer read", better="higher"),
    }


def _of_clients(measured: Measured) -> dict[str, Figure]:
    """Return what was sent beside the blocks of agents and bodies, a second."""
    result: dict[str, Figure] = {}
    agents, bodies = measured.clients.get("agents", {}), measured.clients.get("bodies", {})
    for unit, load in (("agents", agents), ("bodies", bodies)):
        seconds = load.get("seconds", 0.0) or 1.0
        for name, count in sorted(load.items()):
            if name == "seconds":
                continue
            scale, words = (2**20, "MiB/s") if name.endswith("_bytes") else (1, "a second")
            label = f"{unit}_{name.removesuffix('_bytes')}"
            result[label] = Figure(count / scale / seconds, words, better="higher")
    return result


def notes(measured: Measured, cycles: int) -> tuple[str, ...]:
    """Return what a reader needs to know of the figures."""
    return (
        f"minimal switches on loopback, {cycles} cycles a block or {BLOCK_S:g} s of them",
        "on: from the first short packet's way up until the leaf has its update; off: from that to the next one",
        "the load's own process is on the same machine, where it has what all others leave (SCHED_IDLE)",
        "agents: beside agents with the token that send as much as is taken, and connections without it",
        "bodies: beside clients that may send results, and send as many as are taken",
        "floor: the same between two processes that share nothing with the controller but the processors",
        f"less_floor: without what a block adds to the floor; a ratio to alone has a goal where the floor's is "
        f"<= {RATIO_GOAL.value:g}",
        f"after: from {AFTER_S:g} s after the load's end on",
        *(f"{name}: {value:g}" for name, value in sorted(measured.loads.items())),
    )
