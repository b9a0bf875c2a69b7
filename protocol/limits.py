"""How large the numbers, texts and frames of the agents' channel may be, on both sides of it."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

KIB: Final = 1024
MIB: Final = 1024 * KIB
COLUMN_MOST: Final = 16_384
"""Entries of a list in a message; an agent sends 512 finished flows at a time."""
PATHS_MOST: Final = 1024
"""Paths that an agent counts of one flow."""
ACTIVE_MOST: Final = 32
"""Flows in one report of active flows: each costs the agent some 20 us."""

Count = Annotated[int, Meta(ge=0, le=1 << 62)]
"""Packets, bytes, or the number of a request: computations divide them, and JSON has a form for sums of them."""
Port = Annotated[int, Meta(ge=0, le=65_535)]
Version = Annotated[int, Meta(ge=-1, le=1 << 62)]
"""Of a policy; -1: it had none."""
Seconds = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Of a clock, or a duration: sums and differences stay finite."""
Name = Annotated[str, Meta(max_length=16)]
"""A traffic class, a side, a path stamp."""
Text = Annotated[str, Meta(max_length=1024)]
"""An address, a host, a proof. Longer than any that is right, so that a reason can say what is wrong with it."""
ERROR_CHARS: Final = 4096
"""Of why an agent has not applied a policy: it sends no more, and the controller keeps no more."""

FRAME_BYTES: Final = 16 * MIB
"""Of any frame."""
REPORT_BYTES: Final = 10 * MIB
"""Of a part of a report that was asked for: `FLOWS_PER_PART` flows with `PATHS_MOST` paths each, counted twice."""
FROM_AGENT_BYTES: Final[dict[str, int]] = {
    "flows": 4 * MIB,
    "finished-flows": 4 * MIB,
    "path-load": 2 * MIB,
    "active-flows": 2 * MIB,
    "sent-again": 1 * MIB,
}
"""Of a frame that an agent sends, by the type of its message; of all others `OTHER_BYTES`."""
OTHER_BYTES: Final = 64 * KIB
