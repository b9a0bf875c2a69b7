"""What a spec may say for simulations alone: TCP, marks and buffers that no lab on a kernel's TCP can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Annotated, Final, Literal

from msgspec import Meta

from topologies.links import MOST_BUFFER_BYTES, MOST_BUFFER_PACKETS
from workloads.description import MOST_LAB_FLOWS

SimulatedProfile = Literal["ns2", "linux", "datacenter"]
SimulatedControl = Literal["newreno", "cubic", "dctcp"]
WITHIN: Final = 0.15
Packets = Annotated[int, Meta(ge=1, le=MOST_BUFFER_PACKETS)]
BufferBytes = Annotated[int, Meta(ge=1, le=MOST_BUFFER_BYTES)]
TimeoutMs = Annotated[float, Meta(gt=0, le=60_000)]


@dataclass(frozen=True, slots=True)
class SimulatedTcp:
    """Single settings of hosts' TCP in place of the profile's; None: the profile's."""

    initial_window: Annotated[Packets | None, Meta(description="packets")] = None
    largest_window: Annotated[Packets | None, Meta(description="packets")] = None
    initial_rto_ms: Annotated[TimeoutMs | None, Meta(description="first retransmission time-out, ms")] = None
    min_rto_ms: Annotated[TimeoutMs | None, Meta(description="least retransmission time-out, ms")] = None
    duplicate_acks: Annotated[
        Packets | None, Meta(description="packets beyond a missing one from which it counts as lost")
    ] = None
    sack: Annotated[bool | None, Meta(description="selective acknowledgements")] = None
    rack: Annotated[
        bool | None, Meta(description="losses by time, which forgives reordering; needs sack")
    ] = None
    reordering_window_quarters: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(
            description="of the least round trip, for which RACK waits at first for what is late; default: 1"
        ),
    ] = None
    delayed_ack_packets: Annotated[
        Packets | None, Meta(description="packets in order for which an acknowledgement waits; 1: for none")
    ] = None
    delayed_ack_ms: Annotated[
        Annotated[float, Meta(ge=0, le=60_000)] | None,
        Meta(description="for at most so many ms; above 0 where it waits for more than one packet"),
    ] = None
    mark_acknowledgements: Annotated[
        bool | None,
        Meta(
            description="whether packets without data can be marked (ECN), as Linux's DCTCP sends them; default: false"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """A buffer of every switch that all its ports share: a queue may hold alpha times what is free of it."""

    bytes: Annotated[BufferBytes, Meta(description="of every switch, for all its ports")]
    alpha: Annotated[
        float,
        Meta(gt=0, le=1024, description="of n full queues each holds alpha x bytes / (1 + n x alpha)"),
    ] = 1.0


@dataclass(frozen=True, slots=True)
class Simulation:
    """profile, congestion_control: None: those of the spec's `transport`. buffer_bytes: of every port, in place of its
    room in packets. shared_buffer: None: each port has its own buffer. mark_from_packets: None: 65 where hosts' TCP
    reads marks, else no marks. drop_unmarkable: None: what cannot be marked passes. control_round_trip_us,
    control_loss: of the control channel, None: 100 and 0. long_paths_apart: None: long flows' paths follow from their
    planned ports. agree_within: how far `capstan agree` lets a simulated figure be from the lab's, as a share of it.
    """

    profile: Annotated[
        SimulatedProfile | None,
        Meta(description="TCP's settings; default: transport.profile. datacenter: dctcp, time-outs of 1 ms"),
    ] = None
    congestion_control: Annotated[
        SimulatedControl | None,
        Meta(description="default: that of simulation.profile, else of transport"),
    ] = None
    tcp: Annotated[SimulatedTcp, Meta(description="single settings in place of the profile's")] = field(
        default_factory=SimulatedTcp
    )
    buffer_bytes: Annotated[
        BufferBytes | None, Meta(description="of every port, in bytes, in place of its link's buffer")
    ] = None
    shared_buffer: Annotated[
        SharedBuffer | None,
        Meta(description="of switches, in place of their ports' buffers (dynamic threshold)"),
    ] = None
    mark_from_packets: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_BUFFER_PACKETS)] | None,
        Meta(
            description="waiting packets from which an arriving one is marked (ECN); 0: never; default: 65 with dctcp"
        ),
    ] = None
    drop_unmarkable: Annotated[
        bool | None,
        Meta(
            description="whether ports drop what cannot be marked (acknowledgements, repairs, agents' feedback) where "
            "they would mark it (RFC 3168); default: false"
        ),
    ] = None
    control_round_trip_us: Annotated[
        Annotated[float, Meta(gt=0, le=10**9)] | None,
        Meta(
            description="from a request to its grant at the host, where flows ask; default: 100 us (CAPTON's paper)"
        ),
    ] = None
    control_loss: Annotated[
        Annotated[float, Meta(ge=0, le=0.9)] | None,
        Meta(description="share of the messages to and from the controller that is lost, where flows ask"),
    ] = None
    long_paths_apart: Annotated[
        bool | None,
        Meta(
            description="whether long flows without end have source ports by which each takes another path where "
            "leaves hash flows; default: false"
        ),
    ] = None
    agree_within: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="how far ./capstan agree lets a simulated figure be from the lab's, as a share",
        ),
    ] = WITHIN


def buffer_problem(simulation: Simulation, frame_bytes: int) -> tuple[str, str] | None:
    """Return which field of the ports' buffers cannot be, and what to give; None: nothing is wrong.

    frame_bytes: of a full packet on the wire.
    """
    shared, own_bytes = simulation.shared_buffer, simulation.buffer_bytes
    if own_bytes is not None and own_bytes < frame_bytes:
        return "buffer_bytes", f"{own_bytes} B hold no full packet ({frame_bytes} B): give more"
    if shared is None:
        return None
    if own_bytes is not None:
        return "buffer_bytes", "cannot be together with shared_buffer, which is in its place: leave one out"
    if min(shared.alpha, 1.0) * shared.bytes < frame_bytes:
        return (
            "shared_buffer.bytes",
            f"with alpha {shared.alpha:g}, {shared.bytes} B hold no full packet ({frame_bytes} B): give more",
        )
    return None


def flows_problem(flows: float) -> str | None:
    """Return why no lab can run so many flows, and what to do; None: it can."""
    if flows <= MOST_LAB_FLOWS:
        return None
    return (
        f"workload.flows: {flows:.0f} flows are too many for one run on switches ({MOST_LAB_FLOWS}): use "
        "./capstan simulate, or more repeats"
    )


def lab_problem(simulation: Simulation) -> str | None:
    """Return what of it no lab has; None: nothing, so that the spec can run in a lab, too."""
    names = [f"simulation.{name}" for name in _said(simulation)]
    if not names:
        return None
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb} for simulations only: use ./capstan simulate, or leave it out"


def _said(simulation: Simulation) -> Iterator[str]:
    for item in fields(simulation):
        value = getattr(simulation, item.name)
        if isinstance(value, SimulatedTcp):
            yield from (f"tcp.{part.name}" for part in fields(value) if getattr(value, part.name) is not None)
        elif item.name != "agree_within" and value is not None:
            yield item.name
