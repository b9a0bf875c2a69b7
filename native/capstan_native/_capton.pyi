"""CAPTON (controller/capton/scheduler.py): times in ns, rates in bit/s, sizes in bytes."""

from collections.abc import Sequence

class CaptonPlain:
    """The pseudocode as it stands: at each event all flows are sorted and granted anew. For comparison."""

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        capacities: Sequence[int],
        least_share_ppm: int,
        ageing: int,
        finish_timeout_ns: int,
    ) -> None:
        """*groups*: by host its leaf and pod; *capacities*: up and down of each host, then leaf, then pod.

        Raises:
            ValueError: numbers that do not fit each other.
        """

    def request(
        self, flow: int, source: int, destination: int, size: int, now_ns: int, asked_ns: int = ...
    ) -> list[tuple[int, int]]:
        """Return flows whose rate changes, with it. A new flow ages from *asked_ns* on, by default from now.

        Raises ValueError for ends that cannot be.
        """
    def finished(self, flow: int, now_ns: int) -> list[tuple[int, int]]: ...
    def expire(self, now_ns: int) -> list[tuple[int, int]]: ...
    def capacity(self, link: int, rate: int, now_ns: int) -> list[tuple[int, int]]: ...
    def next_event(self) -> int | None: ...
    def __len__(self) -> int: ...

class CaptonScheduler(CaptonPlain):
    """The same decisions, repaired at each event instead of made anew. (A class of its own, not derived.)"""

    def standing(self, now_ns: int) -> list[tuple[int, int, int, int, int]]:
        """Return flow, source, destination, bytes left and rate, in order."""
    def usage(self) -> list[tuple[int, int]]:
        """Return capacity and what is granted of it, by link."""
    def __contains__(self, flow: int) -> bool: ...
