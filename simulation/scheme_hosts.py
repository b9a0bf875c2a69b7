"""What hosts send by and ports hold under one scheme of a spec: the spec's TCP and buffers, or the scheme's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from math import inf
from typing import Any, Literal

from controller.schemes.hosts import PFabric
from experiments.spec.simulated import buffer_problem
from experiments.spec.spec import Spec
from protocol.packet_time import PACKET_BYTES
from simulation.fabrics import SettingsError
from simulation.settings import Buffer, PFabricHosts, Sharing
from simulation.spec_marks import has_rooms, mark_from, need_marks
from simulation.spec_scheme import SimulatedScheme
from simulation.spec_transport import transport_of, transport_under
from simulation.tcp import Tcp
from topologies.links import Link

ByLink = Literal["none", "hosts", "all"]


@dataclass(frozen=True, slots=True)
class SimulatedHosts:
    """transport: of every host. buffer: of every port, but for those with the room that their link says."""

    transport: Tcp | PFabricHosts
    buffer: Buffer
    by_link: ByLink

    def words(self) -> str:
        """Return how hosts send and what ports do, for people."""
        if isinstance(self.transport, PFabricHosts):
            of = self.transport
            return (
                f"hosts send by pFabric (windows of {of.initial_window} to {of.largest_window} packets, time-out of "
                f"{of.timeout_us / 1000:.4g} ms), ports hold {self.buffer.limit_bytes} B and drop what is worst"
            )
        marks = self.buffer.mark_from_packets
        return f"hosts send by TCP {self.transport.control}, ports mark from {marks} waiting packets on"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a result's JSON document has them."""
        return {"transport": self.transport.to_native(), "buffer": self.buffer.to_native()}


def hosts_under(spec: Spec, scheme: SimulatedScheme) -> SimulatedHosts:
    """Return hosts and ports of a spec under one of its schemes.

    Raises:
        SettingsError: what is not simulated, or does not go together; says what to change.
    """
    pfabric, dctcp = scheme.scheme.pfabric, scheme.scheme.dctcp
    if pfabric is not None:
        buffer = Buffer("pfabric", limit_bytes=pfabric.buffer_bytes)
        return SimulatedHosts(_pfabric(spec, scheme, pfabric), buffer, by_link="none")
    transport = transport_under(transport_of(spec), spec, scheme.policy.admission)
    marks = mark_from(spec, transport)
    if dctcp is not None:
        transport = replace(transport, control="dctcp", marks=True)
        given = spec.simulation.mark_from_packets
        marks = dctcp.mark_from_packets if given is None else given
    if scheme.scheme.estimates_by_marks:
        _check_estimator(scheme, transport, marks)
    buffer = _buffer(spec, scheme, need_marks(spec, scheme, marks))
    return SimulatedHosts(transport, buffer, _by_link(spec, scheme))


def check_marks(spec: Spec, hosts: Sequence[SimulatedHosts]) -> None:
    """Check that what a spec says of marks has a sense under one of its schemes. hosts: of all of them; none: no check.

    Raises:
        SettingsError: it has none.
    """
    if not hosts:
        return
    simulation = spec.simulation
    if simulation.drop_unmarkable and not any(setting.buffer.mark_from_packets for setting in hosts):
        raise SettingsError(
            "no port marks, so nothing would be dropped",
            where="simulation.drop_unmarkable",
            remedy="give simulation.mark_from_packets",
        )
    reads_marks = any(_marks_data(setting.transport) for setting in hosts)
    # of schemes that were chosen from a spec, those left out may be the ones that go by its TCP
    of_use = reads_marks or transport_of(spec).marks or simulation.drop_unmarkable
    if simulation.mark_from_packets and not of_use:
        raise SettingsError(
            "no host's TCP reads marks, so nothing would be marked",
            where="simulation.mark_from_packets",
            remedy="give congestion_control: dctcp, or leave it out",
        )
    if simulation.tcp.mark_acknowledgements and not reads_marks:
        raise SettingsError(
            "no host's TCP reads marks",
            where="simulation.tcp.mark_acknowledgements",
            remedy="give congestion_control: dctcp",
        )


