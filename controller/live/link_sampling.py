"""Samples of what links carry: all switches are asked for their ports' counters at once."""

from __future__ import annotations

import dataclasses
import queue
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from controller.fabric.graph import PortRef
from controller.live.link_loads import Counted, LinkLoad, LinkLoads, port_counts
from controller.live.queue_history import QueueHistory
from controller.live.sampling import Sample, Sampler
from controller.plane.naming import FabricNames

EVERY_S: Final = 0.25
QUEUES_EVERY_S: Final = 0.45
"""Of every second sample: a switch's ports are looked at by a program there."""
ANSWER_S: Final = 0.2
"""Of switches that have not sent their counters by then a sample has the loads that it had before."""
SILENT_S: Final = 2.0
"""What a switch has sent before says nothing of now when nothing has come for so long: it is left out."""


class Switches(Protocol):
    """What the sampler needs of the shell."""

    def read_ports(self) -> None:
        """Ask all switches for their ports' counters; `LinkSampler.counted` gets the answers."""


Queues = Callable[[float], Mapping[PortRef, Counted]]


class LinkSampler(Sampler):
    """*rates*: kbit/s by link, where ports do not know. *queues*: counters of ports' queues, at most so many seconds
    old where they can be had; returns at once."""

    def __init__(
        self,
        switches: Switches,
        names: Callable[[], FabricNames],
        rates: Callable[[FabricNames], Mapping[str, float]],
        queues: Queues,
        *,
        watched: Callable[[], bool],
        publish: Callable[[Sample], None],
        every_s: float = EVERY_S,
    ) -> None:
        super().__init__("links", every_s, watched, publish)
        self._switches = switches
        self._names = names
        self._rates = rates
        self._queues = queues
        self.history = QueueHistory()
        self._loads = LinkLoads(every_s)
        self._answers: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._answered_s: dict[int, float] = {}
        self._totals: list[tuple[str, str, int, int]] = []

    def counted(self, dpid: int, body: bytes) -> None:
        """Take a switch's counters of its ports. Returns at once."""
        self._answers.put((dpid, body))

    def without_loads(self) -> Sample:
        """Return a sample that knows of no load, for want of one: no switch has answered."""
        names = self._names()
        return self._sampled(LinkLoads().loads(names, self._rates(names)))

    def totals(self) -> list[tuple[str, str, int, int]]:
        """Return (link, direction, bytes, packets) of the newest reading."""
        return self._totals

    def _end(self) -> None:
        self._loads = LinkLoads(self._every_s)
        self._answered_s.clear()

    def _take(self) -> Sample | None:
        names = self._names()
        waiting = set(names.connected)
        self._switches.read_ports()
        deadline = time.monotonic() + min(ANSWER_S, 0.8 * self._every_s)
        while waiting:
            try:
                dpid, body = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            self._loads.put(dpid, port_counts(body, time.monotonic()))
            self._answered_s[dpid] = time.monotonic()
            waiting.discard(dpid)
        self._totals = self._loads.counters(names.links)
        now = time.monotonic()
        self._answered_s = {dpid: at for dpid, at in self._answered_s.items() if now - at <= SILENT_S}
        self._loads.keep_only(self._answered_s, names.dpids)
        self._loads.put_queues(self._queues(QUEUES_EVERY_S), now)
        loads = self._loads.loads(names, self._rates(names))
        if self._newest is None and not any(load.ab or load.ba for load in loads):
            return None
        sample = self._sampled(loads)
        self.history.note(sample["at"], loads)
        return sample

    def _sampled(self, loads: Iterable[LinkLoad]) -> Sample:
        links = [dataclasses.asdict(load) for load in loads]
        return {"at": time.time(), "interval_s": self._every_s, "links": links}
