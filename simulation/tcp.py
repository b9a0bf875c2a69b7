"""TCP as hosts speak it in a simulation, and the profiles that set all of it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulation.fabrics import picoseconds

Control = Literal["newreno", "cubic", "dctcp"]
Profile = Literal["ns2", "linux", "datacenter"]


@dataclass(frozen=True, slots=True)
class Tcp:
    """A host's TCP. Windows in packets, times in us.

    duplicates: packets beyond a missing one from which it counts as lost. rack: losses by time, which forgives
    reordering; needs sack. reorder_quarters: of the least round trip, for which it waits at first.
    reorder_slack_us: how much later than due the timer of that is. marks: packets may be marked
    instead of dropped (ECN). delayed_packets: an acknowledgement waits for so many packets in order, for at most
    delayed_us. opening: a packet goes to and fro before any data. undo: reductions for what was only late are undone,
    and duplicates make RACK more patient. hystart: growing round trips and long trains of acknowledgements end slow
    start. prr: recoveries reduce the window in proportion to what arrives. mark_acknowledgements: packets without data
    may be marked, too, as Linux's DCTCP has it. kernel_timeouts: the least time-out is one of what is added for
    variation, and the first missing packet's retransmission restarts the timer. count_delivered: a
    window grows by all that has arrived, in place of two packets an acknowledgement at most. timestamp_tick_us: what
    timestamps count in; data more than a tick older than the last in order is discarded (RFC 7323, PAWS). 0: exact, and
    nothing is discarded.
    """

    control: Control = "newreno"
    initial_window: int = 10
    largest_window: int = 10_000
    initial_timeout_us: float = 1_000_000.0
    least_timeout_us: float = 200_000.0
    largest_timeout_us: float = 60_000_000.0
    duplicates: int = 3
    sack: bool = True
    rack: bool = False
    reorder_quarters: int = 1
    reorder_slack_us: float = 0.0
    marks: bool = False
    delayed_packets: int = 1
    delayed_us: float = 0.0
    opening: bool = False
    undo: bool = False
    hystart: bool = False
    prr: bool = False
    mark_acknowledgements: bool = False
    kernel_timeouts: bool = False
    count_delivered: bool = False
    timestamp_tick_us: float = 0.0

    def to_native(self) -> dict[str, Any]:
        """Return the transport as `capstan_native.Simulation` takes it."""
        return {
            "kind": "tcp",
            "control": self.control,
            "initial_window": self.initial_window,
            "largest_window": self.largest_window,
            "initial_timeout_ps": picoseconds(self.initial_timeout_us),
            "least_timeout_ps": picoseconds(self.least_timeout_us),
            "largest_timeout_ps": picoseconds(self.largest_timeout_us),
            "kernel_timeouts": self.kernel_timeouts,
            "timestamp_tick_ps": picoseconds(self.timestamp_tick_us),
            "duplicates": self.duplicates,
            "sack": self.sack,
            "rack": self.rack,
            "reorder_quarters": self.reorder_quarters,
            "reorder_slack_ps": picoseconds(self.reorder_slack_us),
            "marks": self.marks,
            "delayed_packets": self.delayed_packets,
            "delayed_ps": picoseconds(self.delayed_us),
            "opening": self.opening,
            "undo": self.undo,
            "count_delivered": self.count_delivered,
            "hystart": self.hystart,
            "prr": self.prr,
            "mark_acknowledgements": self.mark_acknowledgements,
        }


PROFILES: Final[Mapping[Profile, Tcp]] = {
    "ns2": Tcp("newreno", initial_window=2, initial_timeout_us=3_000_000.0, sack=False),
    "linux": Tcp(
        "cubic",
        rack=True,
        reorder_slack_us=6_000.0,
        delayed_packets=2,
        delayed_us=40_000.0,
        opening=True,
        undo=True,
        hystart=True,
        prr=True,
        kernel_timeouts=True,
        count_delivered=True,
        timestamp_tick_us=1_000.0,
    ),
    "datacenter": Tcp(
        "dctcp", initial_timeout_us=1_000.0, least_timeout_us=1_000.0, rack=True, marks=True, undo=True
    ),
}
"""ns2: of ns-2's defaults, which the papers used: no SACK, an initial window of 2, time-outs of 200 ms at least and 3 s
at first, an acknowledgement for each packet; ours are the largest window of 10,000 packets (ns-2's window_: 20, which
papers raise) and clocks without ticks (ns-2's tcpTick_: 10 ms).
linux: what a kernel's TCP does, but for its tail loss probes
and quick acknowledgements; its timer for reordering adds 2 ms (TCP_TIMEOUT_MIN_US) and is rounded up to ticks of
4 ms, by RACK and by the timer wheel: 4 ms on average. datacenter: DCTCP with time-outs of 1 ms."""
