"""Leaf modes and split paths (controller/modes/): times in seconds, leaves by datapath id, paths by stamp."""

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

class LeafModeMonitor:
    """CAPS's ON/OFF mode of each leaf (native/fabric/src/mode.rs)."""

    SHORTEST_SAMPLING_S: ClassVar[float]
    RESOLUTION_S: ClassVar[float]
    READ_LOST_S: ClassVar[float]

    def __init__(
        self, sampling_packet_times: float, quiet_intervals: int, longest_hold: int, packet_time_s: float
    ) -> None:
        """Raises ValueError for a rule or a packet time out of range."""
    @property
    def sampling_time_s(self) -> float: ...
    def leaf_added(self, leaf: int, now: float) -> None: ...
    def leaf_removed(self, leaf: int) -> None: ...
    def leaves(self) -> list[int]:
        """Return the leaves that are watched, ascending."""
    def mode(self, leaf: int) -> Literal["on", "off"]:
        """Raises KeyError for a leaf that was not added."""
    def since(self, leaf: int) -> float:
        """Raises KeyError for a leaf that was not added."""
    def mode_above(self, leaves: list[int]) -> Literal["on", "off"]:
        """Return ON if any of these leaves is."""
    def first_packet(self, leaf: int, now: float) -> _Change | None: ...
    def sample(self, leaf: int, packets: int, now: float) -> _Change | None: ...
    def due(self, now: float) -> tuple[int, ...]:
        """Return the leaves whose meter is to be read now, ascending; each is named once per read."""
    def deadline(self) -> float | None: ...

_Change = tuple[int, Literal["on", "off"], float, Literal["first-packet", "meter", "quiet"]]

class PathSplit:
    """Paths of a fabric: each is one or the other."""

    @property
    def low_latency(self) -> set[int]: ...
    @property
    def throughput(self) -> set[int]: ...
    def by_class(self, path_sets: Iterable[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return what of a leaf's paths each class keeps to, ascending; nothing where these are of one kind only."""

class LoadPartition:
    """Freeway's split of the paths (native/fabric/src/partition.rs)."""

    LATE: ClassVar[float]
    LONG_UTILISATION: ClassVar[float]
    SLACK: ClassVar[float]

    @staticmethod
    def highest_load_of(deadline: float, burst: float) -> float:
        """Return the load, 0..1, at which a share of `LATE` waits longer than *deadline*; both in packet times."""
    def __new__(
        cls,
        deadline_packet_times: float,
        burst_packets: float,
        sampling_packet_times: float,
        samples: int,
        packet_time_s: float,
    ) -> Self: ...
    @property
    def sampling_time_s(self) -> float: ...
    @property
    def highest_load(self) -> float: ...
    def watch(self, leaf: int, uplinks: int, now: float) -> None: ...
    def due(self, now: float) -> tuple[int, ...]:
        """Return the leaves whose meters are to be read now, ascending; each is named once per read."""
    def deadline(self) -> float | None: ...
    def sample(self, leaf: int, short_bytes: int, long_bytes: int, now: float) -> None: ...
    def low_latency_share(self) -> float: ...
    def split(self, path_sets: Iterable[tuple[int, ...]]) -> PathSplit: ...
