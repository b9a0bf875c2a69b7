"""The thread that takes samples while somebody watches: it asks switches and agents, and hands over what they say.

Nothing is asked while nobody watches. Who asks once (`watch`) counts as watching for LEASE_S.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from controller.live.link_loads import LinkLoad, LinkLoads, port_counts
from controller.live.naming import FabricNames

LOG: Final = logging.getLogger("capstan.live")
LINKS_EVERY_S: Final = 0.25
ANSWER_S: Final = 0.2
"""Switches that have not told their counters by then are left out of a sample."""
LEASE_S: Final = 15.0


class Switches(Protocol):
    """What the sampler needs of the OpenFlow shell."""

    def read_ports(self) -> None:
        """Ask all switches for their ports' counters; `LinkSampler.counted` gets the answers."""


class LinkSampler:
    """Start with `start`. *publish* gets each sample, in this thread."""

    def __init__(
        self,
        switches: Switches,
        names: Callable[[], FabricNames],
        rates: Callable[[FabricNames], Mapping[str, float]],
        watched: Callable[[], bool],
        publish: Callable[[dict[str, Any]], None],
    ) -> None:
        self._switches = switches
        self._names = names
        self._rates = rates
        self._watched = watched
        self._publish = publish
        self._loads = LinkLoads()
        self._answers: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._lease_until = 0.0
        self._stir = threading.Condition()
        self._newest: dict[str, Any] | None = None
        self._counters: list[tuple[str, str, int, int]] = []
        self._thread: threading.Thread | None = None
        self._stopping = False

    # For other threads

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="links", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Harmless if it does not run."""
        with self._stir:
            self._stopping = True
            self._stir.notify_all()
        self._answers.put(None)
        if self._thread is not None:
            self._thread.join()

    def counted(self, dpid: int, body: bytes) -> None:
        """A switch has told its ports' counters. Returns at once."""
        self._answers.put((dpid, body))

    def stir(self) -> None:
        """Somebody may have begun to watch."""
        with self._stir:
            self._stir.notify_all()

    def newest(self, patience_s: float) -> dict[str, Any] | None:
        """The newest sample; asks for one, and waits so long for it, if none is being taken."""
        deadline = time.monotonic() + patience_s
        with self._stir:
            if time.monotonic() > self._lease_until and not self._watched():
                self._newest = None
            self._lease_until = time.monotonic() + LEASE_S
            self._stir.notify_all()
            while self._newest is None and not self._stopping and time.monotonic() < deadline:
                self._stir.wait(deadline - time.monotonic())
            return self._newest

    def without_loads(self) -> dict[str, Any]:
        """A sample that knows of no load, for want of one: no switch has answered."""
        names = self._names()
        return self._sampled(LinkLoads().loads(names, self._rates(names)))

    def totals(self) -> list[tuple[str, str, int, int]]:
        """(link, direction, bytes, packets) of the newest reading."""
        return self._counters

    # The thread

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            with self._stir:
                while not self._stopping and not self._wanted():
                    self._loads.forget()
                    self._stir.wait(1.0)
                    due = time.monotonic()
                if self._stopping:
                    return
            try:
                self._sample()
            except Exception:  # one bad sample must not end all
                LOG.exception("no sample of the links")
            due = max(due + LINKS_EVERY_S, time.monotonic())
            with self._stir:
                if not self._stopping:
                    self._stir.wait_for(lambda: self._stopping, max(0.0, due - time.monotonic()))

    def _wanted(self) -> bool:
        return self._watched() or time.monotonic() < self._lease_until

    def _sample(self) -> None:
        names = self._names()
        waiting = set(names.connected)
        self._switches.read_ports()
        deadline = time.monotonic() + ANSWER_S
        while waiting:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if answer is None:
                return
            dpid, body = answer
            self._loads.put(dpid, port_counts(body, time.monotonic()))
            waiting.discard(dpid)
        loads = self._loads.loads(names, self._rates(names))
        sample = self._sampled(loads)
        self._counters = self._loads.counters(names.links)
        if any(load.ab is not None or load.ba is not None for load in loads):
            with self._stir:
                self._newest = sample
                self._stir.notify_all()
            self._publish(sample)

    @staticmethod
    def _sampled(loads: Iterable[LinkLoad]) -> dict[str, Any]:
        links = [dataclasses.asdict(load) for load in loads]
        return {"at": time.time(), "interval_s": LINKS_EVERY_S, "links": links}
