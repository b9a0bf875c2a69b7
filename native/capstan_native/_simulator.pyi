"""The simulator (native/simulator; simulation/ is the door): times in ps, rates in bit/s, sizes in bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

class SimulatedFlows(TypedDict):
    """A list an entry, by flow in the order in which they were given. None: it did not come to that."""

    completed_ps: list[int | None]
    delivered_ps: list[int | None]
    sent: list[int]
    resent: list[int]
    resent_bytes: list[int]
    dropped: list[int]
    timeouts: list[int]
    early: list[int]
    duplicates: list[int]
    acknowledged: list[int]
    round_trip_ps: list[int]
    least_round_trip_ps: list[int]

class SimulatedRecord(TypedDict):
    """What agents counted of a flow; paths: datagrams by path stamp."""

    packets: int
    repairs: int
    recovered: int
    lost: int
    reordered: int
    held: int
    release_timeouts: int
    paths: dict[int, int]

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

class SimulatedRecording(TypedDict):
    """Tables of columns, all of a table of one length.

    packets: flow (row of the workload, -1: none), number, kind, class, bytes, source, destination.
    hops, in the order of their offers: packet, link, offered_ps, waited_ps, outcome, queue.
    releases: at_ps, flow, number, kind. Numbers of kinds and outcomes: `simulation.packet_trace`.
    full_at_ps: None where all hops had room.
    """

    packets: dict[str, list[int]]
    hops: dict[str, list[int]]
    releases: dict[str, list[int]]
    full_at_ps: int | None

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
        scheme: Mapping[str, Any] | None = None,
        rooms: Sequence[tuple[int, int | None, int | None]] | None = None,
    ) -> None:
        """rooms: what ports hold in place of the settings' buffer: number of the link, packets or else bytes.

        Raises ValueError for settings or flows that cannot be, or that would carry nothing.
        """
    def run(self, most_events: int) -> bool:
        """Simulate so many events, the interpreter released; return True if the run is over and its counts agree.

        Raises:
            ValueError: flows never end, or packets are not accounted for.
        """
    def run_until(self, most_events: int, until_ps: int) -> bool:
        """As `run`, but return True also if the next event is behind until_ps; flows without an end need not end."""
    def stop(self) -> None:
        """End the run, whatever is under way. Raises ValueError if packets are not accounted for, or none came."""
    def is_over(self) -> bool: ...
    def acknowledged(self, rows: Sequence[int]) -> list[int]:
        """Return the bytes of flows, by their rows, that their senders know to have arrived."""
    def hashed_path(self, row: int) -> int | None:
        """Return the path that a flow's data takes where leaves hash its class; None: there is no choice."""
    def counted(self, row: int) -> SimulatedRecord:
        """Return what agents counted of a flow; complete when the run is over. Raises ValueError: there is none."""
    def set_types(self, features: Sequence[str], values: Sequence[tuple[bytes, Sequence[int]]]) -> None:
        """Have all agents know thresholds, in bytes, of flows by the bytes of their features."""
    def take_asked(self) -> list[tuple[int, int, int, tuple[str, int] | None]]:
        """Return what agents have asked and was not read: host, sequence, flow; of a request destination (the host's
        number as an IPv4 address) and bytes left. `run` and `run_until` return False where there is something new."""
    def decide(self, host: int, decision: tuple[int, int, int, int, int]) -> None:
        """Send a host's agent a decision: sequence, flow, answers, rate (bit/s of agents' clocks; 0: wait), stamp.

        Raises:
            ValueError: there is no such host.
        """
    def wake_at(self, seconds: float | None) -> None:
        """Have `run` and `run_until` return at that time of agents' clocks, whatever comes; None: only for messages."""
    def agents_now(self) -> float:
        """Return the time of agents' clocks, seconds."""
    def admission_totals(self) -> dict[str, int]:
        """Return what all agents have counted of flows that ask, by name."""
    def take_latencies(self) -> list[float]:
        """Return how long decisions took since the last call, from request to grant, seconds of agents' clocks."""
    def mode_changes(self) -> list[tuple[int, int, str, str]]:
        """Return when (ps) leaves changed their modes: leaf, mode, cause."""
    def splits(self) -> list[tuple[int, list[int], list[int], float]]:
        """Return when (ps) paths were split: stamps of low-latency paths, of others, and the share of the former."""
    def record(self, from_ps: int, until_ps: int, most_hops: int) -> None:
        """Record a window of the run, before anything runs. Raises ValueError for a window that cannot be."""
    def recording(self) -> SimulatedRecording | None:
        """Return what was recorded until now; None: nothing was to be."""
    def finished(self) -> int:
        """Return how many flows have ended; of two copies one counts."""
    def now_ps(self) -> int: ...
    def flows(self) -> SimulatedFlows: ...
    def totals(self) -> dict[str, int]: ...
    def links(self) -> list[SimulatedLink]: ...
    def link_counts(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return, by link, bytes and packets delivered, packets dropped, and packets that wait for it now."""

def simulated_routes(fabric: Mapping[str, Any], routes: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """Return the numbers of the links on each path (source host, destination host, path) of a fabric.

    Raises ValueError if there is no such path.
    """
