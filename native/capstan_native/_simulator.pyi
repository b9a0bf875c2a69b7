"""The simulator (native/simulator; simulation/ is the door): times in ps, rates in bit/s, sizes in bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

class SimulatedFlows(TypedDict):
    """A list an entry, by flow in the order in which they were given. None: it did not come to that."""

    completed_ps: list[int | None]
    delivered_ps: list[int | None]
    sent: list[int]
    resent: list[int]
    dropped: list[int]
    timeouts: list[int]
    early: list[int]

class SimulatedLink(TypedDict):
    """A link in one direction; bps is 0 where it is down. Queues do not count the packet on the wire."""

    tier: str
    bps: int
    delay_ps: int
    offered: int
    delivered: int
    delivered_bytes: int
    dropped: int
    marked: int
    longest_queue_packets: int
    longest_queue_bytes: int

class Simulation:
    """A run that goes on in steps. Settings and transports: `simulation.settings`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        transport: Mapping[str, Any],
        starts_ps: Sequence[int],
        sources: Sequence[int],
        destinations: Sequence[int],
        sizes: Sequence[int],
        levels: Sequence[int] | None = None,
    ) -> None:
        """Raises ValueError for settings or flows that cannot be, or that would carry nothing."""
    def run(self, most_events: int) -> bool:
        """Simulate so many events, the interpreter released; return True if the run is over and its books agree.

        Raises:
            ValueError: flows never end, or packets are not accounted for.
        """
    def finished(self) -> int: ...
    def now_ps(self) -> int: ...
    def flows(self) -> SimulatedFlows: ...
    def totals(self) -> dict[str, int]: ...
    def links(self) -> list[SimulatedLink]: ...

def simulated_route(fabric: Mapping[str, Any], source: int, destination: int, path: int) -> list[int]:
    """Return the numbers of the links on a path between hosts. Raises ValueError if there is no such path."""