def _check_estimator(scheme: SimulatedScheme, transport: Tcp, marks: int) -> None:
    if transport.marks and marks:
        return
    problem, where, remedy = (
        ("ports mark nothing", "simulation.mark_from_packets", "give 1 or more")
        if transport.marks
        else ("packets of hosts cannot be marked", "simulation.congestion_control", "give dctcp")
    )
    raise SettingsError(
        f"scheme {scheme.scheme.name}: {problem}, so estimator marks would count losses alone",
        where=where,
        remedy=f"{remedy}, or estimator: loss-rate",
    )


def _marks_data(transport: Tcp | PFabricHosts) -> bool:
    return isinstance(transport, Tcp) and transport.marks


def _buffer(spec: Spec, scheme: SimulatedScheme, marks: int) -> Buffer:
    simulation = spec.simulation
    wrong = buffer_problem(simulation, spec.fabric.mtu)
    if wrong is not None:
        raise SettingsError(wrong[1], where=f"simulation.{wrong[0]}")
    limit_bytes = None if scheme.room else simulation.buffer_bytes
    limit_packets = None if limit_bytes else scheme.room
    if has_rooms(spec) and limit_packets is None:
        limit_packets, limit_bytes = spec.fabric.link.limits
    shared = simulation.shared_buffer
    return Buffer(
        "fifo" if scheme.queues == 1 else "queues",
        limit_bytes=limit_bytes,
        limit_packets=limit_packets,
        mark_from_packets=marks,
        queues=scheme.queues,
        shared=None if shared is None else Sharing(shared.bytes, shared.alpha),
        drops_unmarkable=bool(simulation.drop_unmarkable and marks),
    )


def _by_link(spec: Spec, scheme: SimulatedScheme) -> ByLink:
    if scheme.room or spec.simulation.buffer_bytes:
        return "none"
    return "all" if spec.simulation.shared_buffer is None else "hosts"


def _pfabric(spec: Spec, scheme: SimulatedScheme, settings: PFabric) -> PFabricHosts:
    timeout_s = settings.timeout_packet_times * max(spec.packet_time_s, _access_packet_time_s(spec))
    if timeout_s <= (round_trip_s := _round_trip_s(spec)):
        raise SettingsError(
            f"scheme {scheme.scheme.name}: time-outs of {timeout_s * 1e3:.4g} ms are over before a packet is "
            f"acknowledged ({round_trip_s * 1e3:.4g} ms on idle links): override pfabric.timeout_packet_times by more"
        )
    return PFabricHosts(settings.initial_window, settings.largest_window, timeout_s * 1e6)


def _access_packet_time_s(spec: Spec) -> float:
    """Return the seconds that a packet takes on the slowest link of a host."""
    fabric = spec.fabric
    links = [fabric.link_named(name) for name in fabric.link_names() if name.startswith("h")]
    return max(PACKET_BYTES * 8 / ((link.rate_mbps or inf) * 1e6) for link in links)


def _round_trip_s(spec: Spec) -> float:
    """Return what a full packet and an acknowledgement as long take at most through idle links: two of each tier."""
    fabric = spec.fabric
    tiers: dict[str, list[float]] = {}
    for name in fabric.link_names():
        lower, _, upper = name.partition("-")
        if name not in fabric.down:
            crossing_s = _crossing_s(fabric.link_named(name), fabric.mtu)
            tiers.setdefault(lower[0] + upper[0], []).append(crossing_s)
    return 2 * sum(sum(nlargest(2, crossings_s)) for crossings_s in tiers.values())


def _crossing_s(link: Link, packet_bytes: int) -> float:
    return packet_bytes * 8 / ((link.rate_mbps or inf) * 1e6) + link.delay_ms / 1e3
