"""From how many waiting packets a spec's ports mark, and whether so many ever wait at one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from experiments.spec.simulated import SharedBuffer
from experiments.spec.spec import Spec
from simulation.fabrics import SettingsError
from simulation.spec_scheme import SimulatedScheme
from simulation.tcp import Tcp
from topologies.links import Link

MARK_FROM_PACKETS: Final = 65
"""What DCTCP's authors advise at 10 Gbit/s (SIGCOMM 2010, section 3.5)."""


def mark_from(spec: Spec, tcp: Tcp) -> int:
    """Return the number of waiting packets from which ports mark; 0: never."""
    given = spec.simulation.mark_from_packets
    if given is not None:
        return given
    return MARK_FROM_PACKETS if tcp.marks else 0


def has_rooms(spec: Spec) -> bool:
    """Return whether switches' ports have the room that their links say."""
    return spec.simulation.buffer_bytes is None and spec.simulation.shared_buffer is None


def need_marks(spec: Spec, scheme: SimulatedScheme, number: int) -> int:
    """Return *number*, the waiting packets from which ports mark under a scheme.

    Raises:
        SettingsError: so many full packets never wait at a port between switches, so none would be marked.
    """
    if not number:
        return 0
    most, field = _most_waiting(spec, scheme)
    if number <= most:
        return number
    own = spec.simulation.mark_from_packets is None and scheme.scheme.dctcp is not None
    threshold = "dctcp.mark_from_packets" if own else "simulation.mark_from_packets"
    raise SettingsError(
        f"{number}, but at most {most} full packets wait at a port ({field}), so none would be marked",
        where=f"scheme {scheme.scheme.name}: {threshold}" if own else threshold,
        remedy=f"give fewer, or a larger {field}",
    )


def small_rooms(spec: Spec, scheme: SimulatedScheme, number: int) -> list[str]:
    """Return the links to which ports of switches lead that hold fewer than *number* packets: they mark none."""
    if not number or not has_rooms(spec) or scheme.room:
        return []
    return [
        name
        for name, link in _links(spec, between_switches=False)
        if scheme.queues * link.full_packets(spec.fabric.mtu) < number
    ]


def _most_waiting(spec: Spec, scheme: SimulatedScheme) -> tuple[int, str]:
    """Return how many full packets wait at a port between switches at most, and the field that says so."""
    simulation, frame_bytes = spec.simulation, spec.fabric.mtu
    limits = []
    if scheme.room:
        limits.append((scheme.queues * scheme.room, "queues.buffer_packets"))
    elif simulation.buffer_bytes is not None:
        limits.append((scheme.queues * (simulation.buffer_bytes // frame_bytes), "simulation.buffer_bytes"))
    if simulation.shared_buffer is not None:
        shared = _held_bytes(simulation.shared_buffer, scheme.queues) // frame_bytes
        limits.append((shared, "simulation.shared_buffer.bytes"))
    if limits:
        return min(limits)
    links = [link for _, link in _links(spec, between_switches=True)]
    widest = max(links, key=lambda link: link.full_packets(frame_bytes))
    inner = spec.fabric.topology == "fat-tree" or spec.fabric.leaves > 1
    field = "buffer_packets" if widest.buffer_bytes is None else "buffer_bytes"
    most = scheme.queues * widest.full_packets(frame_bytes)
    return most, f"fabric.{'link' if inner else 'access'}.{field}"


def _held_bytes(shared: SharedBuffer, queues: int) -> int:
    """Return what so many full queues hold together of a shared buffer (Choudhury and Hahne), in bytes."""
    return int(queues * shared.alpha * shared.bytes / (1 + queues * shared.alpha))


def _links(spec: Spec, *, between_switches: bool) -> Iterator[tuple[str, Link]]:
    """Yield links by name: those between switches alone, where there are any, or all."""
    fabric = spec.fabric
    inner = between_switches and (fabric.topology == "fat-tree" or fabric.leaves > 1)
    for name in fabric.link_names():
        if not (inner and name.startswith("h")):
            yield name, fabric.link_named(name)
