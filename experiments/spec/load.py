"""What an experiment asks of the processors: every switch and host agent of a lab is software on the same machine.

A wake-up for a lone packet is what costs, not its bytes, so the load is packets a second times hops. The figures are
measured by ``./capstan bench lab``; `topologies.switch_cost` says how a machine compares with that of `REFERENCE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from experiments.spec.spec import Spec
from protocol.packet_time import PACKET_BYTES
from workloads.applications import mean_bytes, parts
from workloads.arrivals import flow_rate

FRAME_OVERHEAD_BYTES: Final = 14
ANSWERS_PER_PACKET: Final = 1.0
"""Acknowledgements and receipts for a data packet, of flows whose packets are sprayed (measured: 0.94)."""
FILLED_SHARE: Final = 0.80
"""What sprayed TCP gets of the links that it could fill (measured in the demo: 0.76 to 0.80)."""
CARRIED_SHARE: Final = 0.60
"""Up to this share of the processors no run has been seen that was limited by them."""
FULL_SHARE: Final = 0.85
"""From this share on most runs are."""

Verdict = Literal["carries", "may not carry", "does not carry"]


@dataclass(frozen=True, slots=True)
class PacketCosts:
    """Processor time in microseconds: a packet at a switch, and at a host agent. idle_cores: of a node at rest."""

    hop_us: float
    agent_us: float
    idle_cores_per_node: float
    idle_cores: float

    def times(self, factor: float) -> PacketCosts:
        """Return the costs on a machine whose processors take *factor* times as long."""
        return PacketCosts(
            self.hop_us * factor,
            self.agent_us * factor,
            self.idle_cores_per_node * factor,
            self.idle_cores * factor,
        )


REFERENCE: Final = PacketCosts(hop_us=135.0, agent_us=33.0, idle_cores_per_node=0.002, idle_cores=0.06)
"""Of two cores (AMD EPYC, virtual), at some 2400 packets/s: what the demo takes there, 0.6 of them."""


LONE_US: Final = 135.0
"""What a lone packet costs a switch of that machine (`topologies.switch_cost`)."""
SAME_MACHINE: Final = 1.25
"""Measurements of one virtual machine differ by such a factor from one minute to the next."""


def costs_where(lone_us: float) -> PacketCosts:
    """Return the costs on a machine whose switches take *lone_us* microseconds for a lone packet.

    They are the reference's where that cannot be known by its own.
    """
    factor = lone_us / LONE_US
    return REFERENCE if 1 / SAME_MACHINE <= factor <= SAME_MACHINE else REFERENCE.times(factor)


@dataclass(frozen=True, slots=True)
class Load:
    """What a spec asks for in its busiest second.

    packets_per_s: of all hosts, with acknowledgements. hops: switches that a packet passes. idle_cores: of the lab at
    rest. cores: processors in use, whatever number there is.
    """

    packets_per_s: float
    hops: int
    idle_cores: float
    cores: float

    def share(self, cores: float) -> float:
        """Return the share of *cores* processors in use; above 1 where they do not suffice."""
        return self.cores / cores

    def verdict(self, cores: float) -> Verdict:
        """Return whether *cores* processors carry this without limiting a run."""
        share = self.share(cores)
        if share <= CARRIED_SHARE:
            return "carries"
        return "may not carry" if share <= FULL_SHARE else "does not carry"


def load_of(spec: Spec, costs: PacketCosts = REFERENCE) -> Load:
    """Return the load of *spec*'s busiest second: every long flow sprayed, as under RPS, and short flows arriving.

    Raises ValueError for a fabric whose links between switches have no rate.
    """
    packet_bits = (PACKET_BYTES + FRAME_OVERHEAD_BYTES) * 8
    packets_per_s = _offered_bps(spec) / packet_bits * (1 + ANSWERS_PER_PACKET)
    hops = _hops(spec)
    nodes = len(spec.endpoints()) + len(spec.fabric.layout().switches)
    idle = costs.idle_cores + costs.idle_cores_per_node * nodes
    busy = packets_per_s * (hops * costs.hop_us + 2 * costs.agent_us) / 1e6
    return Load(packets_per_s, hops, idle, idle + busy)


def _offered_bps(spec: Spec) -> float:
    """Return the bits a second that the workload puts through the fabric."""
    capacity, access = spec.capacity_bps(), spec.fabric.access.rate_mbps
    if capacity is None:
        raise ValueError(
            "unshaped links between switches carry what the processors give, so nothing says how large a run is: "
            "give all of them a rate_mbps"
        )
    flows = spec.workload.flows
    mean = mean_bytes(parts(flows))
    short_bps = flow_rate(flows.arrivals, capacity, mean) * mean * 8
    long_flows = spec.workload.long_flows
    if long_flows is None:
        return min(capacity, short_bps)
    long_bps = capacity if access is None else long_flows.number * access * 1e6
    return min(capacity * FILLED_SHARE, long_bps + short_bps)


def _hops(spec: Spec) -> int:
    fabric = spec.fabric
    if fabric.topology == "fat-tree":
        return 5
    return 3 if fabric.leaves > 1 else 1
