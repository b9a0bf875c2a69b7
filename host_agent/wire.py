"""Datagrams on their way between the core and its shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protocol.datagram import NUMBER_MODULUS, Kind

OUTER_HEADER_BYTES: Final = 28
"""IPv4 without options, and UDP."""
Rows = npt.NDArray[np.uint8]


class Outgoing(NamedTuple):
    """A datagram for the underlay. ``tos``: DSCP and ECN, as in an IPv4 header."""

    underlay_ip: str
    source_port: int
    destination_port: int
    tos: int
    data: bytes


@dataclass(slots=True)
class Burst:
    """Datagrams of one flow, all of one length but for the last, for one call of the kernel.

    rows: (datagrams, OUTER_HEADER_BYTES + length), contiguous; the shell writes the outer headers into the first
    bytes of each. last_bytes: length of the last datagram. repairs: rows of the same kind that leave behind so many of
    the others, ascending, with a TOS of their own. source_ports: one for each, in the order in which they leave.
    """

    underlay_ip: str
    source_ports: list[int]
    destination_port: int
    tos: int
    rows: Rows
    last_bytes: int
    repairs: Sequence[tuple[int, Rows]] = ()
    repair_tos: int = 0

    def each(self) -> list[Outgoing]:
        """The same datagrams, one by one."""
        data = [(self.tos, row[OUTER_HEADER_BYTES:].tobytes()) for row in self.rows]
        data[-1] = self.tos, data[-1][1][: self.last_bytes]
        for behind, repairs in reversed(self.repairs):
            data[behind:behind] = [(self.repair_tos, row[OUTER_HEADER_BYTES:].tobytes()) for row in repairs]
        return [
            Outgoing(self.underlay_ip, port, self.destination_port, tos, one)
            for port, (tos, one) in zip(self.source_ports, data, strict=True)
        ]


Run = tuple[str, int, int, int, int, int, int, int, int, bytes | None, list[int], list[bytes]]
"""Sound datagrams of one peer, of which each continues the one before: as one thing from the socket to the TUN device.

Underlay address, TOS, and the first one's kind, flags, session, number, sent_us, flow and position
(`protocol.datagram`): numbers and positions of the others follow, but for repairs, which all have the position of
their unit. Then the `inner_packet.InnerPacket.flow` of all
inner packets, None where it is not IPv4 without options and fragments; the source ports
(path stamps or EVs); the bodies.
"""
CodedRun = tuple[Run, list[tuple[int, int, list[bytes]]]]
"""A run of sources with repairs among them: its numbers and its source ports go through all.

Of the repairs: behind how many of the sources they came, position of their unit, bodies (12 bytes at least), alike in
length, code, k and r, with indices below r.
"""


def parts(run: CodedRun) -> list[Run]:
    """The same datagrams in the same order, in runs of one kind."""
    (address, tos, kind, flags, session, number, sent_us, name, position, key, ports, sources), repairs = run
    out: list[Run] = []
    at = done = 0
    for behind, unit, bodies in [*repairs, (len(sources), 0, [])]:
        for what, place, some in ((kind, position + at, sources[at:behind]), (Kind.REPAIR, unit, bodies)):
            if some:
                first = (number + done) % NUMBER_MODULUS
                some_ports = ports[done : done + len(some)]
                whose = key if some is not bodies else None
                out.append(
                    (address, tos, int(what), flags, session, first, sent_us, name, place % NUMBER_MODULUS, whose,
                     some_ports, some)
                )  # fmt: skip
                done += len(some)
        at = behind
    return out


class Arrived(NamedTuple):
    """A datagram from the underlay. ``source_port``: path stamp or EV."""

    data: bytes
    underlay_ip: str
    source_port: int
    tos: int
