"""Datagrams on their way between the core and its shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

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


class Arrived(NamedTuple):
    """A datagram from the underlay. ``source_port``: path stamp or EV."""

    data: bytes
    underlay_ip: str
    source_port: int
    tos: int
