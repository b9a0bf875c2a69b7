"""What links of simulated runs carry, sampled while the runs go on, for those who watch them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Protocol

from msgspec import Meta

from experiments.spec.spec import Spec
from simulation.fabrics import PS_PER_S
from simulation.spec_fabric import SimulatedFabric

EVERY_S: Final = 0.5
"""Seconds of the machine's clock between two samples."""
MOST_LINKS: Final = 2_500
"""Of a fabric that is sampled: a leaf-spine of 1000 hosts has some 1600; more no map shows."""
_LARGEST: Final = (1 << 53) - 1
_Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
_LONGEST_LABEL: Final = 500


@dataclass(frozen=True, slots=True)
class LinkSample:
    """What links of a run have carried in the ``interval_s`` of its time up to ``at_s``.

    label: of the run's scheme; repeat: from 1 on. The lists have two entries a link, up and down the tiers, in the
    order of the fabric's `link_names`: bytes and packets that came to the far end, packets that were dropped, and
    packets that wait.
    """

    label: str
    repeat: int
    at_s: Annotated[float, Meta(ge=0, le=1e9)]
    interval_s: Annotated[float, Meta(ge=1e-12, le=1e9)]
    delivered_bytes: list[_Count]
    delivered_packets: list[_Count]
    dropped_packets: list[_Count]
    queued_packets: list[_Count]

    @property
    def counts(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return its lists, in the order of its fields."""
        return self.delivered_bytes, self.delivered_packets, self.dropped_packets, self.queued_packets

    def is_small(self) -> bool:
        """Return True if it holds no more than samplers give: one may come from another machine."""
        return len(self.label) <= _LONGEST_LABEL and all(len(of) <= 2 * MOST_LINKS for of in self.counts)


class Counting(Protocol):
    """A run of the simulator, as far as its links are counted."""

    def now_ps(self) -> int:
        """Return the run's time."""

    def link_counts(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return, by link, bytes and packets delivered, packets dropped, and packets that wait for it now."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledRun:
    """A run that may be sampled. number: of the batch's; repeat: from 0 on."""

    number: int
    label: str
    repeat: int
    spec: Spec
    fabric: SimulatedFabric


class LinkSampler:
    """Samples the run that began first of those that go on. Safe to call from any thread.

    now: monotonic seconds. on_sample: called with each sample, by one thread at a time.
    """

    def __init__(self, on_sample: Callable[[LinkSample], None], now: Callable[[], float]) -> None:
        self._on_sample: Final = on_sample
        self._now: Final = now
        self._due_s = 0.0
        self._watched: _Watched | None = None
        self._lock: Final = threading.Lock()

    def look(self, run: SampledRun, simulation: Counting) -> None:
        """Sample a run if it is the one that is watched, and a sample is due."""
        now = self._now()
        if now < self._due_s:
            return
        with self._lock:
            if self._watched is None:
                names = run.spec.fabric.link_names()
                if len(names) > MOST_LINKS:
                    self._due_s = now + EVERY_S  # a run whose flows ask takes thousands of steps a second
                    return
                links = [number for name in names for number in run.fabric.links[name]]
                self._watched = _Watched(run.number, links)
            watched = self._watched
            at_ps = simulation.now_ps()
            if watched.number != run.number or at_ps <= watched.at_ps:
                return
            counts = simulation.link_counts()
            octets, packets, dropped, queued = ([of[link] for link in watched.links] for of in counts)
            sample = LinkSample(
                run.label,
                run.repeat + 1,
                at_ps / PS_PER_S,
                (at_ps - watched.at_ps) / PS_PER_S,
                _differences(watched.delivered_bytes, octets),
                _differences(watched.delivered_packets, packets),
                _differences(watched.dropped_packets, dropped),
                queued,
            )
            watched.at_ps = at_ps
            watched.delivered_bytes, watched.delivered_packets = octets, packets
            watched.dropped_packets = dropped
            self._due_s = now + EVERY_S
            self._on_sample(sample)

    def end(self, number: int) -> None:
        """Sample another run from now on, if it was this one."""
        with self._lock:
            if self._watched is not None and self._watched.number == number:
                self._watched = None


class _Watched:
    """The run that is watched, and its counts at the last sample. links: their numbers, in a sample's order."""

    def __init__(self, number: int, links: Sequence[int]) -> None:
        self.number: Final = number
        self.links: Final = links
        self.at_ps = 0
        self.delivered_bytes = [0] * len(links)
        self.delivered_packets = [0] * len(links)
        self.dropped_packets = [0] * len(links)


def _differences(before: Sequence[int], now: Sequence[int]) -> list[int]:
    return [after - earlier for earlier, after in zip(before, now, strict=True)]
