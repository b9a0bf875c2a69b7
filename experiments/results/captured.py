"""Captured datagrams of a run on real switches as a recording, packet by packet (docs/packet-traces.md).

A capture has each datagram at the far end of every link that it crossed. Its sender's number names it, so that one
seen at several places is one packet; when it was made is in its header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from protocol.datagram import HEADER_BYTES
from topologies.addressing import HostPlace
from workloads.plan import Plan

_ETHERNET_BYTES: Final = 14
_OUTER_BYTES: Final = _ETHERNET_BYTES + 20 + 8
_INNER: Final = _OUTER_BYTES + HEADER_BYTES
FRAME_BYTES: Final = _INNER + 20 + 14
"""What is looked at of a frame: all headers up to the flags of the inner TCP."""
_IP: Final = struct.Struct("!4s4sHH")
_DATAGRAM: Final = struct.Struct("!BBBxIIIII")
_MAGIC: Final = 0xCA
_SOURCE, _REPAIR, _FEEDBACK = 1, 2, 3
_TCP: Final = 6
_SYN: Final = 0x02
DATA, ACKNOWLEDGEMENT, OPENING, REPAIR, FEEDBACK = range(5)
"""Kinds as the file has them."""


class CapturedFrame(NamedTuple):
    """A frame at the far end of a link. at_ns: Unix time; link: its row; head: its first bytes; size: of all of it."""

    at_ns: int
    link: int
    head: bytes
    size: int


@dataclass(frozen=True, slots=True)
class CapturedLink:
    """A direction of a link. bps: 0 where it is not shaped. room: packets that its port holds, all queues together."""

    source: str
    destination: str
    bps: int
    delay_ps: int
    room: int

    def crossing_ps(self, size: int) -> int:
        """Return how long a wire of this rate and delay would take for a frame of *size* bytes."""
        return (-(-size * 8 * 10**12 // self.bps) if self.bps else 0) + self.delay_ps


@dataclass(frozen=True, slots=True)
class CapturedRun:
    """What a capture is of.

    begin_ns, end_ns: the window, Unix time. begin_ps: its begin in the run's time. monotonic_ns: Unix time where the
    monotonic clock, agents' own, has 0. modes: changes of leaves' modes, as a run has them. most_hops: of a recording.
    """

    spec: str
    scheme: str
    repeat: int
    plan: Plan
    hosts: Sequence[HostPlace]
    links: Sequence[CapturedLink]
    begin_ps: int
    begin_ns: int
    end_ns: int
    monotonic_ns: int
    modes: Sequence[Mapping[str, Any]]
    most_hops: int


class Name(NamedTuple):
    """What makes a datagram this one: its addresses, its sender's session and its number."""

    source: bytes
    destination: bytes
    session: int
    number: int


@dataclass(frozen=True, slots=True)
class Datagram:
    """What the headers of a datagram say. flow: the sender's number of it. inner: addresses and ports; None: no TCP."""

    name: Name
    kind: int
    traffic_class: int
    sent_us: int
    flow: int
    position: int
    ports: tuple[int, int]
    inner: tuple[bytes, bytes, int, int] | None


def read_datagram(frame: bytes) -> Datagram | None:
    """Return what the first FRAME_BYTES of a frame say; None where it is no datagram of an agent."""
    if len(frame) < _INNER or frame[_ETHERNET_BYTES] != 0x45:
        return None
    source, destination, *ports = _IP.unpack_from(frame, _ETHERNET_BYTES + 12)
    magic, kind, flags, session, number, sent_us, flow, position = _DATAGRAM.unpack_from(frame, _OUTER_BYTES)
    kind &= 0x0F
    if magic != _MAGIC or kind not in (_SOURCE, _REPAIR, _FEEDBACK):
        return None
    name = Name(source, destination, session, number)
    inner, shown = None, {_REPAIR: REPAIR, _FEEDBACK: FEEDBACK}.get(kind, DATA)
    if kind == _SOURCE:
        inner, shown = _inner(frame)
    return Datagram(
        name,
        shown,
        flags & 0x03,
        sent_us,
        flow,
        number if kind == _FEEDBACK else position,
        (ports[0], ports[1]),
        inner,
    )


def _inner(frame: bytes) -> tuple[tuple[bytes, bytes, int, int] | None, int]:
    """Return addresses and ports of the packet inside, if it is TCP over IPv4, and its kind."""
    if len(frame) < FRAME_BYTES or frame[_INNER] != 0x45 or frame[_INNER + 9] != _TCP:
        return None, DATA
    source, destination, source_port, port = _IP.unpack_from(frame, _INNER + 12)
    total = int.from_bytes(frame[_INNER + 2 : _INNER + 4], "big")
    header = (frame[_INNER + 32] >> 4) * 4
    kind = DATA if total > 20 + header else OPENING if frame[_INNER + 33] & _SYN else ACKNOWLEDGEMENT
    return (source, destination, source_port, port), kind


class PlannedFlows:
    """Finds the planned flow of a datagram by the ports of the packets inside.

    The sender's own number of the flow finds it where there are none: in repairs.
    """

    def __init__(self, plan: Plan, hosts: Sequence[HostPlace]) -> None:
        address = {host.name: _packed(host.overlay) for host in hosts}
        self._of_ports: dict[tuple[bytes, bytes, int], int] = {}
        self._of_number: dict[tuple[bytes, int, int], int] = {}
        for row, flow in enumerate(plan.flows):
            for port in (flow.source_port, flow.copy_port):
                if port is not None:
                    self._of_ports[address[flow.source], address[flow.destination], port] = row

    def learn(self, datagram: Datagram) -> None:
        """Take note of the flow that a datagram's number means."""
        if datagram.inner is None or not datagram.flow:
            return
        source, destination, source_port, port = datagram.inner
        row = self._of_ports.get((source, destination, source_port))
        row = self._of_ports.get((destination, source, port)) if row is None else row
        if row is not None:
            self._of_number[datagram.name.source, datagram.name.session, datagram.flow] = row

    def row(self, datagram: Datagram) -> int | None:
        """Return the row of the plan, once all datagrams have been learnt; None: no planned flow's."""
        return self._of_number.get((datagram.name.source, datagram.name.session, datagram.flow))


def packets_of(frames: Iterable[CapturedFrame]) -> dict[Name, list[tuple[CapturedFrame, Datagram]]]:
    """Return by name of each datagram where it was seen, in the order of time."""
    packets: dict[Name, list[tuple[CapturedFrame, Datagram]]] = {}
    for frame in sorted(frames, key=lambda frame: frame.at_ns):
        datagram = read_datagram(frame.head)
        if datagram is not None:
            packets.setdefault(datagram.name, []).append((frame, datagram))
    return packets


def _packed(address: str) -> bytes:
    return bytes(int(part) for part in address.split("."))


def host_names(hosts: Sequence[HostPlace]) -> dict[bytes, int]:
    """Return the numbers of hosts by their underlay address."""
    return {_packed(host.underlay): number for number, host in enumerate(hosts)}
