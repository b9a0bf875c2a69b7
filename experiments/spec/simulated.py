"""What a spec may say for simulations alone: TCP, marks and buffers that no lab on a kernel's TCP can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

SimulatedProfile = Literal["ns2", "linux", "datacenter"]
SimulatedControl = Literal["newreno", "cubic", "dctcp"]
WITHIN: Final = 0.15
_FROM_1: Final = {"minimum": 1}
_POSITIVE: Final = {"exclusiveMinimum": 0}


@dataclass(frozen=True, slots=True)
class SimulatedTcp:
    """Single settings of hosts' TCP in place of the profile's; None: the profile's."""

    initial_window: int | None = None
    largest_window: int | None = None
    initial_rto_ms: float | None = None
    min_rto_ms: float | None = None
    duplicate_acks: int | None = None
    sack: bool | None = None
    rack: bool | None = None
    delayed_ack_packets: int | None = None
    delayed_ack_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Simulation:
    """profile, congestion_control: None: those of the spec's `transport`. buffer_bytes: of every port, in place of its
    room in packets. mark_from_packets: None: 65 where hosts' TCP reads marks, else no marks. agree_within: how far
    `capstan agree` lets a simulated figure be from the lab's, as a share of it.
    """

    profile: SimulatedProfile | None = None
    congestion_control: SimulatedControl | None = None
    tcp: SimulatedTcp = field(default_factory=SimulatedTcp)
    buffer_bytes: int | None = None
    mark_from_packets: int | None = None
    agree_within: float = WITHIN


def lab_problem(simulation: Simulation) -> str | None:
    """Return what of it no lab has; None: nothing, so that the spec can run in a lab, too."""
    said = [f"simulation.{name}" for name in _said(simulation)]
    if not said:
        return None
    verb = "is" if len(said) == 1 else "are"
    return f"{', '.join(said)} {verb} for simulations only: use ./capstan simulate, or leave it out"


def _said(simulation: Simulation) -> Iterator[str]:
    for item in fields(simulation):
        value = getattr(simulation, item.name)
        if isinstance(value, SimulatedTcp):
            yield from (f"tcp.{part.name}" for part in fields(value) if getattr(value, part.name) is not None)
        elif item.name != "agree_within" and value is not None:
            yield item.name


DESCRIBED: Final[dict[type, dict[str, tuple[str, dict[str, Any]]]]] = {
    SimulatedTcp: {
        "initial_window": ("packets", _FROM_1),
        "largest_window": ("packets", _FROM_1),
        "initial_rto_ms": ("first retransmission time-out, ms", _POSITIVE),
        "min_rto_ms": ("least retransmission time-out, ms", _POSITIVE),
        "duplicate_acks": ("packets beyond a missing one from which it counts as lost", _FROM_1),
        "sack": ("selective acknowledgements", {}),
        "rack": ("losses by time, which forgives reordering; needs sack", {}),
        "delayed_ack_packets": ("packets in order for which an acknowledgement waits; 1: for none", _FROM_1),
        "delayed_ack_ms": ("for at most so many ms", {"minimum": 0}),
    },
    Simulation: {
        "profile": ("TCP's settings; default: transport.profile. datacenter: dctcp, time-outs of 1 ms", {}),
        "congestion_control": ("default: that of simulation.profile, else of transport", {}),
        "tcp": ("single settings in place of the profile's", {}),
        "buffer_bytes": ("of every port, in bytes, in place of its buffer_packets", _FROM_1),
        "mark_from_packets": (
            "waiting packets from which an arriving one is marked (ECN); 0: never; default: 65 with dctcp",
            {"minimum": 0},
        ),
        "agree_within": (
            "how far ./capstan agree lets a simulated figure be from the lab's, as a share",
            {"minimum": 0, "maximum": 1},
        ),
    },
}
"""For the JSON Schema: what each field is, and its limits."""
