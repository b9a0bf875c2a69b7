"""What a scheme changes in hosts' TCP and in ports, for simulations alone: no lab's kernel or Open vSwitch has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

Packets = Annotated[int, Meta(ge=1, le=1_000_000)]


@dataclass(frozen=True, slots=True)
class Dctcp:
    """DCTCP's senders, in the TCP that the experiment has otherwise, and ports that mark (SIGCOMM 2010, section 3)."""

    mark_from_packets: Packets = 65
    """A port marks what arrives while so many packets wait, itself counted."""


@dataclass(frozen=True, slots=True)
class PFabric:
    """pFabric's senders and ports (SIGCOMM 2013, section 4): packets of the flow with the least left go first.

    Windows and buffer in packets of 1500 B at 10 Gbit/s, as YAPS has them, are a round trip and two.
    """

    initial_window: Packets = 12
    largest_window: Packets = 15
    timeout_packet_times: Annotated[float, Meta(gt=0)] = 37.5
    """Of the slowest link, hosts' own too: without an acknowledgement, until a sender goes on with a window of 1."""
    buffer_bytes: Annotated[int, Meta(ge=1500, le=1 << 40)] = 36_864
    """Of each port; what is worst is dropped."""
