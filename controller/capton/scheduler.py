"""CAPTON's central scheduler: which flows may send, and how fast (Zhou and Lee, IEEE Access 10, 2022, Sections IV-V).

The algorithm of Figure 6, at each request and each end of a flow: what flows have left is brought up to date from
their granted rates and the time that has passed; then, in increasing order of what they have left, each is granted its
line rate if all its links still hold it. With access links of one speed that is one flow from, and one to, each host.
Flows within a rack use no core link.

Beyond the paper: a line rate is that of the flow's slowest link, so a fast host may send to several slow ones at once;
three tiers; capacities that change; and `Parameters`. Ties go to the earlier request.

Decisions are repaired, not made anew (`native/capton`, compiled): `benchmarks/capton.py` measures that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from capstan_native import CaptonScheduler

from controller.capton.fabric import VirtualFabric, VirtualLink


class Decision(NamedTuple):
    """The rate of a flow's sender from now on, bit/s on the link; 0: it has to stop."""

    flow: int
    rate_bps: int
    stamp: int = 0
    """Of the path, where the flow has one of its own (`controller.capton.single_path`)."""


class ActiveFlow(NamedTuple):
    """A flow as it stands; ``rate_bps`` is 0 while it waits."""

    flow: int
    source: str
    destination: str
    remaining_bytes: int
    rate_bps: int
    stamp: int = 0


class LinkUse(NamedTuple):
    """A virtual link's rate, and what of it is granted."""

    capacity_bps: int
    granted_bps: int


@dataclass(frozen=True, slots=True)
class Parameters:
    """What may be set; the defaults decide as the paper does.

    least_share: a flow is granted if at least this share of its line rate is left, 0 < share <= 1; below 1, flows are
    granted what a slower flow at the same host, or a failed core link, has left over.
    ageing_bytes_per_s: by how much a flow's place in the order improves for each second since its request; 0: large
    flows may wait for ever while small ones keep coming.
    finish_timeout_s: how long a flow keeps its grant after its bytes should all have left, if no message comes.
    """

    least_share: float = 1.0
    ageing_bytes_per_s: int = 0
    finish_timeout_s: float = 0.0


class Scheduler:
    """Flows are numbers that the caller chooses (0 .. 2^64 - 1); times are seconds of one clock, never negative.

    Each event returns the flows whose rate changes by it, stops first.
    """

    def __init__(self, fabric: VirtualFabric, parameters: Parameters = Parameters()) -> None:
        self._fabric: Final = fabric
        self._names: Final = list(fabric.hosts)
        self._native: Final = CaptonScheduler(
            fabric.groups,
            fabric.capacities,
            round(parameters.least_share * 1e6),
            parameters.ageing_bytes_per_s,
            round(parameters.finish_timeout_s * 1e9),
        )

    def request(self, flow: int, source: str, destination: str, size: int, *, now: float) -> list[Decision]:
        """Request *size* bytes for a flow (if known: so many are left); return the decisions that follow.

        Raises:
            ValueError: a host that is not known, one host at both ends, or other ends than the flow's.
        """
        ends = self._fabric.host(source), self._fabric.host(destination)
        return _decisions(self._native.request(flow, *ends, size, int(now * 1e9)))

    def take_over(self, flow: ActiveFlow, asked_at: float, now: float) -> list[Decision]:
        """Take a flow that another scheduler had, as it stands; return the decisions that follow.

        asked_at: seconds; from its first request on it ages.

        Raises:
            ValueError: as `request`.
        """
        ends = self._fabric.host(flow.source), self._fabric.host(flow.destination)
        remaining_bytes = max(1, flow.remaining_bytes)
        return _decisions(
            self._native.request(flow.flow, *ends, remaining_bytes, int(now * 1e9), int(asked_at * 1e9))
        )

    def finished(self, flow: int, now: float) -> list[Decision]:
        """End a flow that has nothing left, or is given up; return the decisions (none for an unknown flow)."""
        return _decisions(self._native.finished(flow, int(now * 1e9)))

    def capacity(self, link: VirtualLink, rate_bps: int, now: float) -> list[Decision]:
        """Set the capacity of a virtual link (0: all its links failed); return the decisions that follow.

        Raises:
            ValueError: a link that is not known, or a negative rate.
        """
        number = self._fabric.links.get(link)
        if number is None:
            raise ValueError(f"there is no link {link.direction} of {link.of!r}")
        return _decisions(self._native.capacity(number, rate_bps, int(now * 1e9)))

    def expire(self, now: float) -> list[Decision]:
        """Give up flows whose grant outlived their bytes by the time-out; return the stops, then all else."""
        return _decisions(self._native.expire(int(now * 1e9)))

    def next_event(self) -> float | None:
        """Return when `expire` has something to do, seconds; None while nothing is granted."""
        time = self._native.next_event()
        return None if time is None else (time + 1) / 1e9

    def flows(self, now: float) -> list[ActiveFlow]:
        """Return all flows in the order in which they are granted."""
        return [
            ActiveFlow(flow, self._names[source], self._names[destination], remaining, rate)
            for flow, source, destination, remaining, rate in self._native.standing(int(now * 1e9))
        ]

    def links(self) -> dict[VirtualLink, LinkUse]:
        """Return what is granted of each virtual link."""
        return {
            link: LinkUse(*use) for link, use in zip(self._fabric.links, self._native.usage(), strict=True)
        }

    def __contains__(self, flow: int) -> bool:
        return flow in self._native

    def __len__(self) -> int:
        return len(self._native)


def _decisions(changes: list[tuple[int, int]]) -> list[Decision]:
    return [Decision(flow, rate) for flow, rate in changes]
